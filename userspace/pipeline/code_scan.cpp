// SPDX-License-Identifier: Apache-2.0
#include "pipeline/code_scan.h"

#include <cstdio>
#include <utility>

#include "base/clock.h"

namespace gpuwatch::pipeline {

using Clock = std::chrono::steady_clock;

// Judges what a step finds, for one process.
class CodeScan::Sink final : public scan::ScanSink {
 public:
  Sink(CodeScan& scan, const gpuwatch_rec& head, CodeActor actor)
      : scan_(scan), head_(head), actor_(std::move(actor)) {}

  void file(scan::MappedFile file) override {
    std::string name = file.path;
    if (file.deleted && !file.memfd) name += " (deleted)";
    PrintSink entries = sink_for(name, model::ImagePlace::kFile);
    (void)scan_.identifier_.file(name, file.fd.get(), entries).ok();  // a file that can't be read has no code
    hand_over();
  }
  void memory(scan::MemoryImage image) override {
    char place[32];
    std::snprintf(place, sizeof place, " at 0x%llx", static_cast<unsigned long long>(image.address));
    const std::string name = image.mapping + place;
    PrintSink entries = sink_for(name, model::ImagePlace::kMemory);
    const identify::Bytes bytes(reinterpret_cast<const std::uint8_t*>(image.bytes.data()), image.bytes.size());
    (void)scan_.identifier_.bytes(name, bytes, entries).ok();
    hand_over();
  }

 private:
  PrintSink sink_for(const std::string& name, model::ImagePlace place) {
    return PrintSink(
        [this, name, place](const std::string&, const identify::Entry& entry) { judge(name, place, entry); },
        scan_.options_.stop);
  }

  void judge(const std::string& name, model::ImagePlace place, const identify::Entry& entry) {
    // Leftovers of a scan are damaged all the time: only whole images count.
    if (!entry.image.error.empty() || !entry.module.errors.empty()) return;
    CodeFinding finding;
    finding.scanned = true;
    finding.load.head = head_;
    finding.load.head.time_ns = base::monotonic_ns();
    finding.load.file = name;
    finding.load.place = place;
    finding.load.image.bytes = entry.module.bytes;
    finding.load.image.kind = entry.image.in_container                    ? GPUWATCH_IMAGE_FATBIN
                              : entry.module.kind == identify::Kind::kElf ? GPUWATCH_IMAGE_ELF
                                                                          : GPUWATCH_IMAGE_TEXT;
    CodeModule& module = finding.load.modules.emplace_back();
    module.print = print_of(entry);
    module.identifier = entry.image.identifier;
    if (place == model::ImagePlace::kMemory) module.print.origin = model::CodeOrigin::kMemory;
    finding.verdict = scan_.judge_.judge(finding.load, actor_);
    // PTX beside cubins in a library is for other devices; nobody compiled it.
    const bool beside = place == model::ImagePlace::kFile && finding.verdict.judgement.verdict == model::Verdict::kJit;
    if (beside || is_fine(finding.verdict.judgement)) return;
    if (findings_.size() < scan_.options_.told_of_one)
      findings_.push_back(std::move(finding));
    else
      ++more_;
  }

  void hand_over() { scan_.found(std::exchange(findings_, {}), std::exchange(more_, 0)); }

  CodeScan& scan_;
  gpuwatch_rec head_;
  CodeActor actor_;
  std::vector<CodeFinding> findings_;
  std::size_t more_ = 0;
};

CodeScan::CodeScan(CodeScanOptions options, CodeJudge judge)
    : options_(std::move(options)),
      judge_(std::move(judge)),
      identifier_(options_.identify),
      scan_(options_.scan),
      thread_([this] { work(); }) {}

CodeScan::~CodeScan() {
  {
    const std::lock_guard hold(lock_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void CodeScan::want(const gpuwatch_rec& head, CodeActor actor) {
  const std::lock_guard hold(lock_);
  if (wanted_.size() >= options_.processes) return;
  const auto [at, fresh] = wanted_.try_emplace({head.start_ns, head.tgid});
  if (!fresh) return;
  at->second.head = head;
  at->second.actor = std::move(actor);
  wake_.notify_all();
}

void CodeScan::take(std::vector<CodeFinding>& out) {
  const std::lock_guard hold(lock_);
  out = std::exchange(ready_, {});
}

std::string CodeScan::trouble() const {
  const std::lock_guard hold(lock_);
  return trouble_;
}

std::uint64_t CodeScan::left_out() const {
  const std::lock_guard hold(lock_);
  return left_out_;
}

void CodeScan::found(std::vector<CodeFinding> findings, std::size_t more) {
  const std::lock_guard hold(lock_);
  left_out_ += more;
  trouble_ = judge_.trouble();
  for (CodeFinding& finding : findings) {
    if (ready_.size() < options_.waiting)
      ready_.push_back(std::move(finding));
    else
      ++left_out_;
  }
}

void CodeScan::work() {
  std::unique_lock hold(lock_);
  while (!stop_) {
    const auto now = Clock::now();
    auto next = wanted_.end();
    for (auto at = wanted_.begin(); at != wanted_.end(); ++at)
      if (next == wanted_.end() || at->second.next < next->second.next) next = at;
    if (next == wanted_.end()) {
      wake_.wait(hold);
      continue;
    }
    if (next->second.next > now) {
      wake_.wait_until(hold, next->second.next);
      continue;
    }
    const Key key = next->first;
    Sink sink(*this, next->second.head, next->second.actor);
    hold.unlock();
    // Another process may have the number by now.
    auto step = scan::is_process("/proc", key.second, key.first)
                    ? scan_.step(key.second, options_.step_bytes, sink)
                    : base::Error(base::Code::kNotFound, "the process is gone");
    hold.lock();
    const auto at = wanted_.find(key);
    if (at == wanted_.end()) continue;
    if (!step)
      wanted_.erase(at);  // gone
    else if (*step)
      at->second.next = Clock::now() + options_.again;
    if (!stop_) wake_.wait_for(hold, options_.step_pause, [this] { return stop_; });
  }
}

}  // namespace gpuwatch::pipeline
