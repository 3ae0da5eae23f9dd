// SPDX-License-Identifier: Apache-2.0
// The requester's side: finds the agent of a process, proves that the socket is
// that process's, asks, and says what went wrong in words with a remedy.
#pragma once

#include <chrono>
#include <memory>

#include "base/fd.h"
#include "probe/agent/rights.h"
#include "probe/agent/wire.h"
#include "probe/session.h"

namespace gpuwatch::probe::agent {

struct AskTimes {
  std::chrono::milliseconds answer{60000};
  std::chrono::milliseconds busy{10000};  // how long to try while another is served
};

class Connection {
 public:
  // `connect`: who connects instead, with rights that this process does not have.
  Connection(int pid, AskTimes times, Connect connect = {}) : pid_(pid), times_(times), connect_(std::move(connect)) {}

  // Connects, and gets the facts; tries again while the agent is busy.
  Failure open(Facts& facts);
  Failure read(std::uint32_t device, const Span& span, std::vector<std::uint8_t>& out, Refusal& refusal);
  Failure survey(const AskSurvey& ask, std::vector<SpanCount>& counts, Refusal& refusal);
  Failure hash(const AskHash& ask, std::vector<identify::Digest>& roots, Refusal& refusal);

 private:
  Failure connect();
  // Sends a frame and takes the answer. A refusal that concerns the one request
  // goes to `refusal`, what ends the work is a failure.
  Failure ask(const Frame& request, Type want, std::vector<std::uint8_t>& payload, Refusal& refusal);
  Failure transfer(const Frame& request, Head& head, std::vector<std::uint8_t>& payload);
  Failure broken(const std::string& what);

  int pid_;
  AskTimes times_;
  Connect connect_;
  bool full_ = false;  // more wait to be served than the socket holds
  base::Fd process_;   // tells its end; the number may be another's by then
  base::Fd fd_;
};

// Connects to the agent of a process, once it is proven that the socket is that
// process's.
Failure connect_agent(int pid, base::Fd& fd, bool& full);

// Where the agent of a process listens, in that process's own file system; a
// failure where it has none. Nothing is connected.
Failure find_agent(int pid, std::string& path);

// Paths of unix sockets in the text of /proc/PID/net/unix, by inode.
std::string socket_of(std::string_view table, const std::vector<std::uint64_t>& inodes);

}  // namespace gpuwatch::probe::agent
