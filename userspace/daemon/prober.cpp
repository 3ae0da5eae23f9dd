// SPDX-License-Identifier: Apache-2.0
#include "daemon/prober.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.h"
#include "probe/agent/ask.h"
#include "scan/process_scan.h"

namespace gpuwatch::daemon {

using base::Status;
using Clock = std::chrono::steady_clock;
using probe::Outcome;

namespace {

// A line for each function of a large process is some megabytes.
constexpr std::uint64_t kOutputMax = 256ull << 20;
constexpr std::chrono::seconds kGrace{10};  // for a killed program to be gone
constexpr std::size_t kTextMax = 512;
constexpr std::uint32_t kNotStarted = 127;

std::string cut(std::string text) {
  if (text.size() > kTextMax) text.resize(kTextMax);
  return text;
}

// Why there is no result, as a label of metrics.
const char* result_of(std::uint32_t exit_status) {
  switch (static_cast<Outcome>(exit_status)) {
    case Outcome::kNoGpu:
      return "no_context";
    case Outcome::kOutOfMemory:
      return "no_memory";
    case Outcome::kFault:
      return "fault";
    case Outcome::kNoProcess:
      return "gone";
    case Outcome::kNoAgent:
      return "no_agent";
    case Outcome::kDenied:
      return "refused";
    case Outcome::kNoAnswer:
      return "no_answer";
    case Outcome::kHang:
      return "timeout";
    default:
      return exit_status == kNotStarted ? "not_started" : "trouble";
  }
}

}  // namespace

Prober::Prober(ProbeStarter starter, Processes processes, Tell tell)
    : starter_(std::move(starter)),
      processes_(std::move(processes)),
      tell_(std::move(tell)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Prober::~Prober() {
  stop();
}

void Prober::start() {
  thread_ = std::thread([this] { run(); });
}

void Prober::use(const ProberSettings& settings) {
  {
    const std::lock_guard hold(lock_);
    settings_ = settings;
    counts_.enabled = settings.enabled;
  }
  wake();
}

void Prober::stop() {
  stopping_ = true;
  wake();
  if (thread_.joinable()) thread_.join();
}

void Prober::wake() {
  const std::uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
}

ProbeCounts Prober::counts() const {
  const std::lock_guard hold(lock_);
  return counts_;
}

bool Prober::wanted() const {
  const std::lock_guard hold(lock_);
  return !stopping_ && !broken_ && settings_.enabled;
}

void Prober::run() {
  // The first look comes when processes may have set up what they run.
  Clock::time_point looked = Clock::now();
  while (!stopping_ && !broken_) {
    std::chrono::milliseconds interval;
    bool enabled = false;
    {
      const std::lock_guard hold(lock_);
      interval = settings_.interval;
      enabled = settings_.enabled;
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(looked + interval - Clock::now());
    if (enabled && left.count() <= 0) {
      look_at_all();
      looked = Clock::now();
      continue;
    }
    pollfd entry{wake_.get(), POLLIN, 0};
    (void)::poll(&entry, 1, enabled ? static_cast<int>(std::min<long long>(left.count(), 3'600'000)) : -1);
    std::uint64_t count = 0;
    (void)!::read(wake_.get(), &count, sizeof count);
  }
}

void Prober::look_at_all() {
  std::uint64_t with_agent = 0, without_agent = 0;
  std::set<std::pair<std::uint32_t, std::uint64_t>> there;
  for (const model::ProcessKey& process : processes_()) {
    if (!wanted()) return;
    const auto is_there = [&] { return scan::is_process("/proc", process.tgid, process.start_ns); };
    if (!there.insert({process.tgid, process.start_ns}).second || !is_there()) continue;
    std::string path;
    if (probe::agent::find_agent(static_cast<int>(process.tgid), path)) {
      ++without_agent;
      continue;
    }
    ++with_agent;
    Run run = probe(process.tgid);
    if (stopping_) return;
    // By now the number may be another's, and what was said is about that one.
    if (!is_there()) run = {{}, {}, {}, "gone", static_cast<std::uint32_t>(Outcome::kNoProcess), 0};
    note(process, std::move(run));
  }
  std::erase_if(known_, [&](const auto& each) { return !there.contains(each.first); });
  std::uint64_t differ = 0;
  for (const auto& [process, known] : known_) differ += known.sums.differ;
  const std::lock_guard hold(lock_);
  counts_.with_agent = with_agent;
  counts_.without_agent = without_agent;
  counts_.differ = differ;
  counts_.last_unix_ns = base::realtime_ns();
}

void Prober::give_up(std::string trouble, Run& run) {
  run.result = "not_started";
  run.problem = trouble;
  broken_ = true;
  const std::lock_guard hold(lock_);
  counts_.trouble = std::move(trouble);
}

bool Prober::attend(const base::Fd& output, const std::function<Status(std::string_view)>& feed, int& status,
                    Run& run) {
  Clock::time_point until;
  {
    const std::lock_guard hold(lock_);
    until = Clock::now() + settings_.timeout;
  }
  bool reading = true, killed = false;
  const auto end_it = [&](const char* result, std::string why) {
    if (killed) return;
    killed = true;
    run.result = result;
    run.problem = "gpuwatch-probe was ended: " + cut(std::move(why));
    starter_.kill();
    until = Clock::now() + kGrace;
  };
  std::vector<char> bytes(1 << 16);
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    if (left.count() <= 0 && killed) {
      give_up("the process that starts gpuwatch-probe does not answer", run);
      return false;
    }
    if (left.count() <= 0) {
      end_it("timeout", "it was not ready in time");
      continue;
    }
    pollfd entries[3] = {
        {starter_.socket().get(), POLLIN, 0}, {reading ? output.get() : -1, POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    (void)::poll(entries, 3, static_cast<int>(std::min<long long>(left.count(), 3'600'000)));
    if (entries[2].revents != 0) {
      std::uint64_t count = 0;
      (void)!::read(wake_.get(), &count, sizeof count);
      if (!wanted()) end_it("stopped", "it is no longer wanted");
    }
    if (entries[1].revents != 0) {
      const ssize_t got = ::read(output.get(), bytes.data(), bytes.size());
      if (got <= 0) {
        reading = got < 0 && (errno == EAGAIN || errno == EINTR);
      } else if (!killed) {
        if (Status fed = feed({bytes.data(), static_cast<std::size_t>(got)}); !fed.ok())
          end_it("garbage", fed.error().message());
      }
      // All that it printed comes before its end.
      if (reading) continue;
    }
    if (entries[0].revents == 0) continue;
    StarterAnswer answer;
    if (::recv(starter_.socket().get(), &answer, sizeof answer, 0) != sizeof answer) {
      give_up("the process that starts gpuwatch-probe is gone", run);
      return false;
    }
    status = answer.status;
    return !killed;
  }
}

Status Prober::take(const nlohmann::json& line, Run& run) {
  const std::string type = probe::answer_text(line, "type");
  if (type == "error") run.problem = cut(probe::answer_text(line, "reason"));
  if (type == "resident") {
    const auto number = [&](const char* key) { return probe::answer_number(line, key).value_or(0); };
    run.sums.match += number("match") + number("match-relocated");
    run.sums.not_resident += number("not-resident");
    run.sums.not_probed += number("not-probed");
  }
  // A table that decides where code goes is as good as code; when it is in order
  // nothing is said of it here.
  const bool bank = type == "constant_bank";
  if ((type != "kernel" && !bank) || (bank && probe::answer_text(line, "verdict", 64) != "differ")) return {};
  auto kernel = probe::kernel_answer(line);
  if (!kernel) return base::Error(base::Code::kBadInput, "it printed a function without what every one has");
  if (kernel->verdict != "differ") return {};
  ++run.sums.differ;
  if (run.differ.size() < kRemembered)
    run.differ.push_back({cut(std::move(kernel->name)), cut(std::move(kernel->image)), cut(std::move(kernel->reason)),
                          kernel->bytes, kernel->first_offset, kernel->different_bytes});
  return {};
}

Prober::Run Prober::probe(std::uint32_t pid) {
  Run run;
  const std::uint64_t begin = base::monotonic_ns();
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    run.result = "not_started";
    run.problem = "no pipe for gpuwatch-probe";
    return run;
  }
  base::Fd ours(ends[0]), theirs(ends[1]);
  (void)::fcntl(ours.get(), F_SETFL, O_NONBLOCK);
  if (Status status = starter_.start(pid, theirs); !status.ok()) {
    give_up(status.error().message(), run);
    return run;
  }
  theirs.reset();
  probe::AnswerLines lines(kOutputMax);
  const auto take_line = [&](const nlohmann::json& line) { return take(line, run); };
  int status = 0;
  const bool ended = attend(
      ours, [&](std::string_view piece) { return lines.feed(piece, take_line); }, status, run);
  run.duration_ns = base::monotonic_ns() - begin;
  if (!ended) return run;
  if (WIFSIGNALED(status)) {
    run.result = "killed";
    run.problem = "gpuwatch-probe was ended by signal " + std::to_string(WTERMSIG(status));
    return run;
  }
  run.exit_status = static_cast<std::uint32_t>(WEXITSTATUS(status));
  if (run.exit_status > static_cast<std::uint32_t>(Outcome::kFinding)) {
    run.result = result_of(run.exit_status);
    if (run.problem.empty())
      run.problem =
          "gpuwatch-probe " + (run.exit_status == kNotStarted ? std::string("could not be started")
                                                              : "ended with status " + std::to_string(run.exit_status));
    return run;
  }
  run.problem.clear();
  if (Status whole = lines.end(); !whole.ok()) {
    run.result = "garbage";
    run.problem = cut(whole.error().message());
  } else {
    run.result = run.sums.differ != 0 ? "differ" : "match";
  }
  return run;
}

void Prober::note(const model::ProcessKey& process, Run run) {
  {
    const std::lock_guard hold(lock_);
    ++counts_.runs[run.result];
  }
  // A process that ended, or whose agent or context is gone, is no news.
  for (const char* none : {"gone", "no_agent", "no_context", "stopped"})
    if (run.result == none) return;
  Known& known = known_[{process.tgid, process.start_ns}];
  ProbeNews news{process, run.sums, run.duration_ns, run.exit_status, run.problem, {}};
  bool fresh = !known.any || known.problem != run.problem;
  known.any = true;
  known.problem = run.problem;
  if (run.problem.empty()) {
    fresh = fresh || !(known.sums == run.sums);
    known.sums = run.sums;
    std::set<ProbeDifference> now;
    for (ProbeDifference& one : run.differ) {
      if (now.contains(one)) continue;
      // What is too much now is told after the next look.
      const bool old = known.differ.contains(one);
      if (!old && news.differ.size() == kDifferencesTold) continue;
      if (!old) news.differ.push_back(one);
      now.insert(std::move(one));
    }
    known.differ = std::move(now);
  }
  if (fresh || !news.differ.empty()) tell_(std::move(news));
}

}  // namespace gpuwatch::daemon
