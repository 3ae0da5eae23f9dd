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

std::string driver_of(const std::string& process) {
  constexpr std::string_view kLibrary = "/libcuda.so.";
  std::ifstream maps(process + "/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t at = line.rfind(kLibrary);
    if (at == std::string::npos) continue;
    // "580.159.04": digits and points, at least one of these.
    const std::string version = line.substr(at + kLibrary.size());
    if (version.size() <= 32 && version.find('.') != std::string::npos &&
        version.find_first_not_of("0123456789.") == std::string::npos)
      return version;
  }
  std::ifstream file("/sys/module/nvidia/version");
  std::string line;
  std::getline(file, line);
  return line.substr(0, 32);
}

}  // namespace gpuwatch::probe
