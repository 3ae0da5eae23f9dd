// SPDX-License-Identifier: Apache-2.0
// Parses without rights. What a process has mapped, what its agent answers and
// what its recorder wrote is that process's to choose, so a child goes through it:
// without capabilities, of root as nobody where root may become that, and without
// the calls that open, connect or trace (confine). The parent keeps the rights and
// does the few things that want them, when the child asks. A child that was taken
// over can ask whatever it likes: requests are checked here as any hostile input.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/fd.h"
#include "probe/session.h"

namespace gpuwatch::probe::agent {

inline constexpr std::size_t kAskMax = 256;         // bytes of a request
inline constexpr std::size_t kToldMax = 64u << 10;  // bytes of what the parent tells

// The parent's answer.
struct Told {
  Failure failure;                  // what follows is void with one
  std::vector<std::uint8_t> bytes;  // up to kToldMax
  base::Fd fd;
};

// In the parent: does what was asked for. False: no child of ours asks that.
using Serve = std::function<bool(std::span<const std::uint8_t> request, Told& told)>;

// The parent, in the child.
class Parent {
 public:
  explicit Parent(int channel) : channel_(channel) {}
  // A failure: the parent's, or it has ended.
  Failure ask(std::span<const std::uint8_t> request, Told& told);

 private:
  int channel_;
};

// Runs `work` in the child and `serve` for it; returns the work's exit code. What
// it needs to read must be open. To be called by a process of one thread.
int run_without_rights(const Serve& serve, const std::function<int(Parent&)>& work);

// Connects to one process's agent. `full`: too many wait there; try again.
using Connect = std::function<Failure(base::Fd& fd, bool& full)>;

// The same with a Connect that asks the parent's `connect`.
int run_without_rights(const Connect& connect, const std::function<int(const Connect&)>& work);

}  // namespace gpuwatch::probe::agent
