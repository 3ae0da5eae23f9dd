// SPDX-License-Identifier: Apache-2.0
// What the words after `gpuwatch-probe` say. Nothing is done here.
#pragma once

#include <string>

namespace gpuwatch::probe {

struct Options {
  bool json = false;
  bool with_text = false;  // with json: what people are told stands beside
  bool selftest = false;
  bool no_ptx = false;
  std::string image;
  std::string kernel;
  std::string library = "libcuda.so.1";
  int gpu = -1;
  int timeout_s = 120;
  int gave_up_fd = -1;  // a byte into it: this process ends, but may not be able to
  int pid = 0;          // of a process that is looked at
  std::string records;
  bool outside = false;
  int every_s = 0;  // 0: once
  int times = 0;    // 0: as long as all is well
};

// Empty: `out` is complete. Else what is wrong; getopt has said what it found.
std::string parse_options(int argc, char** argv, Options& out);

}  // namespace gpuwatch::probe
