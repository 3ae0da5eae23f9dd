// SPDX-License-Identifier: Apache-2.0
#include "daemon/engine.h"

#include <algorithm>

#include "base/clock.h"
#include "daemon/log.h"
#include "scan/process_scan.h"

namespace gpuwatch::daemon {

namespace {

// Small: the reader waits while a batch is handed out.
constexpr std::size_t kBatch = 512;
constexpr std::uint64_t kLossLookNs = 100'000'000;
constexpr std::chrono::milliseconds kPause{100};
constexpr std::uint64_t kPublishNs = 1'000'000'000;
constexpr std::uint64_t kLookAfterNs = 5'000'000'000;

model::GpuList gpus_of(const source::GwcapHeader& header) {
  model::GpuList gpus;
  for (const source::GwcapGpu& gpu : header.gpus)
    gpus.push_back({static_cast<std::int32_t>(gpu.minor), gpu.pci, gpu.uuid, gpu.name, {}});
  return gpus;
}

}  // namespace

Engine::Engine(EngineOptions options, const Settings& settings, std::shared_ptr<Outputs> outputs,
               std::unique_ptr<pipeline::CodeStory> code, Intake& intake, Recorder& recorder, Progress* progress)
    : options_(std::move(options)),
      outputs_(std::move(outputs)),
      intake_(intake),
      recorder_(recorder),
      progress_(progress),
      gpus_(options_.live ? attribute::GpuDirectory(attribute::GpuDirectoryOptions{})
                          : attribute::GpuDirectory(gpus_of(options_.header))),
      code_(std::move(code)),
      items_(options_.host_name, options_.header.realtime_minus_monotonic_ns) {
  if (options_.live && settings.flag(Key::kNames))
    names_ = std::make_unique<attribute::Names>(attribute::local_name_sources());
  pipeline::EventsOptions how;
  how.live = options_.live;
  how.driver = model::parse_driver_version(options_.header.driver_version).value_or(model::DriverVersion{});
  how.names = names_.get();
  how.gpus = &gpus_;
  how.code = code_.get();
  events_ = std::make_unique<pipeline::Events>(
      how, [this](const model::StoryEvent& event, const model::Actor& actor) { take(event, actor); });
  // A verdict is told at once, not after the pause of pop().
  if (code_) code_->when_done([this] { intake_.nudge(); });
  apply(settings);
  publish(base::monotonic_ns());
}

Engine::~Engine() {
  if (thread_.joinable()) {
    intake_.close();
    thread_.join();
  }
}

void Engine::start() {
  thread_ = std::thread([this] { run(); });
}

void Engine::join() {
  if (thread_.joinable()) thread_.join();
}

void Engine::apply(const Settings& settings) {
  if (matcher_) {
    // What was held back is told on, also of rules that are no more.
    for (std::size_t i = 0; i < matcher_->rules().size(); ++i)
      if (matcher_->suppressed(i) > 0)
        suppressed_before_.emplace_back(matcher_->rules()[i].name, matcher_->suppressed(i));
    if (suppressed_before_.size() > 10'000)
      suppressed_before_.erase(suppressed_before_.begin(), suppressed_before_.end() - 10'000);
  }
  matcher_ = std::make_unique<Matcher>(settings.rules());
  for (const Rule& rule : matcher_->rules())
    tally_.declare(sink::Metric::kAlerts, {rule.name, std::string(sink::severity_name(rule.severity))});
  all_events_ = settings.text(Key::kEvents) == "all";
  some_events_ = settings.text(Key::kEvents) != "none";
  loss_action_ = settings.text(Key::kLossAction);
  loss_interval_ns_ = static_cast<std::uint64_t>(settings.duration(Key::kLossInterval).count()) * 1'000'000;
}

void Engine::reload(const Settings& settings, std::shared_ptr<Outputs> outputs) {
  const std::lock_guard hold(lock_);
  next_settings_ = std::make_unique<Settings>(settings);
  if (outputs) next_outputs_ = std::move(outputs);
}

void Engine::use_judge(pipeline::CodeJudge judge) {
  if (code_) code_->use_judge(std::move(judge));
}

void Engine::tell(Loss loss) {
  const std::lock_guard hold(lock_);
  posted_.emplace_back([this, loss = std::move(loss)] { emit_loss(loss, base::monotonic_ns()); });
}

void Engine::tell(ProbeNews news) {
  const std::lock_guard hold(lock_);
  posted_.emplace_back([this, news = std::move(news)] { take_probe(news); });
}

// Of a process that is followed no more nobody wants to know.
void Engine::take_probe(const ProbeNews& news) {
  for (const gpuwatch_rec& head : holdings_.heads()) {
    if (model::ProcessKey{head.start_ns, head.tgid} != news.process) continue;
    model::StoryEvent event;
    event.head = head;
    event.head.time_ns = options_.live ? base::monotonic_ns() : last_record_ns_;
    const model::Actor actor = events_->actor_of(head);
    event.kind = model::StoryKind::kCodeProbed;
    event.body = model::ProbedBody{news.sums.match,      news.sums.differ, news.sums.not_resident,
                                   news.sums.not_probed, news.duration_ns, news.exit_status,
                                   news.problem};
    take(event, actor);
    event.kind = model::StoryKind::kCodeDiffers;
    for (const ProbeDifference& one : news.differ) {
      event.body =
          model::DiffersBody{one.kernel, one.image, one.reason, one.bytes, one.first_offset, one.different_bytes};
      take(event, actor);
    }
    return;
  }
}

void Engine::give_alert_numbers(std::uint64_t first, std::uint64_t end) {
  // Blocks follow each other; the first one sets the start.
  if (end_alert_ != first) next_alert_ = first;
  end_alert_ = end;
}

void Engine::do_posted() {
  std::vector<std::function<void()>> todo;
  std::unique_ptr<Settings> settings;
  {
    const std::lock_guard hold(lock_);
    todo.swap(posted_);
    settings = std::move(next_settings_);
    if (next_outputs_) outputs_ = std::move(next_outputs_);
  }
  if (settings) apply(*settings);
  for (const auto& task : todo) task();
}

void Engine::run() {
  Intake::Batch batch;
  for (;;) {
    intake_.pop(batch, kBatch, kPause);
    ++pulse_;
    do_posted();
    for (const model::RawRecord& record : batch.records) {
      ++records_;
      holdings_.count_call(record.head);
      events_->observe(record);
      if (progress_ != nullptr) progress_->done(record.head);
    }
    if (!batch.records.empty()) last_record_ns_ = batch.records.back().head.time_ns;
    recorder_.add(batch);
    const std::uint64_t now = base::monotonic_ns();
    if (batch.records.empty()) settle(now);
    look_at_losses(now, batch.closed);
    if (batch.closed) break;
    if (options_.live && now - looked_after_ns_ > kLookAfterNs) {
      looked_after_ns_ = now;
      look_after_holdings();
    }
    if (now - published_ns_ > kPublishNs) publish(now);
  }
  events_->finish();
  do_posted();
  publish(base::monotonic_ns());
}

// A recording's time is its own: when it pauses, nothing is known.
void Engine::settle(std::uint64_t now_ns) {
  if (!options_.live) return;
  events_->settle(now_ns);
  holdings_.advance(now_ns);
}

// A release may have been lost, and names come late.
void Engine::look_after_holdings() {
  for (const gpuwatch_rec& head : holdings_.heads())
    if (!scan::is_process("/proc", head.tgid, head.start_ns)) holdings_.ended({head.start_ns, head.tgid});
  holdings_.refresh([this](const gpuwatch_rec& head) { return events_->actor_of(head); });
}

void Engine::take(const model::StoryEvent& event, const model::Actor& actor) {
  ++events_count_;
  items_.use_gpus(&gpus_.gpus());
  holdings_.observe(event, actor);
  const Subject subject{&event, &actor, {}, event.head.time_ns};
  hits_.clear();
  matcher_->look(subject, hits_);
  const bool wanted = some_events_ && (all_events_ || event.view == model::StoryView::kLine);
  if (!wanted && hits_.empty()) {
    tally_.add(sink::Metric::kEvents, {std::string(model::story_kind_info(event.kind).name)});
    const auto* code = std::get_if<model::ModuleBody>(&event.body);
    if (code != nullptr && code->judged)
      tally_.add(sink::Metric::kVerdicts, {std::string(model::verdict_name(code->verdict))});
    return;
  }
  const sink::ItemPtr item = items_.event(event, actor);
  tally_.count(*item);
  if (wanted) outputs_->push(item, 0);
  rules_on(subject, *item, event.head.time_ns);
}

void Engine::rules_on(const Subject& subject, const sink::Item& cause, std::uint64_t time_ns) {
  (void)subject;
  for (const Hit& hit : hits_) {
    std::string number = std::to_string(next_alert_++);
    const std::string id = "a" + std::string(number.size() < 8 ? 8 - number.size() : 0, '0') + number;
    const sink::ItemPtr alert = items_.alert(cause, time_ns, hit, id);
    ++alerts_;
    tally_.count(*alert);
    outputs_->push(alert, hit.rule->actions);
    if ((hit.rule->actions & kActionLog) != 0) say(Level::kWarning, alert->text);
    if ((hit.rule->actions & kActionDump) != 0 && options_.dump) options_.dump(hit.rule->name);
    if (options_.keep) options_.keep({id, hit.rule->name, cause.time_unix_ns, alert->text});
  }
}

void Engine::emit_loss(const Loss& loss, std::uint64_t now_ns) {
  const sink::ItemPtr item = items_.loss(loss, now_ns);
  // What had come as far as a sink is no lost record; it has a metric of its own.
  if (loss.reason == kUnsent)
    tally_.add(sink::Metric::kSinkUnsent, {loss.name}, loss.lost);
  else
    tally_.count(*item);
  if (loss_action_ == "ignore") return;
  say(Level::kWarning, item->text);
  outputs_->push(item, 0);
  if (loss_action_ == "log") return;
  const Subject subject{nullptr, nullptr, loss.reason, now_ns};
  hits_.clear();
  matcher_->look(subject, hits_);
  rules_on(subject, *item, now_ns);
  if (loss_action_ == "exit" && options_.give_up) options_.give_up();
}

void Engine::look_at_losses(std::uint64_t now_ns, bool last) {
  // Asking costs a system call, during which the reader may have to wait.
  if (!options_.losses || (!last && now_ns - losses_looked_ns_ < kLossLookNs)) return;
  if (!last && losses_told_ns_ != 0 && now_ns - losses_told_ns_ < loss_interval_ns_) return;
  losses_looked_ns_ = now_ns;
  const std::vector<LossTotal> totals = options_.losses();
  bool any = false;
  model::LossCounts ring;
  for (std::size_t i = 0; i < totals.size(); ++i) {
    if (told_.size() <= i) told_.push_back(totals[i].told);
    if (i < ring.by_reason.size()) ring.by_reason[i] = totals[i].total;
    if (totals[i].total <= told_[i]) continue;
    Loss loss{totals[i].source, totals[i].reason, totals[i].total - told_[i], totals[i].total, 0, {}, {}};
    told_[i] = totals[i].total;
    if (totals[i].source == "queue") {
      if (const auto worst = intake_.worst(1); !worst.empty()) loss.cgroup_id = worst.front().first;
    }
    emit_loss(loss, now_ns);
    any = true;
  }
  if (!any) return;
  losses_told_ns_ = now_ns;
  if (options_.told) options_.told(ring);
}

void Engine::publish(std::uint64_t now_ns) {
  published_ns_ = now_ns;
  auto view = std::make_shared<EngineView>();
  view->at_ns = now_ns;
  view->records = records_;
  view->events = events_count_;
  view->alerts = alerts_;
  if (code_) {
    view->loads = code_->loads();
    view->findings = code_->findings();
    view->code_gaps = code_->gap_line();
    view->code_trouble = code_->trouble();
  }
  view->forgotten = events_->forgotten();
  view->branch = events_->decoder().branch();
  view->inherited = events_->decoder().inherited();
  view->decoded = events_->decoder().stats();
  view->attribution = events_->stats();
  view->holdings = holdings_.snapshot(gpus_.gpus());
  view->holdings.source = options_.live ? "daemon" : "recording";
  view->holdings.driver_version = options_.header.driver_version;
  view->holdings.realtime_offset_ns = options_.header.realtime_minus_monotonic_ns;
  view->holdings.records = records_;
  if (options_.losses) view->losses = options_.losses();
  for (const LossTotal& loss : view->losses)
    if (loss.total > 0) view->holdings.lost.emplace_back(loss.reason, loss.total);
  view->suppressed = suppressed_before_;
  for (std::size_t i = 0; i < matcher_->rules().size(); ++i)
    if (matcher_->suppressed(i) > 0) view->suppressed.emplace_back(matcher_->rules()[i].name, matcher_->suppressed(i));
  const std::lock_guard hold(lock_);
  view_ = std::move(view);
}

std::shared_ptr<const EngineView> Engine::view() const {
  const std::lock_guard hold(lock_);
  return view_;
}

}  // namespace gpuwatch::daemon
