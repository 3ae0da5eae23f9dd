// SPDX-License-Identifier: Apache-2.0
// Fuzz target: BPF device programs. Whatever the instructions, the evaluator
// ends, and says the same twice.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "attribute/device_program.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<bpf_insn> program(size / sizeof(bpf_insn));
  if (!program.empty()) std::memcpy(program.data(), data, program.size() * sizeof(bpf_insn));
  gpuwatch::attribute::DeviceAccess device;
  device.major = 195;
  for (device.minor = 0; device.minor < 4; ++device.minor)
    if (gpuwatch::attribute::run_device_program(program, device) !=
        gpuwatch::attribute::run_device_program(program, device))
      std::abort();
  return 0;
}
