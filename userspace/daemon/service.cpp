// SPDX-License-Identifier: Apache-2.0
#include "daemon/service.h"

#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/escape.h"
#include "daemon/code_setup.h"
#include "daemon/control_server.h"
#include "daemon/dumper.h"
#include "daemon/engine.h"
#include "daemon/last_run.h"
#include "daemon/log.h"
#include "daemon/machine.h"
#include "daemon/notify.h"
#include "daemon/privileges.h"
#include "daemon/probe_setup.h"
#include "daemon/reader.h"
#include "daemon/retired.h"
#include "daemon/rings.h"
#include "daemon/sink_watch.h"
#include "daemon/status.h"
#include "identify/cache.h"
#include "pipeline/module.h"
#include "report/holdings.h"
#include "sink/exposition.h"
#include "source/replay_source.h"

namespace gpuwatch::daemon {

using base::Error;
using base::Result;
using base::Status;
using Json = nlohmann::json;

namespace {

constexpr std::uint64_t kAlertBlock = 1'000'000;
constexpr std::uint64_t kAliveNs = 5'000'000'000;
constexpr int kTickMs = 500;
constexpr std::uint64_t kStuckNs = 20'000'000'000;  // a worker that makes no step for so long

// Loss totals have a fixed order: first those of the ring, by their number.
constexpr std::size_t kRingLosses = GPUWATCH_LOSS_MAX;

class Service {
 public:
  explicit Service(ServiceOptions options) : options_(std::move(options)), live_(options_.replay.empty()) {}

  Result<int> run() {
    if (Status status = prepare(); !status.ok()) return std::move(status.error());
    if (Status status = begin(); !status.ok()) return std::move(status.error());
    const Status status = follow();
    notify_.stopping();
    end();
    if (!status.ok()) return status.error();
    return lost_something() || exit_wanted_ ? 1 : 0;
  }

 private:
  // All that needs privileges.
  Status prepare() {
    ::signal(SIGHUP, SIG_IGN);  // there is nothing to reload yet
    std::vector<std::string> errors;
    settings_ = Settings::read(options_.config, options_.overrides, errors);
    if (!errors.empty()) return Error(base::Code::kBadInput, joined(errors));
    const passwd* owner = options_.user.empty() || ::geteuid() != 0 ? nullptr : ::getpwnam(options_.user.c_str());
    make_directory(parent_of(settings_.text(Key::kStatePath)), owner);
    make_directory(parent_of(settings_.text(Key::kControlPath)), owner);
    make_directory(settings_.text(Key::kRecorderDirectory), owner);
    if (Status status = begin_starter(settings_, starter_); !status.ok()) return status;
    std::vector<KeptFd> kept = take_kept();
    if (live_) {
      auto rings = open_rings(settings_, std::move(kept), notify_);
      if (!rings) return std::move(rings.error());
      rings_ = std::move(rings->source);
      if (rings->progress) progress_.emplace(std::move(*rings->progress));
      if (rings->image_device) image_device_.emplace(std::move(*rings->image_device));
      resumed_ = rings->resumed;
    } else {
      auto replay = source::ReplaySource::open(options_.replay);
      if (!replay) return std::move(replay.error());
      if (settings_.flag(Key::kImages)) (*replay)->keep_images();
      if (Status status = (*replay)->make_interruptible(); !status.ok()) return status;
      source_ = std::move(*replay);
    }
    if (!settings_.text(Key::kControlPath).empty()) {
      auto control = ControlServer::open({settings_.text(Key::kControlPath), settings_.text(Key::kControlGroup)});
      if (!control) return std::move(control.error());
      control_ = std::move(*control);
    }
    if (Status status = drop_privileges(options_.user, how_run_); !status.ok()) return status;
    return {};
  }

  // Threads, from here on.
  Status begin() {
    sigset_t set;
    sigemptyset(&set);
    for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}) sigaddset(&set, number);
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
    ::signal(SIGHUP, SIG_DFL);
    ::signal(SIGPIPE, SIG_IGN);
    ::signal(SIGXFSZ, SIG_IGN);  // a limit on files is an error like a full disk
    signals_ = base::Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    wake_ = base::Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!signals_.valid() || !wake_.valid()) return Error::from_errno("signalfd");

    started_unix_ns_ = base::realtime_ns();
    host_name_ = host_name();
    open_state();
    std::vector<std::string> notes;
    auto outputs = Outputs::open(settings_, live_, unsent_, notes);
    if (!outputs) return std::move(outputs.error());
    outputs_ = std::move(*outputs);
    for (const std::string& note : notes) say(Level::kNotice, note);

    if (rings_ && image_device_) {
      gpuwatch_filter everything{};
      everything.cgroup_fd = -1;
      auto images = pipeline::watch_images(std::move(*image_device_), everything, true);
      if (images)
        rings_->set_images(std::move(*images));
      else
        say(Level::kWarning, images.error().message() + "; going on without the GPU modules that programs load");
    }
    source::Source& source = rings_ ? static_cast<source::Source&>(*rings_) : *source_;
    shared_ = std::make_unique<SharedSource>(source, live_);
    recorder_ = std::make_unique<Recorder>(settings_.number(Key::kRecorderBytes));
    intake_ = std::make_unique<Intake>(settings_.number(Key::kQueueBytes));
    dumper_ = std::make_unique<Dumper>(*recorder_, source.header());
    dumper_->use(settings_);
    auto code = make_code(settings_, live_, *shared_, baselines_);
    if (!code) return std::move(code.error());
    engine_ = std::make_unique<Engine>(engine_options(source.header()), settings_, outputs_, std::move(*code), *intake_,
                                       *recorder_, progress_ ? &*progress_ : nullptr);
    reserve_alerts();
    if (resumed_ && progress_) told_before_ = progress_->told();
    reader_ = std::make_unique<Reader>(*shared_, rings_.get(), *intake_, progress_ ? &*progress_ : nullptr);
    tell_last_run();
    if (Status status = open_exposition(settings_); !status.ok()) return status;
    engine_->start();
    reader_->start();
    prober_ = make_prober(settings_, starter_, *engine_);
    if (control_) control_->serve([this](const control::Request& request) { return answer(request); });
    note(Level::kInfo, sink::MessageId::kDaemonStarted,
         "running " + how_run_ + ", " + std::to_string(settings_.rules().size()) + " rules" +
             (resumed_ ? ", going on with the ring of the earlier process" : ""));
    notify_.ready("following");
    return {};
  }

  void open_state() {
    std::string trouble;
    auto state = State::open(settings_.text(Key::kStatePath), boot_id(), trouble);
    if (!trouble.empty()) say(Level::kWarning, trouble);
    if (state)
      state_.emplace(std::move(*state));
    else
      say(Level::kWarning, state.error().message() + "; going on without memory of earlier runs");
    if (state_) {
      auto unsent = Unsent::open(settings_.text(Key::kStatePath) + ".sinks");
      if (unsent)
        unsent_ = std::move(*unsent);
      else
        say(Level::kWarning, unsent.error().message() + "; going on without counting what a kill leaves unsent");
    }
    last_end_ = !state_ || !state_->last_run() ? "unknown" : state_->last_run()->clean ? "clean" : "killed";
  }

  void reserve_alerts() {
    if (!state_) {
      if (engine_->alert_numbers_left() == 0) {
        // Without a memory the clock keeps them apart.
        const std::uint64_t first = base::realtime_ns() / 1000;
        engine_->give_alert_numbers(first, first + kAlertBlock * kAlertBlock);
      }
      return;
    }
    if (engine_->alert_numbers_left() > kAlertBlock / 2) return;
    auto first = state_->reserve_alerts(kAlertBlock);
    if (first)
      engine_->give_alert_numbers(*first, *first + kAlertBlock);
    else
      note_state(first.error());
  }

  EngineOptions engine_options(const source::GwcapHeader& header) {
    EngineOptions how;
    how.live = live_;
    how.header = header;
    how.host_name = host_name_;
    how.losses = [this] { return losses(); };
    how.told = [this](const model::LossCounts& told) {
      if (progress_) progress_->set_told(told);
    };
    how.dump = [this](const std::string& rule) { dumper_->want(rule); };
    how.keep = [this](const StoredAlert& alert) {
      const std::lock_guard hold(lock_);
      if (alerts_.size() < 10'000) alerts_.push_back(alert);
    };
    how.give_up = [this] {
      exit_wanted_ = true;
      wake();
    };
    return how;
  }

  std::vector<LossTotal> losses() {
    std::vector<LossTotal> totals(kRingLosses);
    const model::LossCounts ring = shared_->lost();
    for (std::size_t i = 0; i < kRingLosses; ++i) {
      const std::string_view name = model::loss_name(i);
      totals[i] = {"ring", name.empty() ? "reason_" + std::to_string(i) : std::string(name), ring.by_reason[i],
                   told_before_.by_reason[i]};
    }
    const IntakeCounts counts = intake_->counts();
    totals.push_back({"queue", "flood", counts.dropped_flood, 0});
    totals.push_back({"queue", "full", counts.dropped_full, 0});
    totals.push_back({"daemon", "restart", reader_ ? reader_->missed() : 0, 0});
    return totals;
  }

  bool lost_something() {
    for (const LossTotal& loss : losses())
      if (loss.total > loss.told) return true;
    return false;
  }

  // What cannot be known of the time between two runs is said, once.
  void tell_last_run() {
    if (unsent_)
      for (Loss& loss : unsent_since(unsent_->left(), state_->last_run() && state_->last_run()->same_boot))
        engine_->tell(std::move(loss));
    if (!live_ || !state_ || !state_->last_run()) return;
    if (auto loss = loss_since(*state_->last_run(), started_unix_ns_, resumed_)) engine_->tell(std::move(*loss));
  }

  Status open_exposition(const Settings& settings) {
    const std::string& text = settings.text(Key::kPrometheusAddress);
    if (text == exposition_at_ && (exposition_ || text.empty())) return {};
    std::unique_ptr<sink::Exposition> made;
    if (!text.empty()) {
      sink::ExpositionOptions how;
      if (Status status = sink::parse_address(text, how); !status.ok())
        return std::move(status.error()).with_context("sinks.prometheus.address");
      auto opened = sink::Exposition::open(how, [this] { return sink::render(metrics_of(facts())); });
      if (!opened) return std::move(opened.error()).with_context("sinks.prometheus.address");
      made = std::move(*opened);
    }
    exposition_ = std::move(made);
    exposition_at_ = text;
    return {};
  }

  StatusFacts facts() {
    StatusFacts facts;
    facts.host_name = host_name_;
    facts.started_unix_ns = started_unix_ns_;
    facts.view = engine_->view();
    facts.intake = intake_->counts();
    facts.worst = intake_->worst(5);
    facts.tally = &engine_->tally();
    facts.records_read = reader_->records();
    facts.recorder_bytes = recorder_->bytes();
    facts.how_run = how_run_;
    facts.resumed = resumed_;
    facts.missed = reader_->missed();
    if (progress_) facts.calls = progress_->calls();
    facts.last_end = last_end_;
    if (unsent_) facts.unsent = unsent_->left();
    facts.live = live_;
    if (prober_) facts.probe = prober_->counts();
    const std::lock_guard hold(lock_);
    facts.outputs = outputs_;
    facts.intake_limit = settings_.number(Key::kQueueBytes);
    facts.recorder_limit = settings_.number(Key::kRecorderBytes);
    facts.config_files = settings_.files();
    facts.rules = settings_.rules().size();
    facts.reloads = reloads_;
    facts.reloads_refused = refused_;
    facts.last_reload_good = reload_error_.empty();
    facts.last_reload_error = reload_error_;
    facts.baselines = baselines_;
    facts.scrapes = scrapes_;
    facts.hooks = hooks_;
    facts.module = module_;
    return facts;
  }

  // On the control thread.
  std::string answer(const control::Request& request) {
    switch (request.verb) {
      case control::Verb::kStatus:
        return control::format_answer(request.verb, status_json(facts()));
      case control::Verb::kHoldings:
        return control::format_answer(request.verb, report::holdings_json(engine_->view()->holdings));
      case control::Verb::kDump: {
        auto dump = dumper_->now(request.path);
        if (!dump) return control::format_refusal(dump.error().message());
        const Json json = {{"path", base::to_utf8(dump->path)}, {"records", dump->records}, {"bytes", dump->bytes}};
        return control::format_answer(request.verb, json.dump());
      }
      case control::Verb::kReload: {
        auto asked = std::make_shared<std::promise<std::string>>();
        auto told = asked->get_future();
        {
          const std::lock_guard hold(lock_);
          asked_.push_back(asked);
        }
        wake();
        if (told.wait_for(std::chrono::seconds(4)) != std::future_status::ready)
          return control::format_refusal("the reload takes long; see the log for its end");
        const std::string error = told.get();
        return error.empty() ? control::format_answer(request.verb, "{\"rules\":" + std::to_string(facts().rules) + "}")
                             : control::format_refusal(error);
      }
    }
    return control::format_refusal("unknown request");
  }

  void wake() {
    const std::uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
  }

  // New settings, whole or not at all. Empty: done; else why not.
  std::string reload() {
    notify_.reloading();
    std::vector<std::string> errors, notes, files;
    Settings fresh = Settings::read(options_.config, options_.overrides, errors);
    std::string error = joined(errors);
    std::optional<pipeline::CodeJudge> judge;
    if (error.empty() && fresh.flag(Key::kImages)) {
      auto made = make_judge(fresh, files);
      if (made)
        judge.emplace(std::move(*made));
      else
        error = made.error().message();
    }
    std::shared_ptr<Outputs> outputs;
    if (error.empty() && !same_outputs(settings_, fresh)) {
      auto opened = Outputs::open(fresh, live_, unsent_, notes);
      if (opened)
        outputs = std::move(*opened);
      else
        error = opened.error().message();
    }
    if (error.empty())
      if (Status status = open_exposition(fresh); !status.ok()) error = status.error().message();
    if (error.empty()) take_over(std::move(fresh), std::move(outputs), std::move(judge), std::move(files));
    for (const std::string& note : notes) say(Level::kNotice, note);
    {
      const std::lock_guard hold(lock_);
      reload_error_ = error;
      ++(error.empty() ? reloads_ : refused_);
    }
    if (error.empty())
      note(Level::kInfo, sink::MessageId::kConfigReloaded,
           "configuration read again, " + std::to_string(settings_.rules().size()) + " rules");
    else
      note(Level::kError, sink::MessageId::kConfigRefused,
           "the new configuration is not good, keeping the old one:\n" + error);
    notify_.ready(error.empty() ? "following" : "following, with the configuration before the last change");
    return error;
  }

  void take_over(Settings fresh, std::shared_ptr<Outputs> outputs, std::optional<pipeline::CodeJudge> judge,
                 std::vector<std::string> files) {
    for (const Key key : {Key::kRingBytes, Key::kImages, Key::kScan, Key::kUnverifiedAfter, Key::kNames,
                          Key::kStatePath, Key::kControlPath, Key::kControlGroup, Key::kProbeProgram})
      if (fresh.number(key) != settings_.number(key) || fresh.text(key) != settings_.text(key))
        say(Level::kWarning, std::string(key_info(key).path) + ": the new value counts after a restart");
    if (fresh.flag(Key::kProbeEnabled) && !prober_)
      say(Level::kWarning, "probe.enabled: the new value counts after a restart");
    intake_->set_limit(fresh.number(Key::kQueueBytes));
    recorder_->set_limit(fresh.number(Key::kRecorderBytes));
    dumper_->use(fresh);
    if (prober_) prober_->use(prober_settings(fresh));
    if (judge) engine_->use_judge(std::move(*judge));
    engine_->reload(fresh, outputs);
    std::shared_ptr<Outputs> old;
    const auto stop_time = fresh.duration(Key::kStopTime);
    {
      const std::lock_guard hold(lock_);
      settings_ = std::move(fresh);
      baselines_ = std::move(files);
      if (outputs) old = std::exchange(outputs_, outputs);
    }
    if (old) retired_.add(std::move(old), stop_time);
  }

  Status follow() {
    const std::uint64_t watchdog_ns = notify_.watchdog_ns();
    std::uint64_t pulse = 0, pulse_ns = base::monotonic_ns();
    while (!exit_wanted_) {
      pollfd entries[2] = {{signals_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
      (void)::poll(entries, 2, kTickMs);
      std::uint64_t count = 0;
      (void)!::read(wake_.get(), &count, sizeof count);
      signalfd_siginfo info{};
      bool reload_wanted = false;
      while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT) return {};
        if (info.ssi_signo == SIGHUP) reload_wanted = true;
        if (info.ssi_signo == SIGUSR1) dumper_->want("signal");
        if (info.ssi_signo == SIGUSR2) outputs_->request_reopen();
      }
      if (reload_wanted) (void)reload();
      answer_reloads();
      const std::uint64_t now = base::monotonic_ns();
      if (engine_->pulse() != pulse) {
        pulse = engine_->pulse();
        pulse_ns = now;
      }
      if (watchdog_ns != 0 && now - pulse_ns < kStuckNs) notify_.alive();
      tick(now);
      if (reader_->ended()) {
        if (const std::string trouble = reader_->trouble(); !trouble.empty())
          return Error(base::Code::kIo, base::escaped(trouble));
        return {};  // a recording came to its end
      }
    }
    return {};
  }

  void answer_reloads() {
    std::vector<std::shared_ptr<std::promise<std::string>>> asked;
    {
      const std::lock_guard hold(lock_);
      asked.swap(asked_);
    }
    if (asked.empty()) return;
    const std::string error = reload();
    for (const auto& promise : asked) promise->set_value(error);
  }

  void note_state(const Error& error) {
    if (error.message() == state_trouble_) return;
    state_trouble_ = error.message();
    say(Level::kWarning, "state: " + base::escaped(state_trouble_));
  }

  void keep_state(std::uint64_t now) {
    std::vector<StoredAlert> alerts;
    {
      const std::lock_guard hold(lock_);
      alerts.swap(alerts_);
    }
    if (!state_) return;
    for (const StoredAlert& alert : alerts)
      if (Status status = state_->keep_alert(alert); !status.ok()) note_state(status.error());
    reserve_alerts();
    if (now - alive_ns_ < kAliveNs) return;
    alive_ns_ = now;
    if (Status status = state_->alive(base::realtime_ns(), reader_->records()); !status.ok())
      note_state(status.error());
  }

  void tick(std::uint64_t now) {
    keep_state(now);
    retired_.look();
    sink_watch_.look(*outputs_, now);
    if (rings_) {
      auto info = rings_->device().info();
      if (!info.ok() && module_)
        note(Level::kError, sink::MessageId::kModuleGone, "the kernel module: " + info.error().message());
      const std::lock_guard hold(lock_);
      module_ = info.ok();
      hooks_ = info.ok() && info->attached != 0 ? info->nr_targets : 0;
    }
    if (exposition_) {
      const std::lock_guard hold(lock_);
      scrapes_ = exposition_->scrapes();
    }
    const std::string& file = settings_.text(Key::kTextfile);
    const auto interval = static_cast<std::uint64_t>(settings_.duration(Key::kTextfileInterval).count()) * 1'000'000;
    if (!file.empty() && (textfile_ns_ == 0 || now - textfile_ns_ >= interval)) {
      textfile_ns_ = now;
      if (Status status = sink::write_textfile(file, sink::render(metrics_of(facts()))); !status.ok())
        if (status.error().message() != textfile_trouble_)
          say(Level::kWarning, textfile_trouble_ = base::escaped(status.error().message()));
    }
  }

  void end() {
    if (prober_) prober_->stop();
    reader_->stop();
    if (source_) source_->interrupt();
    reader_->join();
    engine_->join();
    control_.reset();
    dumper_.reset();
    retired_.begin_end();
    outputs_->stop(settings_.duration(Key::kStopTime));
    retired_.finish();
    if (const std::string left = outputs_->left_behind(); !left.empty())
      say(Level::kWarning, "sinks did not take all in stop_time; dropped: " + left);
    textfile_ns_ = 0;
    tick(base::monotonic_ns());
    exposition_.reset();
    if (state_)
      if (Status status = state_->stopped(base::realtime_ns(), reader_->records()); !status.ok())
        note_state(status.error());
    if (rings_) {
      notify_.forget(kRingName);
      notify_.forget(kProgressName);
    }
    const auto view = engine_->view();
    std::uint64_t lost = 0;
    std::string reasons;
    for (const LossTotal& loss : losses()) {
      if (loss.total == 0) continue;
      lost += loss.total;
      reasons += (reasons.empty() ? ": " : ", ") + loss.reason + " " + std::to_string(loss.total);
    }
    note(Level::kInfo, sink::MessageId::kDaemonStopped,
         "ended; " + std::to_string(view->records) + " records, " + std::to_string(view->events) + " events, " +
             std::to_string(view->alerts) + " alerts, lost " + std::to_string(lost) + reasons);
  }

  const ServiceOptions options_;
  const bool live_;
  Notify notify_;
  SinkWatch sink_watch_;
  Settings settings_;
  std::string how_run_, host_name_, last_end_;
  std::uint64_t started_unix_ns_ = 0;
  bool resumed_ = false;
  std::atomic<bool> exit_wanted_{false};

  base::Fd signals_, wake_;
  std::optional<Progress> progress_;
  std::optional<source::KmodDevice> image_device_;
  std::unique_ptr<source::KmodSource> rings_;
  std::unique_ptr<source::ReplaySource> source_;
  std::unique_ptr<SharedSource> shared_;
  std::unique_ptr<ControlServer> control_;
  std::unique_ptr<Intake> intake_;
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<Dumper> dumper_;
  std::optional<State> state_;
  std::shared_ptr<Unsent> unsent_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Reader> reader_;
  std::optional<ProbeStarter> starter_;
  std::unique_ptr<Prober> prober_;
  std::unique_ptr<sink::Exposition> exposition_;
  std::string exposition_at_, state_trouble_, textfile_trouble_;
  RetiredOutputs retired_;
  std::uint64_t alive_ns_ = 0, textfile_ns_ = 0;
  model::LossCounts told_before_;

  std::mutex lock_;  // what follows, and settings_ and baselines_ for other threads
  std::shared_ptr<Outputs> outputs_;
  std::vector<std::string> baselines_;
  std::vector<StoredAlert> alerts_;
  std::vector<std::shared_ptr<std::promise<std::string>>> asked_;
  std::uint64_t reloads_ = 0, refused_ = 0, scrapes_ = 0, hooks_ = 0;
  std::string reload_error_;
  bool module_ = false;
};

}  // namespace

Result<int> run_service(const ServiceOptions& options) {
  return Service(options).run();
}

}  // namespace gpuwatch::daemon
