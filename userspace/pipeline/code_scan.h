// SPDX-License-Identifier: Apache-2.0
// CodeScan: looks through processes that hold a channel for GPU code that they
// have mapped or in memory, and gives what is not as it should be. In a thread
// of its own, so many bytes of memory a second, again only where mappings
// changed. What it finds was in memory: never that it was loaded.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "pipeline/code_judge.h"
#include "pipeline/code_watch.h"
#include "scan/process_scan.h"

namespace gpuwatch::pipeline {

// A load, or what a scan found, with what is to say about it.
struct CodeFinding {
  CodeLoad load;
  CodeVerdict verdict;
  bool scanned = false;
};

struct CodeScanOptions {
  identify::Options identify;
  scan::ScanOptions scan;
  std::uint64_t step_bytes = 16 << 20;
  std::chrono::milliseconds step_pause{250};  // so 64 MiB a second
  std::chrono::seconds again{30};             // between two looks at a process
  std::size_t processes = 4096;
  std::size_t told_of_one = 20;  // of one file or piece of memory
  std::size_t waiting = 1024;    // findings that nobody took yet
  PrintSink::Stop stop = nullptr;
};

class CodeScan {
 public:
  // The judge must have something to judge by: what is fine is not told.
  CodeScan(CodeScanOptions options, CodeJudge judge);
  ~CodeScan();

  // A process has a channel. Quick; any number of times.
  void want(const gpuwatch_rec& head, CodeActor actor);
  // What was found since the last time.
  void take(std::vector<CodeFinding>& out);
  std::string trouble() const;
  std::uint64_t left_out() const;  // findings over the bounds

 private:
  class Sink;
  struct Wanted {
    gpuwatch_rec head{};
    CodeActor actor;
    std::chrono::steady_clock::time_point next{};
  };
  using Key = std::pair<std::uint64_t, std::uint32_t>;  // start, process id

  void work();
  void found(std::vector<CodeFinding> findings, std::size_t more);

  CodeScanOptions options_;
  CodeJudge judge_;  // the thread's, and so are the next two
  identify::Identifier identifier_;
  scan::ProcessScan scan_;

  mutable std::mutex lock_;  // what follows
  std::condition_variable wake_;
  std::map<Key, Wanted> wanted_;
  std::vector<CodeFinding> ready_;
  std::string trouble_;
  std::uint64_t left_out_ = 0;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace gpuwatch::pipeline
