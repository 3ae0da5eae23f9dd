// SPDX-License-Identifier: Apache-2.0
// The process that parses: no privileges, no files but those it is handed, no
// network, bounded memory, a short list of system calls. It is this program
// again under another name, so main() of a program that uses the room must ask
// is_worker() first.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "base/fd.h"
#include "base/result.h"
#include "identify/bytes.h"
#include "identify/limits.h"
#include "identify/protocol.h"

namespace gpuwatch::identify {

bool is_worker(int argc, char** argv);
// No worker is started before: see WorkerProcess::start().
bool is_worker_asked();

// What a test may make go wrong inside of a worker.
struct WorkerHooks {
  std::function<void(Operation, Bytes request)> before;
};
int worker_main(const WorkerHooks& hooks = {});

// Parent's side of one worker. Not thread-safe.
class WorkerProcess {
 public:
  WorkerProcess() = default;
  WorkerProcess(WorkerProcess&& other) noexcept
      : socket_(std::move(other.socket_)), pid_(std::exchange(other.pid_, -1)), pending_(std::move(other.pending_)) {}
  WorkerProcess& operator=(WorkerProcess&& other) noexcept {
    stop();
    socket_ = std::move(other.socket_);
    pid_ = std::exchange(other.pid_, -1);
    pending_ = std::move(other.pending_);
    return *this;
  }
  ~WorkerProcess() { stop(); }

  static base::Result<WorkerProcess> start();

  bool running() const { return pid_ > 0; }
  int fd() const { return socket_.get(); }
  int pid() const { return pid_; }

  // False: the worker is gone, see end().
  bool send(const std::string& body, const int* fds, std::size_t fd_count);

  enum class Got { kNothing, kReply, kGone };
  // Takes what has come in without waiting; a complete reply goes to `body`.
  Got receive(std::string& body);

  // Waits up to `timeout_ms` for a reply. On kNothing it did not come in time.
  Got wait(std::string& body, int timeout_ms);

  // Ends it and says why it ended, in words for a report.
  std::string end(bool timed_out);

 private:
  void stop();
  base::Fd socket_;
  int pid_ = -1;
  std::string pending_;
};

}  // namespace gpuwatch::identify
