// SPDX-License-Identifier: Apache-2.0
// Whether a debugger or a tool that rewrites code is at work in a process: it
// changes what is found, and that is no attack. It looks and does nothing else.
#pragma once

#include <string>

namespace gpuwatch::probe {

// `process`: "/proc/self", "/proc/123". Empty: none seen.
std::string watching_tool(const std::string& process);

}  // namespace gpuwatch::probe
