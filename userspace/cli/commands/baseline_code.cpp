// SPDX-License-Identifier: Apache-2.0
// `gpuwatch baseline build`, `learn` and `check`: GPU code in files, recordings
// and running processes, hashed by identify's worker, put into a baseline or judged.
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/escape.h"
#include "cli/commands.h"
#include "cli/commands/baseline.h"
#include "cli/commands/baseline_resident.h"
#include "cli/live.h"
#include "cli/output.h"
#include "cli/selection.h"
#include "cli/signals.h"
#include "identify/cache.h"
#include "judge/judge.h"
#include "judge/provenance.h"
#include "model/definitions.h"
#include "pipeline/code_judge.h"
#include "pipeline/code_prints.h"
#include "pipeline/code_watch.h"
#include "scan/process_scan.h"
#include "source/replay_source.h"

namespace gpuwatch::cli {

using base::Code;
using base::Error;
using base::Result;
using base::Status;
using judge::Baseline;
using Json = nlohmann::ordered_json;

namespace {

constexpr std::size_t kBatch = 256;

identify::Options options_of(const Flags& flags) {
  identify::Options options;
  options.cache_path = identify::default_cache_path();
  if (const auto sm = flags.number("sm")) options.sm = static_cast<std::uint32_t>(*sm);
  return options;
}

Result<Baseline> open_output(const Flags& flags) {
  judge::BaselineInfo info;
  info.stance = flags.has("deny") ? judge::Stance::kDenied : judge::Stance::kKnown;
  info.label = flags.text("label");
  info.created_unix = static_cast<std::int64_t>(std::time(nullptr));
  return Baseline::open_or_make(flags.text("output"), info);
}

// Collects entries and writes them in batches; the first error stays.
class Writer {
 public:
  Writer(Baseline& baseline, std::string label) : baseline_(baseline), label_(std::move(label)) {}

  void take(model::ModulePrint print, judge::Source source) {
    source.label = label_;
    source.added_unix = now_;
    kernels_ += print.kernels.size();
    ++seen_;
    batch_.push_back({std::move(print), {std::move(source)}, {}});
    if (batch_.size() >= kBatch) flush();
  }

  void flush() {
    if (!status_.ok() || batch_.empty()) return;
    auto added = baseline_.add(batch_);
    batch_.clear();
    if (added)
      added_ += *added;
    else
      status_ = std::move(added.error());
  }

  const Status& status() const { return status_; }
  std::string summary() const {
    return baseline_.path() + ": " + std::to_string(added_) + " new of " + std::to_string(seen_) + " modules, " +
           std::to_string(kernels_) + " kernels";
  }

 private:
  Baseline& baseline_;
  std::string label_;
  std::int64_t now_ = static_cast<std::int64_t>(std::time(nullptr));
  std::vector<judge::Entry> batch_;
  std::uint64_t added_ = 0, seen_ = 0, kernels_ = 0;
  Status status_;
};

// Half-read code in a baseline would vouch for what nobody looked at.
std::string reason_to_leave_out(const identify::Entry& entry) {
  if (!entry.image.error.empty()) return entry.image.error;
  return entry.module.errors.empty() ? std::string() : entry.module.errors.front();
}

void say_errors(const std::vector<std::string>& errors, std::uint64_t count) {
  for (const std::string& error : errors) say(error);
  if (count > errors.size()) say(std::to_string(count - errors.size()) + " further errors");
}

std::string absolute(const std::string& path) {
  std::error_code error;
  const auto whole = std::filesystem::canonical(path, error);
  return error ? path : whole.string();
}

}  // namespace

namespace {

using TakePrint = std::function<void(model::ModulePrint, judge::Source)>;

// Hands on every module of the files; what could not be read goes to `problems`,
// "file: what", and is counted.
struct Problems {
  std::vector<std::string> errors;
  std::uint64_t count = 0;
};
Status scan_files(const Flags& flags, std::span<const std::string> paths, const TakePrint& take, Problems& problems) {
  judge::PackageIndex packages;
  identify::Identifier identifier(options_of(flags));
  std::string last_file;
  judge::Package package;
  pipeline::PrintSink* found = nullptr;
  pipeline::PrintSink sink(
      [&](const std::string& file, const identify::Entry& entry) {
        if (const std::string reason = reason_to_leave_out(entry); !reason.empty()) {
          found->error(file, "entry at " + std::to_string(entry.image.offset) + " left out: " + reason);
          return;
        }
        if (file != last_file) {
          last_file = file;
          package = packages.owner_of(file.substr(0, file.find('!')));
        }
        judge::Source source;
        source.path = file;
        source.manager = package.manager;
        source.package = package.name;
        source.version = package.version;
        source.container_offset = entry.image.container_offset;
        source.entry = entry.image.entry;
        take(pipeline::print_of(entry), std::move(source));
      },
      stop_wanted);
  found = &sink;
  for (const std::string& path : paths) {
    if (Status status = identifier.path(absolute(path), sink); !status.ok()) return status;
    if (stop_wanted()) break;
  }
  for (const std::string& warning : identifier.warnings()) say(warning);
  problems = {sink.errors(), sink.error_count()};
  return {};
}

// All of it, or nothing: what lies in GPU memory is asked before the baseline is touched.
Result<int> build_resident(const Flags& flags, std::span<const std::string> paths) {
  const auto now = static_cast<std::int64_t>(std::time(nullptr));
  std::vector<judge::Entry> entries;
  Problems problems;
  const auto take = [&](model::ModulePrint print, judge::Source source) {
    source.label = flags.text("label");
    source.added_unix = now;
    entries.push_back({std::move(print), {std::move(source)}, {}});
  };
  if (Status status = scan_files(flags, paths, take, problems); !status.ok()) return std::move(status.error());
  if (stop_wanted()) return Error(Code::kIo, "stopped before the end: nothing was written");
  auto asked = ask_residents(entries);
  if (!asked) return std::move(asked.error());
  if (asked->exit_code != kExitOk) return asked->exit_code;
  auto baseline = open_output(flags);
  if (!baseline) return std::move(baseline.error());
  auto added = baseline->add(entries);
  if (!added) return std::move(added.error());
  say_errors(problems.errors, problems.count);
  say(baseline->path() + ": " + std::to_string(*added) + " new of " + std::to_string(entries.size()) + " modules, " +
      std::to_string(asked->functions) + " functions as they lie in GPU memory under driver " + asked->driver);
  return problems.count + asked->left_out == 0 ? kExitOk : kExitFinding;
}

}  // namespace

Result<int> baseline_build(const Flags& flags, std::span<const std::string> paths) {
  if (flags.has("resident")) return build_resident(flags, paths);
  auto baseline = open_output(flags);
  if (!baseline) return std::move(baseline.error());
  Writer writer(*baseline, flags.text("label"));
  Problems problems;
  Status status = scan_files(
      flags, paths,
      [&](model::ModulePrint print, judge::Source source) { writer.take(std::move(print), std::move(source)); },
      problems);
  if (!status.ok()) return std::move(status.error());
  writer.flush();
  say_errors(problems.errors, problems.count);
  if (!writer.status().ok()) return writer.status().error();
  say(writer.summary());
  if (stop_wanted()) say("stopped before the end: the baseline is not complete");
  return problems.count == 0 && !stop_wanted() ? kExitOk : kExitFinding;
}

namespace {

struct Learned {
  std::uint64_t loads = 0;
  std::uint64_t unseen = 0;   // whose bytes were not there
  std::uint64_t damaged = 0;  // modules left out
};

// Puts the modules of every image that a source tells of into a baseline.
Status learn_from(source::Source& source, bool live, pipeline::CodeWatch& watch, Writer& writer,
                  std::uint64_t deadline_ns, Learned& learned) {
  std::vector<model::RawRecord> batch;
  while (true) {
    if (stop_wanted() || base::monotonic_ns() >= deadline_ns)
      if (Status status = source.stop(); !status.ok()) return status;
    if (Status status = source.next_batch(batch); !status.ok()) return status;
    if (batch.empty()) {
      if (source.ended()) return {};
      if (Status status = source.wait(std::chrono::milliseconds(100)); !status.ok()) return status;
    }
    for (const model::RawRecord& record : batch) {
      auto load = pipeline::CodeWatch::read(record);
      if (!load) continue;
      ++learned.loads;
      pipeline::CodeWatch::fetch(*load, source, live);
      watch.hash(*load);
      learned.unseen += load->gap == pipeline::LoadGap::kNone ? 0 : 1;
      for (const pipeline::CodeModule& module : load->modules) {
        if (!module.error.empty()) {
          ++learned.damaged;
          continue;
        }
        judge::Source from;
        from.path = !load->file.empty() && load->place == model::ImagePlace::kFile
                        ? load->file
                        : "memory of " + std::string(model::comm_of(load->head));
        from.container_offset = module.container_offset;
        from.entry = module.entry;
        writer.take(module.print, std::move(from));
      }
    }
    writer.flush();
    if (!writer.status().ok()) return writer.status();
  }
}

}  // namespace

Result<int> baseline_learn(const Flags& flags, std::span<const std::string> recordings) {
  auto baseline = open_output(flags);
  if (!baseline) return std::move(baseline.error());
  Writer writer(*baseline, flags.text("label"));
  pipeline::CodeWatch watch(options_of(flags));
  Learned learned;
  for (const std::string& name : recordings) {
    auto replay = source::ReplaySource::open(name);
    if (!replay) return std::move(replay.error());
    (*replay)->keep_images();
    if (Status status = learn_from(**replay, false, watch, writer, ~std::uint64_t{0}, learned); !status.ok())
      return std::move(status.error());
  }
  if (recordings.empty()) {
    Selection everything;
    auto live = start_live(flags, everything, GPUWATCH_MODE_DROP_NEWEST);
    if (!live) return std::move(live.error());
    start_images(everything, **live, true);
    std::uint64_t deadline = ~std::uint64_t{0};
    if (const auto duration = flags.duration("duration"))
      deadline = base::monotonic_ns() + static_cast<std::uint64_t>(duration->count());
    else
      say("learning what is loaded from now on; Ctrl-C ends it");
    if (Status status = learn_from(**live, true, watch, writer, deadline, learned); !status.ok())
      return std::move(status.error());
  }
  say(writer.summary() + ", of " + std::to_string(learned.loads) + " loads");
  if (learned.unseen > 0)
    say(std::to_string(learned.unseen) + " loads whose bytes were not there: what they loaded was not learnt");
  if (learned.damaged > 0) say(std::to_string(learned.damaged) + " damaged modules were left out");
  return learned.unseen + learned.damaged > 0 ? kExitFinding : kExitOk;
}

namespace {

Json difference_json(const model::Difference& difference) {
  return Json{{"kernel", base::to_utf8(difference.kernel)},
              {"section", base::to_utf8(difference.section)},
              {"what", difference.what},
              {"baseline", difference.baseline},
              {"seen", difference.seen}};
}

void append_check(std::string& out, const std::string& file, const identify::Entry& entry,
                  const model::ModulePrint& print, const model::Judgement& judgement, bool json) {
  if (json) {
    Json line{{"type", "check"},
              {"file", base::to_utf8(file)},
              {"container_offset", entry.image.container_offset},
              {"entry", entry.image.entry},
              {"kind", model::code_kind_name(print.kind)},
              {"sm", print.sm},
              {"r", model::hex_of(print.r)},
              {"kernels", print.kernels.size()},
              {"verdict", model::verdict_name(judgement.verdict)},
              {"why", base::to_utf8(judgement.why)}};
    if (!judgement.baseline.empty()) line["baseline"] = base::to_utf8(judgement.baseline);
    if (!judgement.source.empty()) line["known_from"] = base::to_utf8(judgement.source);
    if (judgement.allowed) line["allowed"] = true;
    for (const model::Difference& difference : judgement.differences)
      line["differences"].push_back(difference_json(difference));
    out += line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    return;
  }
  base::append_escaped(out, file);
  out += ": entry " + std::to_string(entry.image.entry) + " at " + std::to_string(entry.image.container_offset) + ": " +
         std::string(model::verdict_name(judgement.verdict)) + ": ";
  base::append_escaped(out, judgement.why);
  out += '\n';
  for (const model::Difference& difference : judgement.differences) {
    out += "    ";
    base::append_escaped(out, (difference.kernel.empty() ? "module" : "kernel " + difference.kernel) + ", " +
                                  difference.section + ": " + difference.what + ": " + difference.baseline + " -> " +
                                  difference.seen);
    out += '\n';
  }
}

// Judges entries and prints what is not as it should be.
class Checker {
 public:
  Checker(const Flags& flags, pipeline::Baselines baselines, judge::Policy policy)
      : json_(flags.has("json")),
        options_{.explain = flags.has("explain")},
        baselines_(std::move(baselines)),
        policy_(std::move(policy)) {}

  void take(const std::string& file, const identify::Entry& entry, model::CodeOrigin origin) {
    if (!status_.ok()) return;
    model::ModulePrint print = pipeline::print_of(entry);
    print.origin = origin;
    model::Judgement judgement;
    if (const std::string reason = reason_to_leave_out(entry); !reason.empty()) {
      judgement = judge::unverified("damaged code: " + reason);
    } else {
      auto judged = judge::judge(print, {}, baselines_.lookups(), policy_, options_);
      if (!judged) {
        status_ = std::move(judged.error());
        return;
      }
      judgement = std::move(*judged);
    }
    if (origin == model::CodeOrigin::kMemory) judgement.why += " (it was in memory; that it was loaded is not known)";
    ++checked_;
    const bool fine = pipeline::is_fine(judgement);
    findings_ += fine ? 0 : 1;
    // Quiet about what is as it should be, except in JSON.
    if (!fine || json_) append_check(output_.buffer(), file, entry, print, judgement, json_);
    status_ = output_.flush_if_full();
  }

  Status flush() {
    if (!status_.ok()) return status_.error();
    return output_.flush();
  }
  std::uint64_t findings() const { return findings_; }
  std::uint64_t checked() const { return checked_; }

 private:
  bool json_;
  judge::JudgeOptions options_;
  pipeline::Baselines baselines_;
  judge::Policy policy_;
  Output output_;
  Status status_;
  std::uint64_t checked_ = 0, findings_ = 0;
};

// What a process has mapped or in memory, judged as it is found.
class ProcessCheck final : public scan::ScanSink {
 public:
  ProcessCheck(identify::Identifier& identifier, Checker& checker)
      : identifier_(identifier),
        files_([&checker](const std::string& file,
                          const identify::Entry& entry) { checker.take(file, entry, model::CodeOrigin::kFile); },
               stop_wanted),
        memory_([&checker](const std::string& file,
                           const identify::Entry& entry) { checker.take(file, entry, model::CodeOrigin::kMemory); },
                stop_wanted) {}

  void file(scan::MappedFile file) override {
    std::string name = file.path;
    if (file.deleted && !file.memfd) name += " (deleted)";
    note(identifier_.file(name, file.fd.get(), files_), name);
  }
  void memory(scan::MemoryImage image) override {
    char place[64];
    std::snprintf(place, sizeof place, " at 0x%llx", static_cast<unsigned long long>(image.address));
    const std::string name = image.mapping + place;
    const identify::Bytes bytes(reinterpret_cast<const std::uint8_t*>(image.bytes.data()), image.bytes.size());
    note(identifier_.bytes(name, bytes, memory_), name);
  }

  std::vector<std::string> errors() const {
    std::vector<std::string> all = files_.errors();
    all.insert(all.end(), memory_.errors().begin(), memory_.errors().end());
    return all;
  }
  std::uint64_t error_count() const { return files_.error_count() + memory_.error_count(); }

 private:
  void note(Status status, const std::string& name) {
    if (!status.ok()) files_.error(name, status.error().message());
  }
  identify::Identifier& identifier_;
  pipeline::PrintSink files_, memory_;
};

constexpr std::uint64_t kScanStep = 64 << 20;  // a signal is answered after each

Status scan_process(std::uint32_t pid, ProcessCheck& sink) {
  scan::ProcessScan scan;
  for (bool done = false; !done && !stop_wanted();) {
    auto step = scan.step(pid, kScanStep, sink);
    if (!step) return std::move(step.error());
    done = *step;
  }
  if (scan.counts().refused > 0)
    say(std::to_string(scan.counts().refused) + " mappings could not be looked into" +
        (::geteuid() == 0 ? "" : "; as root all of them can"));
  return {};
}

int check_result(const Checker& checker, std::uint64_t errors) {
  say(std::to_string(checker.checked()) + " modules checked, " + std::to_string(checker.findings()) + " findings" +
      (checker.checked() == 0 ? ": no GPU code there" : ""));
  if (checker.findings() != 0) return kExitFinding;
  return errors == 0 ? kExitOk : kExitTrouble;
}

}  // namespace

Result<int> baseline_check(const Flags& flags, std::span<const std::string> paths) {
  const auto process = flags.number("process");
  if (paths.empty() != process.has_value())
    return Error(Code::kBadInput, "baseline check: name paths, or a process with --process PID");
  auto baselines = pipeline::Baselines::open(flags.list("db"));
  if (!baselines) return std::move(baselines.error());
  if (baselines->empty())
    return Error(Code::kBadInput, std::string("no baseline to compare with: name one with --db or in "
                                              "GPUWATCH_BASELINE, or make ") +
                                      pipeline::kDefaultBaseline);
  auto policy = pipeline::read_policy(flags.text("policy"));
  if (!policy) return std::move(policy.error());
  identify::Identifier identifier(options_of(flags));
  Checker checker(flags, std::move(*baselines), std::move(*policy));
  pipeline::PrintSink sink([&](const std::string& file,
                               const identify::Entry& entry) { checker.take(file, entry, model::CodeOrigin::kFile); },
                           stop_wanted);
  std::uint64_t errors = 0;
  if (process) {
    ProcessCheck check(identifier, checker);
    if (Status status = scan_process(static_cast<std::uint32_t>(*process), check); !status.ok())
      return std::move(status.error());
    say_errors(check.errors(), check.error_count());
    errors = check.error_count();
  }
  for (const std::string& path : paths) {
    if (Status status = identifier.path(absolute(path), sink); !status.ok()) return std::move(status.error());
    if (stop_wanted()) break;
  }
  if (Status status = checker.flush(); !status.ok()) return std::move(status.error());
  say_errors(sink.errors(), sink.error_count());
  for (const std::string& warning : identifier.warnings()) say(warning);
  if (stop_wanted()) return Error(Code::kIo, "stopped before the end");
  return check_result(checker, errors + sink.error_count());
}

}  // namespace gpuwatch::cli
