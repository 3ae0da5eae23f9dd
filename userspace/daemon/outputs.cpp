// SPDX-License-Identifier: Apache-2.0
#include "daemon/outputs.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "daemon/log.h"
#include "daemon/netlink_sink.h"
#include "sink/exec_sink.h"
#include "sink/file_sink.h"
#include "sink/journal_sink.h"
#include "sink/webhook_sink.h"

namespace gpuwatch::daemon {

using base::Result;
using sink::Item;
using sink::ItemPtr;
using sink::Sink;

namespace {

// Lets through what weighs enough.
class AtLeast final : public Sink {
 public:
  AtLeast(std::unique_ptr<Sink> inner, sink::Severity least) : inner_(std::move(inner)), least_(least) {}
  std::string_view name() const override { return inner_->name(); }
  bool wants(const Item& item) const override { return item.severity >= least_ && inner_->wants(item); }
  sink::Outcome write(std::span<const ItemPtr> items) override { return inner_->write(items); }
  base::Status flush() override { return inner_->flush(); }
  base::Status reopen() override { return inner_->reopen(); }
  void cancel() override { inner_->cancel(); }

 private:
  std::unique_ptr<Sink> inner_;
  sink::Severity least_;
};

sink::Severity severity_from(const std::string& word) {
  for (std::size_t i = 0; i < sink::kSeverities; ++i)
    if (word == sink::severity_name(static_cast<sink::Severity>(i))) return static_cast<sink::Severity>(i);
  return sink::Severity::kInfo;
}

sink::Rate per_minute(std::uint64_t count) {
  return {static_cast<double>(count) / 60.0, static_cast<double>(std::clamp<std::uint64_t>(count, 1, 100))};
}

}  // namespace

void Outputs::add(std::unique_ptr<Sink> sink, sink::QueueLimits limits, unsigned action, bool events) {
  auto waiting = unsent_ ? unsent_->count_for(sink->name()) : nullptr;
  queues_.push_back({std::make_unique<sink::SinkQueue>(std::move(sink), limits, std::move(waiting)), action, events});
}

Result<std::shared_ptr<Outputs>> Outputs::open(const Settings& settings, bool live, std::shared_ptr<Unsent> unsent,
                                               std::vector<std::string>& notes) {
  auto outputs = std::make_shared<Outputs>();
  outputs->unsent_ = std::move(unsent);
  sink::QueueLimits limits;
  limits.items = settings.number(Key::kSinkItems);
  limits.bytes = settings.number(Key::kSinkBytes);
  if (const std::string& path = settings.text(Key::kJsonPath); path == "-") {
    outputs->add(sink::FileSink::on_descriptor(STDOUT_FILENO, sink::LineForm::kJson), limits, kActionAlert, true);
  } else if (!path.empty()) {
    sink::FileOptions options;
    options.path = path;
    options.rotate_bytes = settings.number(Key::kJsonRotate);
    options.keep = static_cast<unsigned>(settings.number(Key::kJsonKeep));
    auto file = sink::FileSink::open(options);
    if (!file) return std::move(file.error()).with_context("sinks.file.path");
    outputs->add(std::move(*file), limits, kActionAlert, true);
  }
  if (settings.flag(Key::kJournal)) {
    auto journal = sink::JournalSink::open({});
    if (journal)
      outputs->add(std::make_unique<AtLeast>(std::move(*journal), severity_from(settings.text(Key::kJournalLevel))),
                   limits, kActionAlert, true);
    else
      notes.push_back("no journal: " + journal.error().message() + "; going on without");
  }
  if (!settings.text(Key::kWebhookUrl).empty()) {
    sink::WebhookOptions options;
    options.url = settings.text(Key::kWebhookUrl);
    options.secret_file = settings.text(Key::kWebhookToken);
    options.ca_file = settings.text(Key::kWebhookCa);
    options.limit = settings.duration(Key::kWebhookTimeout);
    options.rate = per_minute(settings.number(Key::kWebhookRate));
    auto webhook = sink::WebhookSink::open(std::move(options));
    if (!webhook) return std::move(webhook.error()).with_context("sinks.webhook");
    outputs->add(std::move(*webhook), limits, kActionWebhook, false);
  }
  if (!settings.texts(Key::kExecProgram).empty()) {
    sink::ExecOptions options;
    options.command = settings.texts(Key::kExecProgram);
    options.limit = settings.duration(Key::kExecTimeout);
    options.rate = per_minute(settings.number(Key::kExecRate));
    options.log = [](const std::string& text) { say(Level::kNotice, "exec: " + text); };
    auto exec = sink::ExecSink::open(std::move(options));
    if (!exec) return std::move(exec.error()).with_context("sinks.exec.command");
    outputs->add(std::move(*exec), limits, kActionExec, false);
  }
  if (live && settings.flag(Key::kNetlink)) {
    auto netlink = open_netlink_sink();
    if (netlink)
      outputs->add(std::move(*netlink), limits, kActionAlert, true);
    else
      notes.push_back("no verdicts by netlink: " + netlink.error().message());
  }
  return outputs;
}

void Outputs::push(const ItemPtr& item, unsigned actions) {
  for (const Named& named : queues_)
    if (item->kind == sink::ItemKind::kAlert ? (actions & named.action) != 0 : named.events) named.queue->push(item);
}

void Outputs::request_reopen() {
  for (const Named& named : queues_) named.queue->request_reopen();
}

bool Outputs::flush(std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  bool all = true;
  for (const Named& named : queues_) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    all = named.queue->flush(std::max(left, std::chrono::milliseconds(1))) && all;
  }
  return all;
}

void Outputs::stop(std::chrono::milliseconds limit) {
  // All at a time: one that hangs takes nothing of the others' time.
  std::vector<std::thread> stops;
  stops.reserve(queues_.size());
  for (const Named& named : queues_) stops.emplace_back([&named, limit] { named.queue->stop(limit); });
  for (std::thread& stop : stops) stop.join();
}

std::string Outputs::left_behind() const {
  std::string text;
  for (const Named& named : queues_)
    if (const std::uint64_t count = named.queue->counts().dropped_closed; count != 0)
      text += (text.empty() ? "" : ", ") + named.queue->name() + " " + std::to_string(count);
  return text;
}

bool same_outputs(const Settings& a, const Settings& b) {
  for (std::size_t i = 0; i < kKeys; ++i) {
    const auto key = static_cast<Key>(i);
    if (!key_info(key).path.starts_with("sinks.") || key_info(key).path.starts_with("sinks.prometheus.")) continue;
    if (a.number(key) != b.number(key) || a.text(key) != b.text(key) || a.texts(key) != b.texts(key)) return false;
  }
  return true;
}

}  // namespace gpuwatch::daemon
