// SPDX-License-Identifier: Apache-2.0
// SIGINT and SIGTERM as "end in order", SIGUSR1 as "dump now", SIGPIPE off.
// Handlers only set flags; poll() and read() return early with EINTR.
#pragma once

namespace gpuwatch::cli {

void install_signals();
bool stop_wanted();
int stop_signal();        // which one; 0: none came
bool take_dump_wanted();  // true once per SIGUSR1

}  // namespace gpuwatch::cli
