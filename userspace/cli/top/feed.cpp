// SPDX-License-Identifier: Apache-2.0
// Records are read by one Reader, live and from a file alike: into the pipeline,
// whose events go to the holdings.
#include "cli/top/feed.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <map>
#include <vector>

#include "attribute/gpu_directory.h"
#include "attribute/names.h"
#include "base/clock.h"
#include "cli/live.h"
#include "cli/output.h"
#include "cli/selection.h"
#include "cli/signals.h"
#include "control/client.h"
#include "identify/cache.h"
#include "model/definitions.h"
#include "pipeline/code_story.h"
#include "pipeline/events.h"
#include "source/replay_source.h"

namespace gpuwatch::cli::top {

using base::Code;
using base::Error;
using base::Result;
using base::Status;
using report::Holdings;
using report::HoldingsSnapshot;

namespace {

// One pump takes at most so long, or keys would have to wait.
constexpr std::uint64_t kPumpNs = 200'000'000;
constexpr std::uint64_t kUnverifiedAfterNs = 10'000'000'000;
constexpr std::chrono::milliseconds kAnswerTimeout{1000};

// A verdict is made only where there is something to compare with.
Result<std::unique_ptr<pipeline::CodeStory>> make_code(const Flags& flags, source::Source& source, bool live) {
  if (!flags.has("baseline") && !flags.has("policy")) return std::unique_ptr<pipeline::CodeStory>();
  pipeline::CodeStoryOptions options;
  options.live = live;
  options.identify.cache_path = identify::default_cache_path();
  options.identify.workers = 1;
  options.unverified_after_ns = kUnverifiedAfterNs;
  pipeline::CodeJudgeOptions how;
  if (const auto sm = flags.number("sm")) how.sm = static_cast<std::uint32_t>(*sm);
  pipeline::Baselines baselines;
  if (flags.has("baseline")) {
    auto opened = pipeline::Baselines::open(flags.list("baseline"));
    if (!opened) return std::move(opened.error());
    baselines = std::move(*opened);
  }
  auto policy = pipeline::read_policy(flags.text("policy"));
  if (!policy) return std::move(policy.error());
  return std::make_unique<pipeline::CodeStory>(std::move(options),
                                               pipeline::CodeJudge(how, std::move(baselines), std::move(*policy)),
                                               std::unique_ptr<pipeline::CodeScan>(), source);
}

model::GpuList gpus_of(const source::GwcapHeader& header) {
  model::GpuList gpus;
  for (const source::GwcapGpu& gpu : header.gpus)
    gpus.push_back({static_cast<std::int32_t>(gpu.minor), gpu.pci, gpu.uuid, gpu.name, {}});
  return gpus;
}

bool in_first_pid_namespace() {
  char target[64] = {};
  const ssize_t length = ::readlink("/proc/self/ns/pid", target, sizeof target - 1);
  return length > 0 && std::string_view(target) == "pid:[4026531836]";
}

class Reader {
 public:
  Reader(std::unique_ptr<source::Source> source, attribute::GpuDirectory& gpus, attribute::Names* names, bool live)
      : source_(std::move(source)), gpus_(gpus), live_(live) {
    options_.live = live;
    options_.names = names;
    options_.gpus = &gpus_;
    options_.driver = model::parse_driver_version(source_->header().driver_version).value_or(model::DriverVersion{});
  }

  Status start(const Flags& flags) {
    auto code = make_code(flags, *source_, live_);
    if (!code) return std::move(code.error());
    code_ = std::move(*code);
    options_.code = code_.get();
    events_ = std::make_unique<pipeline::Events>(
        options_, [this](const model::StoryEvent& event, const model::Actor& actor) { take(event, actor); });
    return {};
  }

  void want_peak() { peak_wanted_ = true; }

  // Our own look-ups of GPUs are calls, too, and nobody's holdings.
  bool ours(const gpuwatch_rec& head) const { return live_ && head.tgid == static_cast<std::uint32_t>(::getpid()); }

  void observe(const model::RawRecord& record) {
    ++records_;
    if (first_ns_ == 0) first_ns_ = record.head.time_ns;
    if (!ours(record.head)) holdings_.count_call(record.head);
    events_->observe(record);
    // Loads are counted also where nobody judges them.
    if (code_ != nullptr || record.head.type != GPUWATCH_REC_IMAGE) return;
    const auto image = model::parse_image(record);
    if (!image || image->fixed.kind == GPUWATCH_IMAGE_CALL) return;
    model::StoryEvent load;
    load.kind = model::StoryKind::kModuleLoad;
    load.head = record.head;
    load.body = model::ModuleBody{};
    take(load, events_->actor_of(record.head));
  }

  void settle(std::uint64_t now_ns) {
    events_->settle(now_ns);
    holdings_.advance(now_ns);
  }
  void finish() { events_->finish(); }

  HoldingsSnapshot look(const char* source) {
    // It may be the end that is the peak.
    HoldingsSnapshot snapshot = peak_ && total_ <= most_ ? *peak_ : holdings_.snapshot(gpus_.gpus());
    snapshot.source = source;
    snapshot.realtime_offset_ns = source_->header().realtime_minus_monotonic_ns;
    snapshot.driver_version = source_->header().driver_version;
    snapshot.records = records_;
    const model::LossCounts lost = source_->lost();
    for (std::size_t i = 0; i < lost.by_reason.size(); ++i) {
      if (lost.by_reason[i] == 0) continue;
      const std::string_view name = model::loss_name(i);
      snapshot.lost.emplace_back(name.empty() ? "reason_" + std::to_string(i) : std::string(name), lost.by_reason[i]);
    }
    return snapshot;
  }

  // What live only can be known: names that came, processes that are gone.
  void refresh(bool pids_are_ours) {
    holdings_.refresh([this](const gpuwatch_rec& head) { return events_->actor_of(head); });
    if (!pids_are_ours) return;
    for (const gpuwatch_rec& head : holdings_.heads())
      if (head.tgid > 0 && head.tgid <= INT_MAX && ::kill(static_cast<pid_t>(head.tgid), 0) != 0 && errno == ESRCH)
        holdings_.ended({head.start_ns, head.tgid});
  }

  source::Source& source() { return *source_; }
  std::uint64_t first_ns() const { return first_ns_; }

 private:
  void take(const model::StoryEvent& event, const model::Actor& actor) {
    if (ours(event.head)) return;
    if (peak_wanted_) follow_peak(event);
    holdings_.observe(event, actor);
  }

  // The picture is taken before the first thing that makes it less, be it memory
  // or what uses it.
  void follow_peak(const model::StoryEvent& event) {
    using model::StoryKind;
    const auto* memory = std::get_if<model::MemoryBody>(&event.body);
    const bool counts =
        memory != nullptr && memory->location == model::Location::kGpu && event.kind != StoryKind::kMemoryRefused;
    const std::uint64_t before = total_;
    if (counts) {
      std::uint64_t& here = held_[event.gpu_device];
      total_ = total_ - here + memory->gpu_live_bytes;
      here = memory->gpu_live_bytes;
    }
    const bool less = total_ < before || event.kind == StoryKind::kContextDestroyed ||
                      event.kind == StoryKind::kChannelDestroyed || event.kind == StoryKind::kGpuClosed;
    if (less && before > most_) {
      most_ = before;
      peak_ = holdings_.snapshot(gpus_.gpus());
    }
  }

  std::unique_ptr<source::Source> source_;
  attribute::GpuDirectory& gpus_;
  const bool live_;
  pipeline::EventsOptions options_;
  std::unique_ptr<pipeline::CodeStory> code_;
  std::unique_ptr<pipeline::Events> events_;
  Holdings holdings_;
  std::uint64_t records_ = 0;
  std::uint64_t first_ns_ = 0;
  bool peak_wanted_ = false;
  std::map<std::int32_t, std::uint64_t> held_;  // by device
  std::uint64_t total_ = 0;
  std::uint64_t most_ = 0;
  std::optional<HoldingsSnapshot> peak_;
};

class Recording final : public Feed {
 public:
  explicit Recording(HoldingsSnapshot snapshot) : snapshot_(std::move(snapshot)) {}

  Status pump() override { return {}; }
  Result<HoldingsSnapshot> look() override { return snapshot_; }
  bool still() const override { return true; }

 private:
  HoldingsSnapshot snapshot_;
};

class Rings final : public Feed {
 public:
  Rings() : gpus_(attribute::GpuDirectoryOptions{}), pids_are_ours_(in_first_pid_namespace()) {}

  Status start(const Flags& flags) {
    if (!flags.has("no-names")) names_.emplace(attribute::local_name_sources());
    auto live = start_live(flags, selection_, GPUWATCH_MODE_DROP_NEWEST);
    if (!live) return std::move(live.error());
    start_images(selection_, **live, flags.has("baseline") || flags.has("policy"));
    reader_.emplace(std::move(*live), gpus_, names_ ? &*names_ : nullptr, true);
    return reader_->start(flags);
  }

  Status pump() override {
    const std::uint64_t until = base::monotonic_ns() + kPumpNs;
    do {
      if (Status status = reader_->source().next_batch(batch_); !status.ok()) return status;
      for (const model::RawRecord& record : batch_) reader_->observe(record);
    } while (!batch_.empty() && base::monotonic_ns() < until);
    if (batch_.empty()) reader_->settle(base::monotonic_ns());
    return {};
  }

  Result<HoldingsSnapshot> look() override {
    reader_->refresh(pids_are_ours_);
    return reader_->look("rings");
  }

  bool fresh() const override { return true; }

 private:
  attribute::GpuDirectory gpus_;
  const bool pids_are_ours_;
  std::optional<attribute::Names> names_;
  Selection selection_;
  std::optional<Reader> reader_;
  std::vector<model::RawRecord> batch_;
};

class Daemon final : public Feed {
 public:
  Daemon(std::string socket, HoldingsSnapshot first) : socket_(std::move(socket)), first_(std::move(first)) {}

  static Result<HoldingsSnapshot> ask(const std::string& socket) {
    control::Request request;
    request.verb = control::Verb::kHoldings;
    auto answer = control::ask(request, socket, kAnswerTimeout);
    if (!answer) return std::move(answer.error());
    auto snapshot = report::holdings_from_json(*answer);
    if (!snapshot) return std::move(snapshot.error()).with_context(socket);
    snapshot->source = "daemon";
    return snapshot;
  }

  Status pump() override { return {}; }
  Result<HoldingsSnapshot> look() override {
    if (!first_) return ask(socket_);
    HoldingsSnapshot snapshot = std::move(*first_);
    first_.reset();
    return snapshot;
  }

 private:
  std::string socket_;
  std::optional<HoldingsSnapshot> first_;
};

}  // namespace

Result<Moment> moment_from(const std::string& text) {
  if (text.empty() || text == "end") return Moment{};
  if (text == "peak") return Moment{Moment::Kind::kPeak, 0};
  const auto seconds = parse_seconds(text);
  if (!seconds)
    return Error(Code::kBadInput, "--at: end, peak or seconds after the first record, not \"" + text + "\"");
  return Moment{Moment::Kind::kSeconds, static_cast<std::uint64_t>(seconds->count())};
}

Result<std::unique_ptr<Feed>> open_recording(const std::string& file, const Moment& moment, const Flags& flags) {
  auto replay = source::ReplaySource::open(file);
  if (!replay) return std::move(replay.error());
  const source::GwcapHeader& header = (*replay)->header();
  if (header.schema > GPUWATCH_SCHEMA)
    say(file + ": record schema " + std::to_string(header.schema) + ", this program knows " +
        std::to_string(GPUWATCH_SCHEMA) + ": what is new in it is not shown");
  if (flags.has("baseline") || flags.has("policy")) (*replay)->keep_images();
  attribute::GpuDirectory gpus(gpus_of(header));
  Reader reader(std::move(*replay), gpus, nullptr, false);
  if (Status status = reader.start(flags); !status.ok()) return std::move(status.error());
  if (moment.kind == Moment::Kind::kPeak) reader.want_peak();
  std::vector<model::RawRecord> batch;
  bool reached = false;
  while (!reached && !stop_wanted()) {
    if (Status status = reader.source().next_batch(batch); !status.ok()) return std::move(status.error());
    if (batch.empty()) {
      if (reader.source().ended()) break;
      if (Status status = reader.source().wait(std::chrono::seconds(1)); !status.ok()) return std::move(status.error());
    }
    for (const model::RawRecord& record : batch) {
      reached = moment.kind == Moment::Kind::kSeconds && reader.first_ns() != 0 &&
                record.head.time_ns > reader.first_ns() + moment.after_ns;
      if (reached) break;
      reader.observe(record);
    }
  }
  if (moment.kind == Moment::Kind::kSeconds)
    reader.settle(reader.first_ns() + moment.after_ns);
  else
    reader.finish();
  return std::unique_ptr<Feed>(std::make_unique<Recording>(reader.look("recording")));
}

Result<std::unique_ptr<Feed>> open_rings(const Flags& flags) {
  auto rings = std::make_unique<Rings>();
  if (Status status = rings->start(flags); !status.ok()) return std::move(status.error());
  return std::unique_ptr<Feed>(std::move(rings));
}

Result<std::unique_ptr<Feed>> open_daemon(const std::string& socket) {
  auto first = Daemon::ask(socket);
  if (!first) return std::move(first.error());
  return std::unique_ptr<Feed>(std::make_unique<Daemon>(socket, std::move(*first)));
}

}  // namespace gpuwatch::cli::top
