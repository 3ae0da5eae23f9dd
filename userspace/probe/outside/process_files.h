// SPDX-License-Identifier: Apache-2.0
// The driver's control files of another process, each used for one call and let
// go at once: a duplicate keeps what was made through the file alive. It knows
// two calls, both of which only read; no way leads from here to another.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/fd.h"
#include "probe/outside/records.h"

namespace gpuwatch::probe::outside {

// What the driver says: errno of the call, and its status when the call came through.
struct Answer {
  int error = 0;
  std::uint32_t status = 0;
  bool good() const { return error == 0 && status == 0; }
  std::string text() const;  // "NV_ERR_INVALID_CLIENT (0x23)"
};

class TargetFiles {
 public:
  virtual ~TargetFiles() = default;
  // Numbers of the process's open files of /dev/nvidiactl.
  virtual Failure control_files(std::vector<int>& out) = 0;
  // Is `client` one that was made through this file? (NV0000_CTRL_CMD_GPU_GET_ATTACHED_IDS)
  virtual Failure knows(int file, Handle client, Answer& answer) = 0;
  // NV83DE_CTRL_CMD_DEBUG_READ_MEMORY: fills `out` from `offset` on.
  virtual Failure read(int file, Handle client, Handle debugger, Handle memory, std::uint64_t offset,
                       std::span<std::uint8_t> out, Answer& answer) = 0;
};

class ProcessFiles : public TargetFiles {
 public:
  // `node`: of /dev/nvidiactl; tests name another.
  explicit ProcessFiles(int pid);
  ProcessFiles(int pid, dev_t node) : pid_(pid), node_(node) {}

  // From here on it is this process and no later one of its number.
  Failure open(Identity& identity);
  Failure control_files(std::vector<int>& out) override;
  Failure knows(int file, Handle client, Answer& answer) override;
  Failure read(int file, Handle client, Handle debugger, Handle memory, std::uint64_t offset,
               std::span<std::uint8_t> out, Answer& answer) override;

 private:
  Failure gone() const;
  bool ended() const;
  Failure call(int file, Handle client, Handle object, std::uint32_t command, void* parameters, std::uint32_t bytes,
               Answer& answer);

  int pid_;
  dev_t node_;
  base::Fd process_;
};

}  // namespace gpuwatch::probe::outside
