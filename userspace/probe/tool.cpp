// SPDX-License-Identifier: Apache-2.0
#include "probe/tool.h"

#include <cstdlib>
#include <fstream>

namespace gpuwatch::probe {

std::string watching_tool(const std::string& process) {
  std::ifstream status(process + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("TracerPid:") && std::strtol(line.c_str() + 10, nullptr, 10) != 0) return "debugger";
  std::ifstream maps(process + "/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("libsanitizer-collection") != std::string::npos) return "compute-sanitizer";
  return {};
}

}  // namespace gpuwatch::probe
