// SPDX-License-Identifier: Apache-2.0
#include "daemon/items.h"

#include "base/escape.h"
#include "model/definitions.h"
#include "model/verdict.h"
#include "publish/alert_json.h"

namespace gpuwatch::daemon {

using sink::Item;
using sink::ItemKind;
using sink::ItemPtr;
using sink::Severity;

namespace {

void end_line(std::string& line) {
  if (line.ends_with('\n')) line.pop_back();
}

// How much an event weighs before any rule looked at it.
Severity severity_of(const model::StoryEvent& event) {
  using model::StoryKind;
  switch (event.kind) {
    case StoryKind::kSecurityFinding:
    case StoryKind::kUnallocatedUse:
    case StoryKind::kGpuFault:
    case StoryKind::kUnverified:
    case StoryKind::kCodeDiffers:
      return Severity::kNotice;
    case StoryKind::kModuleLoad:
    case StoryKind::kModuleFound: {
      const auto* module = std::get_if<model::ModuleBody>(&event.body);
      return module != nullptr && module->judged && module->verdict > model::Verdict::kJit ? Severity::kNotice
                                                                                           : Severity::kInfo;
    }
    default:
      return Severity::kInfo;
  }
}

}  // namespace

Items::Items(std::string host_name, std::int64_t realtime_offset_ns)
    : host_name_(std::move(host_name)), realtime_offset_ns_(realtime_offset_ns) {
  json_.realtime_offset_ns = text_.realtime_offset_ns = realtime_offset_ns;
}

ItemPtr Items::event(const model::StoryEvent& event, const model::Actor& actor) const {
  auto item = std::make_shared<Item>();
  item->kind = ItemKind::kEvent;
  item->severity = severity_of(event);
  item->time_unix_ns = event.head.time_ns + static_cast<std::uint64_t>(realtime_offset_ns_);
  publish::append_json_line(item->json, event, actor, json_);
  item->words_at = publish::append_story_line(item->text, event, actor, text_);
  end_line(item->json);
  end_line(item->text);
  item->event = model::story_kind_info(event.kind).name;
  if (const auto* module = std::get_if<model::ModuleBody>(&event.body); module != nullptr && module->judged)
    item->verdict = model::verdict_name(module->verdict);
  item->cgroup_id = event.head.cgroup_id;
  item->container_id = actor.container_id;
  item->process = base::escaped(model::comm_of(event.head));
  item->pid = event.head.tgid;
  item->uid = event.head.uid;
  item->gpu_minor = event.gpu_minor;
  return item;
}

ItemPtr Items::alert(const Item& cause, std::uint64_t time_ns, const Hit& hit, const std::string& id) const {
  const Rule& rule = *hit.rule;
  auto item = std::make_shared<Item>(cause);
  item->kind = ItemKind::kAlert;
  item->severity = rule.severity;
  item->rule = rule.name;
  item->alert_id = id;
  for (const std::string& technique : rule.attack) item->attack += (item->attack.empty() ? "" : " ") + technique;
  const std::string title = rule.message.empty() ? rule.name : rule.message;
  publish::AlertLine line;
  line.time_ns = time_ns;
  line.time_unix_ns = cause.time_unix_ns;
  line.host_name = host_name_;
  line.alert_id = id;
  line.rule = rule.name;
  line.severity = sink::severity_name(rule.severity);
  line.title = title;
  line.verdict = cause.verdict;
  line.attack = rule.attack;
  line.suppressed = hit.suppressed;
  line.event = cause.event;
  line.story = cause.json;
  item->json.clear();
  publish::append_json_alert(item->json, line);
  end_line(item->json);
  item->title = base::escaped(title);
  item->text = "ALERT " + std::string(sink::severity_name(rule.severity)) + " " + id + " " + item->title + " [" +
               rule.name + (item->attack.empty() ? "" : " " + item->attack) + "] ";
  item->words_at = item->text.size() + cause.words_at;
  item->text += cause.text;
  return item;
}

ItemPtr Items::loss(const Loss& loss, std::uint64_t now_ns) const {
  auto item = std::make_shared<Item>();
  item->kind = ItemKind::kLoss;
  item->severity = Severity::kWarning;
  item->time_unix_ns = now_ns + static_cast<std::uint64_t>(realtime_offset_ns_);
  item->event = "loss";
  item->reason = loss.reason;
  item->lost = loss.lost;
  item->cgroup_id = loss.cgroup_id;
  publish::LossLine line;
  line.time_ns = now_ns;
  line.time_unix_ns = item->time_unix_ns;
  line.host_name = host_name_;
  line.source = loss.source;
  line.name = loss.name;
  line.reason = loss.reason;
  line.lost = loss.lost;
  line.lost_total = loss.total;
  line.cgroup_id = loss.cgroup_id;
  publish::append_json_loss(item->json, line);
  end_line(item->json);
  item->text = (loss.reason == kUnsent
                    ? "UNSENT up to " + std::to_string(loss.lost) + " items (" + loss.source + " " +
                          base::escaped(loss.name) + ")"
                    : "LOST " + std::to_string(loss.lost) + " records (" + loss.source + ": " + loss.reason + ")") +
               (loss.words.empty() ? "" : ": " + base::escaped(loss.words));
  return item;
}

}  // namespace gpuwatch::daemon
