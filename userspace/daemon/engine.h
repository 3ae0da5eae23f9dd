// SPDX-License-Identifier: Apache-2.0
// Engine: the thread that works records off: events, rules, alerts, losses,
// who holds which GPU. It is handed records by the intake and never reads a
// source; what others want to know of it, it publishes about once a second.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "daemon/intake.h"
#include "daemon/items.h"
#include "daemon/matcher.h"
#include "daemon/outputs.h"
#include "daemon/prober.h"
#include "daemon/progress.h"
#include "daemon/recorder.h"
#include "daemon/settings.h"
#include "daemon/state.h"
#include "pipeline/code_story.h"
#include "pipeline/events.h"
#include "report/holdings.h"
#include "sink/tally.h"

namespace gpuwatch::daemon {

// A loss by its cause, as a total that only grows.
struct LossTotal {
  std::string source;
  std::string reason;
  std::uint64_t total = 0;
  std::uint64_t told = 0;  // before this process began
};

struct EngineOptions {
  bool live = false;
  source::GwcapHeader header;
  std::string host_name;
  std::function<std::vector<LossTotal>()> losses;      // any thread may ask
  std::function<void(const model::LossCounts&)> told;  // ring losses that were told
  std::function<void(const std::string& rule)> dump;   // an alert wants a dump; quick
  std::function<void(const StoredAlert&)> keep;        // an alert was made; quick
  std::function<void()> give_up;                       // loss.action is exit
};

struct EngineView {
  std::uint64_t at_ns = 0;
  std::uint64_t records = 0;
  std::uint64_t events = 0;
  std::uint64_t alerts = 0;
  std::uint64_t loads = 0;
  std::uint64_t findings = 0;
  std::uint64_t forgotten = 0;
  std::string code_gaps;
  std::string code_trouble;
  std::string branch;
  bool inherited = false;
  decode::Stats decoded;
  pipeline::AttributionStats attribution;
  report::HoldingsSnapshot holdings;
  std::vector<std::pair<std::string, std::uint64_t>> suppressed;  // by rule
  std::vector<LossTotal> losses;
};

class Engine {
 public:
  Engine(EngineOptions options, const Settings& settings, std::shared_ptr<Outputs> outputs,
         std::unique_ptr<pipeline::CodeStory> code, Intake& intake, Recorder& recorder, Progress* progress);
  ~Engine();

  void start();
  // After the intake was closed: waits until all is worked off and told.
  void join();

  // Done by the worker between two batches. Without outputs those there are stay.
  void reload(const Settings& settings, std::shared_ptr<Outputs> outputs);
  void use_judge(pipeline::CodeJudge judge);
  void tell(Loss loss);
  void tell(ProbeNews news);

  std::shared_ptr<const EngineView> view() const;
  sink::Tally& tally() { return tally_; }
  // Numbers that alerts may take; the first call comes before start().
  void give_alert_numbers(std::uint64_t first, std::uint64_t end);
  std::uint64_t alert_numbers_left() const { return end_alert_ - next_alert_; }
  // Grows with each batch and pause: a stuck worker is seen by it.
  std::uint64_t pulse() const { return pulse_; }

 private:
  void run();
  void take(const model::StoryEvent& event, const model::Actor& actor);
  void rules_on(const Subject& subject, const sink::Item& cause, std::uint64_t time_ns);
  void look_at_losses(std::uint64_t now_ns, bool last);
  void take_probe(const ProbeNews& news);
  void emit_loss(const Loss& loss, std::uint64_t now_ns);
  void publish(std::uint64_t now_ns);
  void look_after_holdings();
  void settle(std::uint64_t now_ns);
  void apply(const Settings& settings);
  void do_posted();

  EngineOptions options_;
  std::shared_ptr<Outputs> outputs_;
  Intake& intake_;
  Recorder& recorder_;
  Progress* progress_;
  attribute::GpuDirectory gpus_;
  std::unique_ptr<attribute::Names> names_;
  std::unique_ptr<pipeline::CodeStory> code_;
  std::unique_ptr<pipeline::Events> events_;
  report::Holdings holdings_;
  Items items_;
  std::unique_ptr<Matcher> matcher_;
  std::vector<Hit> hits_;
  sink::Tally tally_;

  // Of the settings, as they are asked for with each event.
  bool all_events_ = false, some_events_ = true;
  std::string loss_action_;
  std::uint64_t loss_interval_ns_ = 0;

  std::vector<std::uint64_t> told_;  // by place in the list of losses
  std::uint64_t losses_told_ns_ = 0, losses_looked_ns_ = 0;
  std::uint64_t published_ns_ = 0, looked_after_ns_ = 0;
  std::uint64_t records_ = 0, events_count_ = 0, alerts_ = 0, last_record_ns_ = 0;
  std::vector<std::pair<std::string, std::uint64_t>> suppressed_before_;  // of rules that were replaced
  std::atomic<std::uint64_t> next_alert_{1}, end_alert_{1}, pulse_{0};

  mutable std::mutex lock_;  // what follows
  std::vector<std::function<void()>> posted_;
  std::unique_ptr<Settings> next_settings_;  // of reloads the worker has not taken up, the newest
  std::shared_ptr<Outputs> next_outputs_;
  std::shared_ptr<const EngineView> view_;
  std::thread thread_;
};

}  // namespace gpuwatch::daemon
