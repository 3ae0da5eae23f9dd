// SPDX-License-Identifier: Apache-2.0
// What is at work in a process besides its own code: a debugger or a tool that
// rewrites code, which is no attack, and which driver's library. It looks and does
// nothing else.
#pragma once

#include <string>

namespace gpuwatch::probe {

// `process`: "/proc/self", "/proc/123". Empty: none seen.
std::string watching_tool(const std::string& process);

// "580.159.04": of the libcuda that the process has mapped, whose compiler makes
// code of PTX, else of the kernel's module. Empty: neither is there.
std::string driver_of(const std::string& process);

}  // namespace gpuwatch::probe
