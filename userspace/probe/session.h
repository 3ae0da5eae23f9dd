// SPDX-License-Identifier: Apache-2.0
// One GPU for the probe: its context, its kernels, and the few things done with
// them. Reads only what the record of this process's own calls proves to be
// mapped. After a fault every call fails: the process is to end.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/canary.h"
#include "probe/driver_api.h"
#include "probe/plan.h"
#include "probe/ranges.h"

namespace gpuwatch::probe {

// What ended the work, and the exit code of gpuwatch-probe.
enum class Outcome {
  kOk = 0,
  kFinding = 1,      // code differs, or the canary's answer is wrong
  kTrouble = 2,      // usage, files, anything else
  kNoLibrary = 3,    // libcuda is missing or too old
  kNoGpu = 4,        // no device is visible, or the driver is not loaded
  kTooOld = 5,       // the driver has no code or PTX of ours that it can run
  kUnavailable = 6,  // held in exclusive mode, or prohibited
  kOutOfMemory = 7,
  kWrongImage = 8,  // the driver refuses the file's code, or there is none for this GPU
  kFault = 9,       // an address fault ended the context
  // Of a process that is asked, not of one of ours.
  kNoProcess = 10,  // it is not there, or ended while it was asked
  kNoAgent = 11,    // it has no agent
  kDenied = 12,     // it belongs to another user
  kNoAnswer = 13,   // its agent is silent, busy, or of another version
  kHang = 14        // the driver or the GPU did not come back from a call
};

struct Failure {
  Outcome outcome = Outcome::kOk;
  std::string text;
  explicit operator bool() const { return outcome != Outcome::kOk; }
};

// What a result of CUDA means for the whole run.
Outcome outcome_of(CuResult result);

struct DeviceFacts {
  int number = 0;
  std::string name, uuid, bus;
  int major = 0, minor = 0, multiprocessors = 0, clock_khz = 0, compute_mode = 0;
  std::uint64_t memory_bytes = 0;
};

struct CanaryRun {
  std::vector<std::uint64_t> results;
  std::vector<kernels::CanaryBlock> blocks;
  std::uint64_t seed = 0;
};

using OwnRanges = RangeRecord (*)();

class Session {
 public:
  Session(const DriverApi& api, OwnRanges ranges) : api_(api), ranges_(ranges) {}
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  static Failure facts(const DriverApi& api, int number, DeviceFacts& out);
  Failure open(const DeviceFacts& facts);

  // Before work in this context after that in another.
  Failure enter();
  // One launch and one wait: results come in memory of the host that stays with
  // the session, so that no call but these two is made from the second time on.
  Failure canary(std::uint64_t seed, CanaryRun& out);
  // Roots of code where it lies. `gpu_ms`: of the launches alone.
  Failure hash(const std::vector<Span>& spans, Form form, const Nonce& nonce, std::vector<identify::Digest>& roots,
               float& gpu_ms);
  Failure read(const Span& span, std::vector<std::uint8_t>& out);
  // Many, through one buffer.
  Failure read(const std::vector<Span>& spans, std::vector<std::vector<std::uint8_t>>& out);
  Failure store(std::uint64_t address, std::uint32_t value, std::uint64_t words);
  // Makes instruction caches fetch anew: loads a module and runs its kernel.
  Failure refresh();

  // Clears what is free in the blocks that device memory is handed out from: the
  // loader passes code through there, and leaves it when it gives it back.
  Failure scrub();
  // Runs `function` as gpuwatch_selftest and gives out[0] for in[0] = 1.
  Failure run_selftest(CuFunction function, float& out);

  // What is proven for this GPU.
  RangeRecord ranges() const { return gpu_ ? ranges_().on(*gpu_) : ranges_(); }
  const DriverApi& api() const { return api_; }
  Failure failed(CuResult result, const std::string& what) const;

 private:
  Failure launch(CuFunction function, unsigned blocks, unsigned threads, void** arguments);
  Failure wait(const std::string& what);

  const DriverApi& api_;
  OwnRanges ranges_;
  int device_ = -1;
  std::optional<Uuid> gpu_;  // none where there is one only: a MIG instance's is not what the driver maps by
  CuContext context_ = nullptr;
  int multiprocessors_ = 0;
  CuModule module_ = nullptr;
  CuFunction hash_ = nullptr, copy_ = nullptr, store_ = nullptr, canary_ = nullptr;
  CuStream stream_ = nullptr;
  void* canary_memory_ = nullptr;  // pinned; blocks first, then results
  CuPointer canary_address_ = 0;   // where the GPU sees it
};

}  // namespace gpuwatch::probe
