// SPDX-License-Identifier: Apache-2.0
// ProbeStarter: a process of its own that starts gpuwatch-probe for others. It is
// forked before the daemon gives up its privileges, because an agent answers root
// and the user of its own process only: the starter becomes that user for each
// probe. All that can be asked of it is "probe process N"; which program that is
// was fixed when it began. One at a time. It ends with the daemon.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace gpuwatch::daemon {

// What the daemon's side sends; with kStart comes the descriptor for its output.
struct StarterRequest {
  enum Verb : std::uint32_t { kStart = 1, kKill = 2 };
  std::uint32_t verb = 0;
  std::uint32_t pid = 0;
};
// What comes back for each start, once the program is gone: as waitpid() tells it.
struct StarterAnswer {
  std::int32_t status = 0;
};

class ProbeStarter {
 public:
  // Forks it; to be called before any thread is made. `program` empty: beside
  // this program, or in ../bin.
  static base::Result<ProbeStarter> begin(const std::string& program);
  ProbeStarter(ProbeStarter&&) noexcept = default;
  ~ProbeStarter();

  const base::Fd& socket() const { return socket_; }
  base::Status start(std::uint32_t pid, const base::Fd& output) const;
  void kill() const;

 private:
  ProbeStarter(base::Fd socket, pid_t pid) : socket_(std::move(socket)), pid_(pid) {}
  base::Fd socket_;
  pid_t pid_;
};

// The program that would be started; an error where others may change it.
base::Result<std::string> probe_program(const std::string& configured);

}  // namespace gpuwatch::daemon
