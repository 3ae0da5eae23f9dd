// SPDX-License-Identifier: Apache-2.0
// `gpuwatch tail` and `gpuwatch decode`: follow a source and print lines.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "cli/attribution_stats.h"
#include "cli/commands.h"
#include "cli/image_files.h"
#include "cli/live.h"
#include "cli/lone_call.h"
#include "cli/output.h"
#include "cli/reports.h"
#include "cli/signals.h"
#include "cli/tree_command.h"
#include "cli/view.h"
#include "identify/cache.h"
#include "pipeline/code_story.h"
#include "source/replay_source.h"

namespace gpuwatch::cli {

using base::Error;
using base::Result;
using base::Status;

namespace {

// Upper bound of the delay between a call and its line when calls are few.
constexpr std::chrono::milliseconds kPollTimeout{100};

struct TailPlan {
  std::string replay;            // empty: live
  bool replay_may_wait = false;  // a pipe or a terminal
  std::string images;            // directory for the images of a recording; empty: none
  bool raw = false;
  bool json = false;
  bool fields = false;
  bool tell_unnamed = false;                   // at the end, what had no name
  std::optional<model::DriverVersion> driver;  // rather than the source's
  bool detail = false;
  bool utc = false;
  bool stats = false;
  std::optional<bool> names;  // absent: live only
  std::optional<Privacy> privacy;
  bool header = true;
  bool follow = true;
  bool no_images = false;
  bool code = false;           // tell which GPU code is loaded
  Reports* reports = nullptr;  // instead of lines
  std::optional<std::uint64_t> count;
  std::optional<std::chrono::nanoseconds> duration;
};

class Follower {
 public:
  Follower(source::Source& source, View& view, Output& output, const TailPlan& plan)
      : source_(source), view_(view), output_(output), plan_(plan) {
    if (plan.duration) deadline_ns_ = base::monotonic_ns() + static_cast<std::uint64_t>(plan.duration->count());
  }

  Status run() {
    if (plan_.header) view_.header(output_.buffer());
    bool paused_before = false;
    while (!finished()) {
      if (stop_wanted() || base::monotonic_ns() >= deadline_ns_)
        if (Status status = source_.stop(); !status.ok()) return status;
      if (Status status = source_.next_batch(batch_); !status.ok()) {
        // A signal that ends us while a pipe keeps us waiting is no trouble.
        if (stop_wanted() && status.error().sys_errno() == EINTR) return output_.flush();
        (void)print();  // what came before the damage is good
        (void)output_.flush().ok();
        return status;
      }
      if (batch_.empty()) {
        if (source_.ended()) break;
        // Nothing more to read now: what we have must be seen.
        if (plan_.replay.empty()) lines_ += view_.settle(base::monotonic_ns(), output_.buffer());
        if (Status status = output_.flush(); !status.ok()) return status;
        if (!plan_.follow && paused_before) break;
        paused_before = true;
        if (Status status = source_.wait(next_timeout()); !status.ok()) return status;
        continue;
      }
      paused_before = false;
      if (Status status = print(); !status.ok()) return status;
      // The next batch may keep us waiting, on a pipe: what we have must be seen.
      if (plan_.replay_may_wait)
        if (Status status = output_.flush(); !status.ok()) return status;
    }
    if (!finished()) lines_ += view_.finish(output_.buffer());
    return output_.flush();
  }

  std::uint64_t records() const { return records_; }

 private:
  bool finished() const { return output_.closed() || (plan_.count && lines_ >= *plan_.count); }

  std::chrono::milliseconds next_timeout() const {
    const std::uint64_t now = base::monotonic_ns();
    const std::uint64_t left_ms = deadline_ns_ > now ? (deadline_ns_ - now) / 1'000'000 + 1 : 0;
    return std::min(kPollTimeout,
                    std::chrono::milliseconds(static_cast<std::int64_t>(std::min<std::uint64_t>(left_ms, 1000))));
  }

  Status print() {
    for (const model::RawRecord& record : batch_) {
      if (finished()) break;
      ++records_;
      if (!plan_.images.empty())
        if (Status status = write_image(source_, record, plan_.images); !status.ok()) return status;
      lines_ += view_.observe(record, output_.buffer());
      if (Status status = output_.flush_if_full(); !status.ok()) return status;
    }
    return {};
  }

  source::Source& source_;
  View& view_;
  Output& output_;
  const TailPlan& plan_;
  std::vector<model::RawRecord> batch_;
  std::uint64_t deadline_ns_ = ~std::uint64_t{0};
  std::uint64_t lines_ = 0;
  std::uint64_t records_ = 0;
};

bool may_wait(const std::string& path) {
  struct stat info {};
  const int failed = path == "-" ? ::fstat(STDIN_FILENO, &info) : ::stat(path.c_str(), &info);
  return failed != 0 || !S_ISREG(info.st_mode);
}

model::GpuList gpus_of(const source::GwcapHeader& header) {
  model::GpuList gpus;
  for (const source::GwcapGpu& gpu : header.gpus)
    gpus.push_back({static_cast<std::int32_t>(gpu.minor), gpu.pci, gpu.uuid, gpu.name, {}});
  return gpus;
}

Status tell_stats(const pipeline::AttributionStats& stats, const model::GpuList& gpus, const TailPlan& plan,
                  Output& output) {
  if (plan.json) {
    append_stats_json(output.buffer(), stats);
    return output.flush();
  }
  std::string text;
  append_stats_text(text, stats, gpus);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    say(text.substr(at, end - at));
    at = end + 1;
  }
  return {};
}

// What the tables had no name for, by kind, so that nothing is missed quietly.
void tell_unnamed(const View& view) {
  const decode::Stats& stats = view.decoder().stats();
  std::string text;
  const auto tell = [&](std::uint64_t count, const char* what) {
    if (count == 0) return;
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + what;
  };
  tell(stats.unknown_escapes, "escapes");
  tell(stats.unknown_uvm, "UVM commands");
  tell(stats.unknown_nvkms, "display commands");
  tell(stats.unknown_other, "commands of other nodes");
  tell(stats.unknown_classes, "classes");
  tell(stats.unknown_controls, "controls");
  tell(stats.unknown_status, "status codes");
  tell(stats.unknown_types, "record types");
  tell(stats.malformed, "malformed records");
  if (const auto* describer = view.describer()) {
    tell(describer->unnamed().structs, "structs without known fields");
    tell(describer->unnamed().bytes, "bytes that belong to no field");
  }
  if (!text.empty()) say("without a name: " + text);
  if (view.decoder().inherited())
    say(std::string(view.driver_known() ? "the driver is of no branch in the tables"
                                        : "the driver's version is not known") +
        ": inherited from branch " + std::string(view.decoder().branch()) +
        ", names and fields are likely, not verified");
}

Result<std::unique_ptr<pipeline::CodeStory>> make_code_story(const Flags& flags, const Selection& selection,
                                                             source::Source& source, bool live, bool of_tail) {
  pipeline::CodeStoryOptions options;
  options.live = live;
  options.identify.cache_path = identify::default_cache_path();
  options.identify.workers = 1;
  pipeline::CodeJudgeOptions how;
  if (const auto sm = flags.number("sm")) how.sm = static_cast<std::uint32_t>(*sm);
  how.explain = flags.has("explain");
  const auto make_judge = [&]() -> Result<pipeline::CodeJudge> {
    // Nobody's baseline by default: comparing is asked for.
    pipeline::Baselines baselines;
    if (const auto names = flags.list("baseline"); !names.empty()) {
      auto opened = pipeline::Baselines::open(names);
      if (!opened) return std::move(opened.error());
      baselines = std::move(*opened);
    }
    auto policy = pipeline::read_policy(flags.text("policy"));
    if (!policy) return std::move(policy.error());
    return pipeline::CodeJudge(how, std::move(baselines), std::move(*policy));
  };
  auto judge = make_judge();
  if (!judge) return std::move(judge.error());
  if (how.explain && flags.list("baseline").empty())
    return Error(base::Code::kBadInput, "--explain has no meaning without --baseline");
  std::unique_ptr<pipeline::CodeScan> scan;
  if (of_tail && flags.has("scan")) {
    if (!live || flags.list("baseline").empty())
      return Error(base::Code::kBadInput, "--scan: wants live processes and a --baseline to compare with");
    auto second = make_judge();
    if (!second) return std::move(second.error());
    pipeline::CodeScanOptions scan_options;
    scan_options.identify = options.identify;
    scan_options.stop = stop_wanted;
    scan = std::make_unique<pipeline::CodeScan>(std::move(scan_options), std::move(*second));
  }
  std::optional<std::chrono::nanoseconds> wait;
  if (of_tail) wait = flags.duration("unverified-after");
  if (of_tail && !wait && judge->judges()) wait = std::chrono::seconds(10);
  if (wait && selection.wants(GPUWATCH_REC_IMAGE))
    options.unverified_after_ns = static_cast<std::uint64_t>(wait->count());
  return std::make_unique<pipeline::CodeStory>(std::move(options), std::move(*judge), std::move(scan), source);
}

// What the code story says at the end, and the exit status it asks for.
Result<int> tell_code(const pipeline::CodeStory& code, bool replayed, bool judged) {
  if (const std::string line = code.gap_line(); !line.empty()) say(line);
  if (replayed && judged && code.loads() == 0)
    say("no load of GPU code in the recording: was it made with --no-images, or before there were images?");
  if (const std::string trouble = code.trouble(); !trouble.empty()) return Error(base::Code::kIo, trouble);
  return code.findings() > 0 ? kExitFinding : kExitOk;
}

Result<int> follow(TailPlan plan, const Flags& flags, const std::string& filter_text, Selection selection) {
  std::optional<Filter> filter;
  if (!filter_text.empty()) {
    auto compiled = Filter::compile(filter_text);
    if (!compiled) return std::move(compiled.error()).with_context("--filter");
    filter = std::move(*compiled);
  }

  std::unique_ptr<source::Source> source;
  if (!plan.replay.empty()) {
    auto replay = source::ReplaySource::open(plan.replay);
    if (!replay) return std::move(replay.error());
    if ((*replay)->header().schema > GPUWATCH_SCHEMA)
      say(plan.replay + ": record schema " + std::to_string((*replay)->header().schema) + ", this program knows " +
          std::to_string(GPUWATCH_SCHEMA) + ": what is new in it is not shown");
    if (!plan.images.empty() || plan.code) (*replay)->keep_images();
    source = std::move(*replay);
    plan.replay_may_wait = may_wait(plan.replay);
  } else {
    auto live = start_live(flags, selection, GPUWATCH_MODE_DROP_NEWEST);
    if (!live) return std::move(live.error());
    if (plan.code || (plan.raw && !plan.no_images)) start_images(selection, **live, plan.code);
    source = std::move(*live);
  }

  const source::GwcapHeader& header = source->header();
  ViewOptions options;
  options.raw = plan.raw;
  options.json = plan.json;
  options.fields = plan.fields;
  options.detail = plan.detail;
  options.reports = plan.reports;
  options.select_here = !plan.replay.empty();
  options.text.colour = !plan.json && wants_colour();
  options.text.realtime_offset_ns = header.realtime_minus_monotonic_ns;
  options.text.utc_offset_s = plan.utc ? 0 : local_utc_offset_s(header.started_realtime_ns);
  options.json_options.realtime_offset_ns = header.realtime_minus_monotonic_ns;
  const auto driver =
      plan.driver.value_or(model::parse_driver_version(header.driver_version).value_or(model::DriverVersion{}));
  attribute::GpuDirectory gpus = plan.replay.empty() ? attribute::GpuDirectory(attribute::GpuDirectoryOptions{})
                                                     : attribute::GpuDirectory(gpus_of(header));
  options.gpus = &gpus;
  options.live = plan.replay.empty();
  std::optional<attribute::Names> names;
  if (plan.names.value_or(options.live)) names.emplace(attribute::local_name_sources());
  options.names = names ? &*names : nullptr;
  options.privacy = plan.privacy ? &*plan.privacy : nullptr;
  std::unique_ptr<pipeline::CodeStory> code;
  if (plan.code) {
    auto made = make_code_story(flags, selection, *source, options.live, !plan.raw);
    if (!made) return std::move(made.error());
    code = std::move(*made);
    options.code = code.get();
  }
  View view(options, driver, std::move(filter), selection);
  Output output;
  Follower follower(*source, view, output, plan);
  Status status = follower.run();
  if (plan.stats)
    if (Status told = tell_stats(view.stats(), gpus.gpus(), plan, output); status.ok()) status = std::move(told);
  const model::LossCounts lost = source->lost();
  // What came before damage is good here too.
  if (plan.reports != nullptr)
    if (Status told = plan.reports->finish(output, header, lost, plan.replay); status.ok()) status = std::move(told);
  say(loss_line(lost, follower.records()));
  if (plan.tell_unnamed) tell_unnamed(view);
  if (!status.ok()) return std::move(status.error());
  if (code) {
    auto told = tell_code(*code, !options.live, flags.has("baseline"));
    if (!told || *told != kExitOk) return told;
  }
  // A flight recorder overwrites by intent: told above, no finding.
  const bool finding = lost.total() > lost.by_reason[GPUWATCH_LOSS_OVERWRITTEN];
  return finding ? kExitFinding : kExitOk;
}

}  // namespace

Result<int> run_tail(const Flags& flags) {
  TailPlan plan;
  if (flags.has("replay") && flags.text("replay").empty())
    return Error(base::Code::kBadInput, "--replay: no file named");
  plan.replay = flags.text("replay");
  plan.raw = flags.has("raw");
  plan.json = flags.has("json");
  plan.detail = flags.has("detail");
  plan.utc = flags.has("utc");
  plan.stats = flags.has("stats");
  if (flags.has("names")) plan.names = true;
  if (flags.has("no-names")) plan.names = false;
  if (flags.has("private-key") && !flags.has("private"))
    return Error(base::Code::kBadInput, "--private-key has no meaning without --private");
  if (flags.has("private")) {
    auto privacy = Privacy::with_key_file(flags.text("private-key"));
    if (!privacy) return std::move(privacy.error());
    plan.privacy = std::move(*privacy);
  }
  plan.header = !flags.has("no-header");
  plan.follow = !flags.has("no-follow");
  plan.count = flags.number("count");
  plan.duration = flags.duration("duration");
  if (!plan.replay.empty() && flags.has("ring-bytes")) say("--ring-bytes has no meaning with --replay, ignoring it");
  auto reports = Reports::from_flags(flags);
  if (!reports) return std::move(reports.error());
  plan.reports = reports->get();
  plan.header = plan.header && plan.reports == nullptr;
  plan.no_images = flags.has("no-images");
  plan.code = !plan.raw && plan.reports == nullptr && !plan.no_images;
  if (!plan.code)
    for (const char* name : {"baseline", "policy", "unverified-after", "explain", "scan", "sm"})
      if (flags.has(name))
        return Error(base::Code::kBadInput,
                     "--" + std::string(name) + " has no meaning with --raw, --summary or --no-images");
  auto selection = Selection::from_flags(flags);
  if (!selection) return std::move(selection.error());
  return follow(plan, flags, flags.text("filter"), std::move(*selection));
}

Result<int> run_decode(const Flags& flags) {
  TailPlan plan;
  if (flags.has("driver")) {
    auto driver = driver_from_flag(flags.text("driver"));
    if (!driver) return std::move(driver.error());
    plan.driver = *driver;
  }
  if (is_lone_call(flags)) return decode_lone_call(flags, plan.driver);
  if (flags.arguments().empty())
    return Error(base::Code::kBadInput,
                 "no recording named; give a FILE, or --device, --request and --arg to decode one call");
  if (flags.has("at") && !flags.has("tree"))
    return Error(base::Code::kBadInput, "--at: has a meaning with --tree only");
  if (flags.has("tree")) {
    TreeRequest request;
    request.file = flags.arguments().front();
    if (flags.has("at")) request.at = flags.text("at");
    request.json = flags.has("json");
    request.driver = plan.driver;
    return print_tree(request);
  }
  plan.replay = flags.arguments().front();
  plan.raw = true;
  plan.tell_unnamed = true;
  plan.fields = flags.has("fields");
  plan.json = flags.has("json");
  plan.utc = flags.has("utc");
  auto reports = Reports::from_flags(flags);
  if (!reports) return std::move(reports.error());
  plan.reports = reports->get();
  plan.images = flags.text("images");
  plan.code = flags.has("modules") || flags.has("baseline") || flags.has("policy");
  for (const char* name : {"sm", "explain"})
    if (flags.has(name) && !plan.code)
      return Error(base::Code::kBadInput, "--" + std::string(name) + " has no meaning without --modules or --baseline");
  if (plan.code && (plan.reports != nullptr || !plan.images.empty()))
    return Error(base::Code::kBadInput, "--modules and --baseline do not go with --summary, --timeline or --images");
  return follow(plan, flags, flags.text("filter"), Selection{});
}

}  // namespace gpuwatch::cli
