// SPDX-License-Identifier: Apache-2.0
// `gpuwatch top`: looks at the holdings again and again and shows them: on the
// terminal, as tables, or as JSON lines. Where they come from is top/feed.h's,
// what they look like top/ui.h's.
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "attribute/gpu_time.h"
#include "attribute/user_names.h"
#include "base/clock.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/privacy.h"
#include "cli/signals.h"
#include "cli/top/feed.h"
#include "cli/top/screen.h"
#include "cli/top/table.h"
#include "cli/top/ui.h"
#include "cli/view.h"
#include "control/protocol.h"

namespace gpuwatch::cli {

using base::Code;
using base::Error;
using base::Result;
using base::Status;
using report::HeldProcess;
using report::HoldingsSnapshot;
using top::Feed;

namespace {

constexpr std::chrono::milliseconds kKeyWait{50};

struct TopPlan {
  top::ListOptions list;
  std::optional<std::uint64_t> count;
  std::uint64_t delay_ns = 2'000'000'000;
  bool json = false;
  bool utc = false;
  bool screen = false;
  std::optional<Privacy> privacy;
};

template <typename Each>
void for_each_process(HoldingsSnapshot& snapshot, Each each) {
  for (report::HeldGpu& gpu : snapshot.gpus)
    for (report::HeldContainer& container : gpu.containers)
      for (HeldProcess& process : container.processes) each(gpu, process);
}

// Asking NVML opens the card: who looks is no holder.
void leave_out_ourselves(HoldingsSnapshot& snapshot) {
  const auto self = static_cast<std::uint32_t>(::getpid());
  for (report::HeldGpu& gpu : snapshot.gpus) {
    for (report::HeldContainer& container : gpu.containers)
      std::erase_if(container.processes, [&](const HeldProcess& process) { return process.who.pid == self; });
    std::erase_if(gpu.containers, [](const report::HeldContainer& container) { return container.processes.empty(); });
  }
  std::erase_if(snapshot.gpus, [](const report::HeldGpu& gpu) { return gpu.containers.empty(); });
}

// Through the same rule that hides an actor of tail: what it does not let
// through is not shown here either.
void hide(Privacy& privacy, HoldingsSnapshot& snapshot) {
  for_each_process(snapshot, [&](const report::HeldGpu&, HeldProcess& process) {
    report::Identity& who = process.who;
    model::Actor actor;
    actor.cgroup_id = who.cgroup_id;
    actor.exe = who.exe;
    actor.cgroup_path = who.cgroup_path;
    actor.runtime = who.runtime;
    actor.container_id = who.container_id;
    actor.container_name = who.container_name;
    actor.image = who.image;
    actor.pod_uid = who.pod_uid;
    actor.pod_name = who.pod_name;
    actor.pod_namespace = who.pod_namespace;
    actor.unit = who.unit;
    if (who.slurm_job >= 0) actor.slurm_job = static_cast<std::uint32_t>(who.slurm_job);
    const model::Actor shown = privacy.hide(actor);
    report::Identity hidden;
    hidden.pid = who.pid;
    hidden.ns_pid = who.ns_pid;
    hidden.start_ns = who.start_ns;
    hidden.uid = privacy.user(who.uid);
    hidden.comm = privacy.pseudonym("comm", who.comm);
    hidden.cgroup_id = shown.cgroup_id;
    hidden.exe.assign(shown.exe);
    hidden.cgroup_path.assign(shown.cgroup_path);
    hidden.runtime.assign(shown.runtime);
    hidden.container_id.assign(shown.container_id);
    hidden.container_name.assign(shown.container_name);
    hidden.image.assign(shown.image);
    hidden.pod_uid.assign(shown.pod_uid);
    hidden.pod_name.assign(shown.pod_name);
    hidden.pod_namespace.assign(shown.pod_namespace);
    hidden.unit.assign(shown.unit);
    if (shown.slurm_job) hidden.slurm_job = *shown.slurm_job;
    who = std::move(hidden);
  });
  for (report::HeldGpu& gpu : snapshot.gpus)
    for (report::HeldContainer& container : gpu.containers)
      if (!container.processes.empty()) container.key = report::container_key(container.processes.front().who);
}

// One look after the other, with what this machine adds to them.
class Looks {
 public:
  Looks(Feed& feed, TopPlan& plan, bool gpu_time) : feed_(feed), plan_(plan) {
    if (gpu_time && !feed.still()) gpu_time_.emplace();
  }

  Status again() {
    auto got = feed_.look();
    if (!got) return std::move(got.error());
    snapshot_ = std::move(*got);
    if (!feed_.still()) leave_out_ourselves(snapshot_);
    if (gpu_time_) add_gpu_time();
    if (plan_.privacy) hide(*plan_.privacy, snapshot_);
    return {};
  }

  const HoldingsSnapshot& snapshot() const { return snapshot_; }

 private:
  void add_gpu_time() {
    std::vector<std::int32_t> minors;
    for (const report::HeldGpu& gpu : snapshot_.gpus)
      if (gpu.minor >= 0) minors.push_back(gpu.minor);
    gpu_time_->used(minors);
    for_each_process(snapshot_, [&](const report::HeldGpu& gpu, HeldProcess& process) {
      if (process.ended_ns == 0) process.gpu_percent = gpu_time_->percent(gpu.minor, process.who.pid);
    });
  }

  Feed& feed_;
  TopPlan& plan_;
  std::optional<attribute::GpuTime> gpu_time_;
  HoldingsSnapshot snapshot_;
};

std::int32_t utc_offset(const TopPlan& plan, const HoldingsSnapshot& snapshot) {
  const auto at_ns =
      static_cast<std::int64_t>(snapshot.at_ns + static_cast<std::uint64_t>(snapshot.realtime_offset_ns));
  return plan.utc ? 0 : local_utc_offset_s(static_cast<std::uint64_t>(std::max<std::int64_t>(at_ns, 0)));
}

Status draw_screen(Feed& feed, Looks& looks, TopPlan& plan) {
  const bool colour = wants_colour();
  auto opened = top::Screen::open(colour);
  if (!opened) return std::move(opened.error());
  top::Screen& screen = **opened;
  top::UiOptions options;
  options.list = plan.list;
  options.still = feed.still();
  options.utc_offset_s = utc_offset(plan, looks.snapshot());
  top::Ui ui(std::move(options));
  std::vector<top::Key> keys;
  std::uint64_t next_ns = 0;
  std::uint64_t looks_done = 0;
  bool fresh_frame = true;
  while (!stop_wanted()) {
    // What is behind the screen may end; what was seen stays.
    std::string trouble;
    if (Status status = feed.pump(); !status.ok()) return status;
    const std::uint64_t now = base::monotonic_ns();
    if (now >= next_ns && !feed.still()) {
      if (plan.count && looks_done >= *plan.count) return {};
      ++looks_done;
      const Status status = looks.again();
      if (!status.ok()) trouble = status.error().message() + "; what follows is older";
      ui.set_trouble(std::move(trouble));
      next_ns = base::monotonic_ns() + plan.delay_ns;
      fresh_frame = true;
    }
    if (fresh_frame) screen.paint(ui.draw(screen.width(), screen.height(), looks.snapshot()));
    fresh_frame = false;
    if (!screen.read(kKeyWait, keys)) return {};
    for (const top::Key& key : keys) {
      if (!ui.press(key, looks.snapshot())) return {};
      fresh_frame = true;
    }
  }
  return {};
}

// Reads on until it is time, so that nothing is lost meanwhile.
Status wait_until(Feed& feed, std::uint64_t until_ns) {
  while (!stop_wanted() && base::monotonic_ns() < until_ns) {
    if (Status status = feed.pump(); !status.ok()) return status;
    ::usleep(20'000);
  }
  return {};
}

Status print_looks(Feed& feed, Looks& looks, TopPlan& plan, const std::optional<std::uint64_t>& count) {
  Output output;
  const bool colour = !plan.json && wants_colour();
  for (std::uint64_t done = 0; !stop_wanted() && !output.closed(); ++done) {
    if (count && done >= *count) break;
    if (done > 0 || feed.fresh())
      if (Status status = wait_until(feed, base::monotonic_ns() + plan.delay_ns); !status.ok()) return status;
    if (stop_wanted() && done > 0) break;
    if (Status status = looks.again(); !status.ok()) return status;
    const HoldingsSnapshot& snapshot = looks.snapshot();
    if (plan.json) {
      output.buffer() += report::holdings_json(snapshot) + "\n";
    } else {
      if (done > 0) output.buffer() += "\n";
      top::append_table(output.buffer(), snapshot, plan.list, utc_offset(plan, snapshot), colour);
    }
    if (Status status = output.flush(); !status.ok()) return status;
    if (feed.still()) break;
  }
  return {};
}

Result<std::unique_ptr<Feed>> open_feed(const Flags& flags) {
  if (flags.has("replay")) {
    if (flags.text("replay").empty()) return Error(Code::kBadInput, "--replay: no file named");
    auto moment = top::moment_from(flags.text("at"));
    if (!moment) return std::move(moment.error());
    return top::open_recording(flags.text("replay"), *moment, flags);
  }
  if (flags.has("at")) return Error(Code::kBadInput, "--at has no meaning without --replay");
  if (flags.has("own") && flags.has("socket"))
    return Error(Code::kBadInput, "--own asks no daemon: it does not go with --socket");
  const bool judges = flags.has("baseline") || flags.has("policy");
  if (judges && flags.has("socket"))
    return Error(Code::kBadInput, "--baseline and --policy are the daemon's own: they do not go with --socket");
  if (flags.has("own") || judges) return top::open_rings(flags);
  if (flags.has("socket")) return top::open_daemon(flags.text("socket"));
  auto daemon = top::open_daemon(control::kSocketPath);
  if (daemon) return daemon;
  // Nobody there is the usual case without a daemon; anything else is worth a line.
  if (daemon.error().code() != Code::kNotFound) say(daemon.error().message() + "; reading the kernel module instead");
  return top::open_rings(flags);
}

Result<std::optional<std::uint32_t>> user_from(const Flags& flags) {
  if (!flags.has("user")) return std::optional<std::uint32_t>();
  const std::string text = flags.text("user");
  std::uint32_t uid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), uid);
  if (!text.empty() && error == std::errc{} && end == text.data() + text.size())
    return std::optional<std::uint32_t>(uid);
  const passwd* entry = ::getpwnam(text.c_str());
  if (entry == nullptr) return Error(Code::kBadInput, "--user: no user \"" + text + "\" on this machine");
  return std::optional<std::uint32_t>(static_cast<std::uint32_t>(entry->pw_uid));
}

}  // namespace

Result<int> run_top(const Flags& flags) {
  TopPlan plan;
  plan.json = flags.has("json");
  plan.utc = flags.has("utc");
  plan.list.tree = !flags.has("flat");
  plan.list.filter = flags.text("filter");
  if (flags.has("sort")) {
    const auto column = top::column_named(flags.text("sort"));
    if (!column)
      return Error(Code::kBadInput, "--sort: no column \"" + flags.text("sort") + "\"; see gpuwatch top --help");
    plan.list.sort = *column;
  }
  auto user = user_from(flags);
  if (!user) return std::move(user.error());
  if (flags.has("private-key") && !flags.has("private"))
    return Error(Code::kBadInput, "--private-key has no meaning without --private");
  if (flags.has("private")) {
    auto privacy = Privacy::with_key_file(flags.text("private-key"));
    if (!privacy) return std::move(privacy.error());
    plan.privacy = std::move(*privacy);
  }
  plan.list.user = *user;
  if (plan.privacy && plan.list.user) plan.list.user = plan.privacy->user(*plan.list.user);
  plan.count = flags.number("count");
  if (const auto delay = flags.duration("delay"))
    plan.delay_ns = std::max<std::uint64_t>(static_cast<std::uint64_t>(delay->count()), 100'000'000);
  const char* term = std::getenv("TERM");
  const bool terminal = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1 && term != nullptr &&
                        std::string_view(term) != "dumb";
  plan.screen = terminal && !plan.json && !flags.has("once") && !flags.has("batch");

  // A recording's users are another machine's.
  attribute::UserNames users;
  if (!flags.has("replay") && !plan.privacy)
    plan.list.user_name = [&users](std::uint32_t uid) { return std::string(users.name(uid)); };
  plan.list.ascii = terminal && !top::terminal_is_utf8();

  auto feed = open_feed(flags);
  if (!feed) return std::move(feed.error());
  Looks looks(**feed, plan, !flags.has("no-gpu-time"));
  if (Status status = looks.again(); !status.ok()) return std::move(status.error());
  Status status;
  if (plan.screen) {
    status = draw_screen(**feed, looks, plan);
  } else {
    std::optional<std::uint64_t> count = plan.count;
    // Once, unless something asks for more: a table for a pipe has an end.
    if (!count && (flags.has("once") || (!flags.has("batch") && !plan.json))) count = 1;
    status = print_looks(**feed, looks, plan, count);
  }
  if (!status.ok()) return std::move(status.error());
  const std::uint64_t lost = looks.snapshot().lost_total();
  if (lost != 0) say(top::loss_text(looks.snapshot()));
  return lost != 0 ? kExitFinding : kExitOk;
}

}  // namespace gpuwatch::cli
