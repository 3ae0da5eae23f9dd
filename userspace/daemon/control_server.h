// SPDX-License-Identifier: Apache-2.0
// ControlServer: answers requests on the control socket, one line for one line,
// on a thread of its own. Who may ask is checked by the peer's credentials. A
// peer that is slow costs its own connection only.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/fd.h"
#include "base/result.h"
#include "control/protocol.h"

namespace gpuwatch::daemon {

struct ControlOptions {
  std::string path;
  std::string group;  // whose members may ask, too; one that does not exist: nobody
  unsigned connections = 32;
  int limit_ms = 5000;  // of a connection, in all
};

class ControlServer {
 public:
  // The answer's line, without newline. Called on the server's thread.
  using Answer = std::function<std::string(const control::Request&)>;

  // Makes the socket; the thread begins with serve().
  static base::Result<std::unique_ptr<ControlServer>> open(ControlOptions options);
  ~ControlServer();
  void serve(Answer answer);

 private:
  struct Peer;
  explicit ControlServer(ControlOptions options) : options_(std::move(options)) {}
  void run();
  bool may_ask(int fd) const;
  // False: done with it.
  bool work(Peer& peer);

  ControlOptions options_;
  Answer answer_;
  base::Fd listener_, wake_;
  long group_ = -1;
  bool bound_ = false;  // the path is ours to remove
  std::thread thread_;
};

}  // namespace gpuwatch::daemon
