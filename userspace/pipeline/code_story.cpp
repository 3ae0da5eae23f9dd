// SPDX-License-Identifier: Apache-2.0
#include "pipeline/code_story.h"

#include <chrono>
#include <utility>

namespace gpuwatch::pipeline {

using model::StoryEvent;
using model::StoryKind;

namespace {

// At the end, for what still waits to be hashed.
constexpr std::chrono::seconds kLastHashes{30};

std::string_view image_kind_name(const gpuwatch_rec_image& image) {
  switch (image.kind) {
    case GPUWATCH_IMAGE_FATBIN:
      return "fatbin";
    case GPUWATCH_IMAGE_ELF:
      return "elf";
    case GPUWATCH_IMAGE_TEXT:
      return "text";
    case GPUWATCH_IMAGE_PATH:
      return "path";
    default:
      return "unknown";
  }
}

model::ModuleBody body_of(const CodeFinding& finding) {
  const CodeLoad& load = finding.load;
  const CodeVerdict& verdict = finding.verdict;
  model::ModuleBody body;
  body.loader = load.symbol;
  body.image_kind = image_kind_name(load.image);
  body.name = verdict.name;
  body.source = load.file;
  body.place = load.place;
  body.bytes = load.image.bytes;
  body.modules = verdict.lines;
  body.deciding = verdict.deciding;
  body.judged = verdict.judged;
  body.verdict = verdict.judgement.verdict;
  body.why = verdict.judgement.why;
  body.baseline = verdict.judgement.baseline;
  body.known_from = verdict.judgement.source;
  body.allowed = verdict.judgement.allowed;
  body.problem = load.problem;
  body.differences = verdict.judgement.differences;
  return body;
}

}  // namespace

CodeStory::CodeStory(CodeStoryOptions options, CodeJudge judge, std::unique_ptr<CodeScan> scan, source::Source& source)
    : options_(std::move(options)),
      source_(source),
      watch_(options_.identify),
      judge_(std::move(judge)),
      judges_(judge_.judges()),
      unverified_(options_.unverified_after_ns.value_or(~std::uint64_t{0})),
      scan_(std::move(scan)) {
  if (options_.live) thread_ = std::thread([this] { work(); });
}

CodeStory::~CodeStory() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard hold(lock_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void CodeStory::work() {
  if (options_.warm_up) watch_.warm_up();
  std::unique_lock hold(lock_);
  for (;;) {
    wake_.wait(hold, [this] { return stop_ || !todo_.empty(); });
    if (stop_) return;
    Job job = std::move(todo_.front());
    todo_.pop_front();
    todo_bytes_ -= job.bytes;
    busy_ = true;
    if (next_judge_) judge_ = *std::exchange(next_judge_, std::nullopt);
    hold.unlock();
    CodeFinding finding;
    watch_.hash(job.load);
    finding.verdict = judge_.judge(job.load, job.actor);
    finding.load = std::move(job.load);
    hold.lock();
    trouble_ = judge_.trouble();
    done_.push_back(std::move(finding));
    const bool told = any_done_.exchange(true, std::memory_order_release);
    busy_ = false;
    idle_.notify_all();
    if (!told && when_done_) when_done_();
  }
}

void CodeStory::use_judge(CodeJudge judge) {
  const std::lock_guard hold(lock_);
  judges_ = judge.judges();
  next_judge_ = std::move(judge);
}

void CodeStory::when_done(std::function<void()> call) {
  const std::lock_guard hold(lock_);
  when_done_ = std::move(call);
}

// False: no room, and the load is still the caller's.
bool CodeStory::enqueue(Job& job) {
  const std::lock_guard hold(lock_);
  job.bytes = job.load.bytes.bytes().size();
  // An image larger than the bound gets through when it is alone.
  if (todo_.size() >= options_.queue_loads || (!todo_.empty() && todo_bytes_ + job.bytes > options_.queue_bytes))
    return false;
  todo_bytes_ += job.bytes;
  todo_.push_back(std::move(job));
  wake_.notify_one();
  return true;
}

void CodeStory::process(Job job, std::vector<StoryEvent>& out) {
  if (options_.live) {
    if (enqueue(job)) return;
    job.load.gap = LoadGap::kQueueFull;
    job.load.problem = "more loads at a time than can be hashed";
    job.load.bytes = {};
    // The judge is the thread's: this verdict needs none.
    CodeFinding finding;
    finding.verdict.judged = judges_;
    finding.verdict.judgement = judge::unverified(job.load.problem);
    finding.load = std::move(job.load);
    return tell(std::move(finding), out);
  }
  CodeFinding finding;
  watch_.hash(job.load);
  if (std::lock_guard hold(lock_); next_judge_) judge_ = *std::exchange(next_judge_, std::nullopt);
  finding.verdict = judge_.judge(job.load, job.actor);
  trouble_ = judge_.trouble();
  finding.load = std::move(job.load);
  tell(std::move(finding), out);
}

void CodeStory::note(const std::vector<StoryEvent>& driver_events, const ActorOf* actor_of) {
  for (const StoryEvent& event : driver_events) {
    if (event.kind != StoryKind::kChannelCreated && event.kind != StoryKind::kChannelDestroyed) continue;
    unverified_.observe(event);
    if (scan_ && actor_of != nullptr && event.kind == StoryKind::kChannelCreated)
      scan_->want(event.head, CodeActor((*actor_of)(event.head)));
  }
}

void CodeStory::observe(const model::RawRecord& record, const std::vector<StoryEvent>& driver_events,
                        const ActorOf& actor_of, std::vector<StoryEvent>& out) {
  told_.clear();
  unverified_.advance(record.head.time_ns, out);
  note(driver_events, &actor_of);
  if (any_done_.load(std::memory_order_acquire)) drain(out);
  auto load = CodeWatch::read(record);
  if (!load) return;
  ++loads_;
  // It counts from now on, whenever its hashes are ready.
  unverified_.loaded(load->head);
  CodeWatch::fetch(*load, source_, options_.live);
  if (options_.live && load->place == model::ImagePlace::kUnknown) {
    PlaceOfImage place = places_.find(load->head, load->image);
    load->place = place.place;
    load->file = std::move(place.path);
  }
  Job job;
  job.actor = CodeActor(actor_of(load->head));
  job.load = std::move(*load);
  process(std::move(job), out);
}

void CodeStory::drain(std::vector<StoryEvent>& out) {
  std::deque<CodeFinding> done;
  {
    const std::lock_guard hold(lock_);
    done.swap(done_);
    any_done_.store(false, std::memory_order_relaxed);
  }
  for (CodeFinding& finding : done) tell(std::move(finding), out);
}

void CodeStory::settle(std::uint64_t now_ns, const std::vector<StoryEvent>& driver_events,
                       std::vector<StoryEvent>& out) {
  told_.clear();
  note(driver_events, nullptr);
  if (any_done_.load(std::memory_order_acquire)) drain(out);
  unverified_.advance(now_ns, out);
  if (!scan_) return;
  std::vector<CodeFinding> found;
  scan_->take(found);
  for (CodeFinding& finding : found) tell(std::move(finding), out);
}

void CodeStory::finish(const std::vector<StoryEvent>& driver_events, std::vector<StoryEvent>& out) {
  told_.clear();
  note(driver_events, nullptr);
  std::deque<Job> left;
  if (options_.live) {
    std::unique_lock hold(lock_);
    idle_.wait_for(hold, kLastHashes, [this] { return todo_.empty() && !busy_; });
    left.swap(todo_);
    // The one in the worker's hands is in neither queue; its time is bounded.
    idle_.wait(hold, [this] { return !busy_; });
  }
  drain(out);
  for (Job& job : left) {
    CodeFinding finding;
    job.load.gap = LoadGap::kStopped;
    job.load.problem = "not hashed before the end";
    finding.verdict.judged = judges_;
    finding.verdict.judgement = judge::unverified(job.load.problem);
    finding.load = std::move(job.load);
    tell(std::move(finding), out);
  }
  if (!scan_) return;
  std::vector<CodeFinding> found;
  scan_->take(found);
  for (CodeFinding& finding : found) tell(std::move(finding), out);
}

void CodeStory::tell(CodeFinding finding, std::vector<StoryEvent>& out) {
  const CodeFinding& kept = told_.emplace_back(std::move(finding));
  if (kept.load.gap != LoadGap::kNone) ++gaps_[static_cast<std::size_t>(kept.load.gap)];
  if (kept.verdict.judged && !is_fine(kept.verdict.judgement)) ++findings_;
  StoryEvent event;
  event.kind = kept.scanned ? StoryKind::kModuleFound : StoryKind::kModuleLoad;
  event.head = kept.load.head;
  event.gpu_minor = unverified_.gpu_of(kept.load.head);
  event.body = body_of(kept);
  out.push_back(event);
}

std::string CodeStory::trouble() const {
  const std::lock_guard hold(lock_);
  return trouble_.empty() && scan_ ? scan_->trouble() : trouble_;
}

std::string CodeStory::gap_line() const {
  std::uint64_t total = 0;
  std::string causes;
  for (std::size_t i = 0; i < gaps_.size(); ++i) {
    if (gaps_[i] == 0) continue;
    total += gaps_[i];
    causes += (causes.empty() ? ": " : ", ") + std::to_string(gaps_[i]) + " " +
              std::string(load_gap_words(static_cast<LoadGap>(i)));
  }
  return total == 0 ? "" : std::to_string(total) + " of " + std::to_string(loads_) + " loads not verified" + causes;
}

}  // namespace gpuwatch::pipeline
