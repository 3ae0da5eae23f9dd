// SPDX-License-Identifier: Apache-2.0
#include "cli/reports.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "base/fd.h"
#include "base/io.h"
#include "report/summary_print.h"
#include "report/timeline_svg.h"

namespace gpuwatch::cli {

using base::Code;
using base::Error;
using base::Result;
using base::Status;

namespace {

std::string base_name(const std::string& path) {
  if (path.empty()) return "live";
  if (path == "-") return "standard input";
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

report::Origin origin_of(const source::GwcapHeader& header, const model::LossCounts& lost) {
  report::Origin origin;
  origin.recorder = header.source;
  origin.driver_version = header.driver_version;
  for (const source::GwcapGpu& gpu : header.gpus) origin.gpus.push_back({gpu.minor, gpu.name});
  origin.lost = lost.total();
  return origin;
}

// Whole or not at all: an older picture stays until the new one is there. What
// is no plain file, a pipe or /dev/stdout, is written to instead.
Status write_file(const std::string& path, const std::string& text) {
  struct stat info {};
  const bool other = ::lstat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
  const std::string target = other ? path : path + ".new";
  const base::Fd fd(::open(target.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd.valid()) return Error::from_errno(target);
  Status status = base::write_all(fd.get(), text);
  if (!status.ok()) status = std::move(status.error()).with_context(target);
  if (other) return status;
  if (status.ok() && ::rename(target.c_str(), path.c_str()) != 0) status = Error::from_errno(path);
  if (!status.ok()) ::unlink(target.c_str());
  return status;
}

}  // namespace

Result<std::unique_ptr<Reports>> Reports::from_flags(const Flags& flags) {
  const bool decode = flags.command() == "decode";
  const bool timeline = decode && flags.has("timeline");
  const bool window = decode && (flags.has("since") || flags.has("until"));
  if (flags.has("by") && !flags.has("summary"))
    return Error(Code::kBadInput, "--by groups a summary; give --summary too");
  if (!flags.has("summary") && !timeline) {
    if (window) return Error(Code::kBadInput, "--since and --until limit a --summary or a --timeline; give one");
    return std::unique_ptr<Reports>();
  }
  auto reports = std::make_unique<Reports>();
  reports->summary_wanted_ = flags.has("summary");
  reports->json_ = flags.has("json");
  if (timeline) {
    reports->timeline_path_ = flags.text("timeline");
    if (reports->timeline_path_.empty())
      return Error(Code::kBadInput, "--timeline: no file named; - is standard output");
  }
  const std::string by = flags.text("by");
  if (by == "container")
    reports->by_ = report::GroupBy::kContainer;
  else if (!by.empty() && by != "process")
    return Error(Code::kBadInput, "--by: process or container, not \"" + by + "\"");
  if (window) {
    if (const auto since = flags.duration("since"))
      reports->window_.since_ns = static_cast<std::uint64_t>(since->count());
    if (const auto until = flags.duration("until"))
      reports->window_.until_ns = static_cast<std::uint64_t>(until->count());
    if (reports->window_.until_ns <= reports->window_.since_ns)
      return Error(Code::kBadInput, "--until must be later than --since");
  }
  return reports;
}

void Reports::start(report::Summary::ActorLookup who) {
  if (summary_wanted_) {
    report::SummaryOptions options;
    options.by = by_;
    options.since_ns = window_.since_ns;
    options.until_ns = window_.until_ns;
    summary_.emplace(options, who);
  }
  if (!timeline_path_.empty()) timeline_.emplace(std::move(who));
}

void Reports::observe(const model::Call& call) {
  if (summary_) summary_->observe(call);
  if (timeline_) timeline_->observe(call);
}

void Reports::observe(const model::StoryEvent& event) {
  if (summary_) summary_->observe(event);
  if (timeline_) timeline_->observe(event);
}

Status Reports::finish(Output& output, const source::GwcapHeader& header, const model::LossCounts& lost,
                       const std::string& name) {
  const report::Origin origin = origin_of(header, lost);
  if (summary_) {
    if (json_)
      report::append_summary_json(output.buffer(), summary_->result(), origin);
    else
      report::append_summary_text(output.buffer(), summary_->result(), origin);
    if (Status status = output.flush(); !status.ok()) return status;
  }
  if (!timeline_) return {};
  report::TimelineSvgOptions options;
  options.title = base_name(name);
  if (!header.label.empty()) options.title += " of " + header.label;
  options.realtime_offset_ns = header.realtime_minus_monotonic_ns;
  options.since_ns = window_.since_ns;
  options.until_ns = window_.until_ns;
  const std::string svg = report::timeline_svg(timeline_->result(), origin, options);
  if (timeline_path_ != "-") return write_file(timeline_path_, svg);
  output.buffer() += svg;
  return output.flush();
}

}  // namespace gpuwatch::cli
