// SPDX-License-Identifier: Apache-2.0
// Dumper: writes what the flight recorder holds, by alert or on request, on a
// thread of its own, and removes old dumps. It reads no record.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "daemon/recorder.h"
#include "daemon/settings.h"

namespace gpuwatch::daemon {

class Dumper {
 public:
  Dumper(const Recorder& recorder, source::GwcapHeader header);
  ~Dumper();

  void use(const Settings& settings);
  // By an alert or signal: soon, unless there was one a short time ago. Quick.
  void want(const std::string& why);
  // At once, on the caller's thread. Without a path the daemon names the file.
  base::Result<Dump> now(std::string path);

 private:
  void run();

  const Recorder& recorder_;
  source::GwcapHeader header_;
  std::mutex lock_;  // what follows
  std::condition_variable wake_;
  std::string directory_, why_;
  std::size_t keep_ = 1;
  std::uint64_t interval_ns_ = 0, last_ns_ = 0;
  bool wanted_ = false, stop_ = false;
  std::thread thread_;
};

}  // namespace gpuwatch::daemon
