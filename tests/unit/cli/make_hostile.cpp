// SPDX-License-Identifier: Apache-2.0
// make-hostile FILE: writes the recording of hostile_recording.h, for the cases
// of the command line.
#include <cstdio>

#include "unit/cli/hostile_recording.h"

int main(int argc, char** argv) {
  if (argc != 2 || !gpuwatch::test::write_hostile_recording(argv[1])) {
    std::fprintf(stderr, "usage: make-hostile FILE\n");
    return 2;
  }
  return 0;
}
