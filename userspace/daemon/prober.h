// SPDX-License-Identifier: Apache-2.0
// Prober: now and then has gpuwatch-probe ask the agent of each process that
// holds a context on a GPU, reads what it prints, and tells what is new. A thread
// of its own: nobody waits for it, and a probe that hangs is ended. The same
// finding of a process is told once, until it changes. It makes no items and
// touches no GPU.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "daemon/probe_starter.h"
#include "model/story.h"
#include "probe/answer.h"

namespace gpuwatch::daemon {

struct ProbeDifference {
  std::string kernel, image, reason;
  std::uint64_t bytes = 0, first_offset = 0, different_bytes = 0;
  auto key() const { return std::tie(kernel, image, reason, bytes, first_offset, different_bytes); }
  bool operator<(const ProbeDifference& other) const { return key() < other.key(); }
};

struct ProbeSums {
  std::uint64_t match = 0, differ = 0, not_resident = 0, not_probed = 0;
  bool operator==(const ProbeSums&) const = default;
};

// What one probe of a process told that was not told before.
struct ProbeNews {
  model::ProcessKey process;
  ProbeSums sums;
  std::uint64_t duration_ns = 0;
  std::uint32_t exit_status = 0;
  std::string problem;                  // empty: there was a result
  std::vector<ProbeDifference> differ;  // the new ones
};

// Since the start, and of the last look at all processes.
struct ProbeCounts {
  bool enabled = false;
  std::map<std::string, std::uint64_t> runs;  // by result: "match", "differ", or why there was none
  std::uint64_t with_agent = 0, without_agent = 0;
  std::uint64_t differ = 0;  // functions, of the processes that are there
  std::uint64_t last_unix_ns = 0;
  std::string trouble;  // why there will be no more
};

struct ProberSettings {
  bool enabled = false;
  std::chrono::milliseconds interval{300'000};
  std::chrono::milliseconds timeout{120'000};
};

class Prober {
 public:
  using Processes = std::function<std::vector<model::ProcessKey>()>;
  using Tell = std::function<void(ProbeNews)>;
  // `processes` with contexts; called by its thread, as `tell` is.
  Prober(ProbeStarter starter, Processes processes, Tell tell);
  ~Prober();

  void start();
  void use(const ProberSettings& settings);
  void stop();  // waits for its end; a probe that runs is ended

  ProbeCounts counts() const;

  static constexpr std::size_t kDifferencesTold = 64;  // of one process at once
  static constexpr std::size_t kRemembered = 1024;     // of one process

 private:
  // Of a process, what was told.
  struct Known {
    std::set<ProbeDifference> differ;
    ProbeSums sums;
    std::string problem;
    bool any = false;
  };
  struct Run {
    ProbeSums sums;
    std::vector<ProbeDifference> differ;
    std::string problem, result;
    std::uint32_t exit_status = 0;
    std::uint64_t duration_ns = 0;
  };

  void run();
  void look_at_all();
  Run probe(std::uint32_t pid);
  // Reads until the program is gone; false: it was ended by us, and `run` says why.
  bool attend(const base::Fd& output, const std::function<base::Status(std::string_view)>& feed, int& status, Run& run);
  base::Status take(const nlohmann::json& line, Run& run);
  void give_up(std::string trouble, Run& run);
  void note(const model::ProcessKey& process, Run run);
  bool wanted() const;
  void wake();

  ProbeStarter starter_;
  Processes processes_;
  Tell tell_;
  base::Fd wake_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, Known> known_;  // its thread's
  bool broken_ = false;                                             // the starter is gone

  mutable std::mutex lock_;  // what follows
  ProberSettings settings_;
  ProbeCounts counts_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace gpuwatch::daemon
