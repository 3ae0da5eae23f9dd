// SPDX-License-Identifier: Apache-2.0
// Lines that only a machine with the kernel module, or a hostile one, makes: by
// the real writers from made-up facts. For check-outputs.
#pragma once

#include <string>

namespace gpuwatch::golden {

// `gpuwatch status --json`, with everything it can have and with the least.
std::string made_up_status();
// `gpuwatch top --json` likewise; names are what no program should be called.
std::string made_up_holdings();

}  // namespace gpuwatch::golden
