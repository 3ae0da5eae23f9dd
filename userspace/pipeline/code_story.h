// SPDX-License-Identifier: Apache-2.0
// CodeStory: tells which GPU code processes load, with the verdict on it, and
// who runs something while no load of code was seen. Live, images are hashed
// and judged by a thread of its own, behind a bounded queue: records are read
// on meanwhile, and what does not fit is told as not verified. A recording is
// gone through in step, so that it always tells the same.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "model/actor.h"
#include "model/story.h"
#include "pipeline/code_judge.h"
#include "pipeline/code_scan.h"
#include "pipeline/code_watch.h"
#include "pipeline/image_places.h"
#include "pipeline/unverified.h"

namespace gpuwatch::pipeline {

struct CodeStoryOptions {
  identify::Options identify;
  bool live = false;
  bool warm_up = false;  // live: the process that hashes starts before the first load, for who stays long
  // A process with channels for so long without a load is told; nothing: never.
  std::optional<std::uint64_t> unverified_after_ns;
  std::size_t queue_loads = 32'768;
  std::size_t queue_bytes = 256 << 20;
};

class CodeStory {
 public:
  using ActorOf = std::function<model::Actor(const gpuwatch_rec&)>;

  // `scan` may be nothing: processes are not scanned. `source` outlives this.
  CodeStory(CodeStoryOptions options, CodeJudge judge, std::unique_ptr<CodeScan> scan, source::Source& source);
  ~CodeStory();

  // Bodies of events point into this object until the next call of these three.
  // `driver_events`: what the same record told of driver calls.
  void observe(const model::RawRecord& record, const std::vector<model::StoryEvent>& driver_events,
               const ActorOf& actor_of, std::vector<model::StoryEvent>& out);
  // When no record came: what was hashed meanwhile, who waited too long by now.
  void settle(std::uint64_t now_ns, const std::vector<model::StoryEvent>& driver_events,
              std::vector<model::StoryEvent>& out);
  // Waits some time for what is still being hashed.
  void finish(const std::vector<model::StoryEvent>& driver_events, std::vector<model::StoryEvent>& out);

  // Loads are judged by another one from now on. Any thread; who has channels
  // and what waits stays as it is.
  void use_judge(CodeJudge judge);

  // Live: called by the hashing thread when there is something for settle() to tell.
  void when_done(std::function<void()> call);

  std::uint64_t loads() const { return loads_; }
  std::uint64_t findings() const { return findings_ + unverified_.told(); }
  std::string trouble() const;  // of a baseline; empty: none
  // "3 loads not verified: 2 more at a time than can be hashed, ..."; empty: none.
  std::string gap_line() const;

 private:
  struct Job {
    CodeLoad load;
    CodeActor actor;
    std::size_t bytes = 0;
  };

  void work();
  void process(Job job, std::vector<model::StoryEvent>& out);
  void note(const std::vector<model::StoryEvent>& driver_events, const ActorOf* actor_of);
  void drain(std::vector<model::StoryEvent>& out);
  void tell(CodeFinding finding, std::vector<model::StoryEvent>& out);
  bool enqueue(Job& job);

  CodeStoryOptions options_;
  source::Source& source_;
  ImagePlaces places_;
  CodeWatch watch_;  // the thread's, live
  CodeJudge judge_;  // likewise
  std::atomic<bool> judges_;
  Unverified unverified_;
  std::unique_ptr<CodeScan> scan_;
  std::deque<CodeFinding> told_;  // what events point into
  std::uint64_t loads_ = 0;
  std::uint64_t findings_ = 0;
  std::array<std::uint64_t, kLoadGaps> gaps_{};

  mutable std::mutex lock_;  // what follows
  std::condition_variable wake_, idle_;
  std::deque<Job> todo_;
  std::size_t todo_bytes_ = 0;
  std::deque<CodeFinding> done_;
  std::atomic<bool> any_done_{false};
  std::optional<CodeJudge> next_judge_;  // takes over at the next load
  std::function<void()> when_done_;
  std::string trouble_;
  bool busy_ = false;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace gpuwatch::pipeline
