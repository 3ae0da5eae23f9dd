// SPDX-License-Identifier: Apache-2.0
// The agent's side of the socket: one connection at a time, looked at for who
// it comes from, each frame within a time. Between connections it is blocked in
// poll() and holds no memory. It knows frames and nothing of GPUs.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <string>

#include "probe/agent/wire.h"

namespace gpuwatch::probe::agent {

// Answers requests of one connection after the other, on the server's thread.
class Service {
 public:
  virtual ~Service() = default;
  virtual Frame facts() = 0;
  virtual Frame read(const AskRead& ask) = 0;
  virtual Frame hash(const AskHash& ask) = 0;
  virtual Frame survey(const AskSurvey& ask) = 0;
  virtual void end() = 0;  // the connection is over: give everything back
};

struct ServerTimes {
  std::chrono::milliseconds frame{5000};         // from one answer to the next request; to send an answer
  std::chrono::milliseconds connection{120000};  // in all
};

class Server {
 public:
  // `wake`: readable when the server is to end. Both descriptors stay the caller's.
  Server(int listener, int wake, Service& service, ServerTimes times = {})
      : listener_(listener), wake_(wake), service_(service), times_(times) {}

  // Until `wake` is readable.
  void run();

  // Root, and the user that this process runs as.
  static bool allowed(uid_t peer, uid_t own) { return peer == 0 || peer == own; }

 private:
  using Clock = std::chrono::steady_clock;
  enum class Got { kAll, kEnd, kStop };

  void serve(int fd);
  Got receive(int fd, std::span<std::uint8_t> out, Clock::time_point deadline);
  bool send(int fd, const Frame& frame);
  Frame answer(const Head& head, identify::Bytes payload);
  void turn_away();

  int listener_;
  int wake_;
  Service& service_;
  ServerTimes times_;
  Clock::time_point connection_end_{};
};

}  // namespace gpuwatch::probe::agent
