// SPDX-License-Identifier: Apache-2.0
#include "daemon/matcher.h"

#include <algorithm>
#include <cstring>

#include "judge/policy.h"
#include "model/verdict.h"

namespace gpuwatch::daemon {

namespace {

using judge::pattern_fits;

// A hostile name is long; patterns are matched in the product of both lengths.
constexpr std::size_t kValueMax = 4096;

std::string_view comm_of(const gpuwatch_rec& head) {
  return {head.comm, ::strnlen(head.comm, sizeof head.comm)};
}

// Values that a field has for this subject; empty: it has none.
class Values {
 public:
  void add(std::string_view value) {
    if (count_ < 4) values_[count_++] = value.substr(0, kValueMax);
  }
  void add_number(std::int64_t number) {
    number_ = std::to_string(number);
    add(number_);
  }
  void add_bool(bool flag) { add(flag ? "true" : "false"); }
  const std::string_view* begin() const { return values_; }
  const std::string_view* end() const { return values_ + count_; }

 private:
  std::string_view values_[4];
  std::size_t count_ = 0;
  std::string number_;
};

void of_body(Field field, const model::StoryEvent& event, Values& out) {
  if (const auto* module = std::get_if<model::ModuleBody>(&event.body)) {
    if (field == Field::kVerdict && module->judged) out.add(model::verdict_name(module->verdict));
    if (field == Field::kModule) out.add(module->name);
    if (field == Field::kFile) out.add(module->source);
    if (field == Field::kAllowed) out.add_bool(module->allowed);
    if (field == Field::kPlace)
      out.add(module->place == model::ImagePlace::kFile     ? "file"
              : module->place == model::ImagePlace::kMemory ? "memory"
                                                            : "unknown");
  } else if (const auto* finding = std::get_if<model::FindingBody>(&event.body)) {
    if (field == Field::kReason) out.add(finding->reason);
    if (field == Field::kCall) out.add(finding->name);
    if (field == Field::kMutates) out.add_bool(finding->mutates);
    if (field == Field::kFailed) out.add_bool(finding->failed);
    if (field == Field::kForeign)
      out.add_bool(finding->target.process.tgid != 0 && finding->target.process != event.process());
  } else if (const auto* denial = std::get_if<model::DenialBody>(&event.body)) {
    if (field == Field::kCall) {
      out.add(denial->name);
      if (!denial->detail.empty()) out.add(denial->detail);
    }
  } else if (const auto* fault = std::get_if<model::FaultBody>(&event.body)) {
    if (field == Field::kCall) out.add(fault->name);
  } else if (const auto* use = std::get_if<model::AllocationBody>(&event.body)) {
    if (field == Field::kReason) out.add(use->reason);
  } else if (const auto* differs = std::get_if<model::DiffersBody>(&event.body)) {
    if (field == Field::kModule) out.add(differs->kernel);
  }
}

void of_actor(Field field, const model::Actor& actor, Values& out) {
  switch (field) {
    case Field::kContainer:
      out.add(actor.container_id);
      out.add(actor.container_short_id());
      if (!actor.container_name.empty()) out.add(actor.container_name);
      break;
    case Field::kImage:
      out.add(actor.image);
      break;
    case Field::kPod:
      out.add(actor.pod_uid);
      if (!actor.pod_name.empty()) out.add(actor.pod_name);
      break;
    case Field::kNamespace:
      out.add(actor.pod_namespace);
      break;
    case Field::kUser:
      if (!actor.user_name.empty()) out.add(actor.user_name);
      break;
    case Field::kExe:
      out.add(actor.exe);
      break;
    case Field::kCgroup:
      out.add(actor.cgroup_path);
      break;
    case Field::kUnit:
      out.add(actor.unit);
      break;
    default:
      break;
  }
}

void values_of(Field field, const Subject& subject, Values& out) {
  if (field == Field::kEvent)
    return out.add(subject.event != nullptr ? model::story_kind_info(subject.event->kind).name : "loss");
  if (subject.event == nullptr) {
    if (field == Field::kReason) out.add(subject.loss_reason);
    return;
  }
  const model::StoryEvent& event = *subject.event;
  if (field == Field::kGpu && event.gpu_minor >= 0) return out.add_number(event.gpu_minor);
  if (field == Field::kComm) return out.add(comm_of(event.head));
  if (field == Field::kUser) out.add_number(event.head.uid);
  of_body(field, event, out);
  if (subject.actor != nullptr) of_actor(field, *subject.actor, out);
}

bool field_fits(Field field, const std::vector<std::string>& wanted, const Subject& subject) {
  Values values;
  values_of(field, subject, values);
  const bool patterns = field_info(field).type == FieldType::kPattern;
  for (const std::string_view value : values)
    for (const std::string& want : wanted)
      if (patterns ? pattern_fits(want, value) : want == value) return true;
  return false;
}

std::string group_of(GroupBy by, const Subject& subject) {
  if (subject.event == nullptr || by == GroupBy::kRule) return {};
  const gpuwatch_rec& head = subject.event->head;
  switch (by) {
    case GroupBy::kProcess:
      return std::to_string(head.tgid) + "/" + std::to_string(head.start_ns);
    case GroupBy::kContainer:
      if (subject.actor != nullptr && !subject.actor->container_id.empty())
        return std::string(subject.actor->container_id.substr(0, 256));
      return std::to_string(head.cgroup_id);
    case GroupBy::kUser:
      return std::to_string(head.uid);
    case GroupBy::kGpu:
      return std::to_string(subject.event->gpu_minor);
    case GroupBy::kRule:
      break;
  }
  return {};
}

}  // namespace

bool fits(const Conditions& when, const Conditions& unless, const Subject& subject) {
  for (std::size_t i = 0; i < kFields; ++i)
    if (!when.values[i].empty() && !field_fits(static_cast<Field>(i), when.values[i], subject)) return false;
  if (unless.empty()) return true;
  for (std::size_t i = 0; i < kFields; ++i)
    if (!unless.values[i].empty() && !field_fits(static_cast<Field>(i), unless.values[i], subject)) return true;
  return false;
}

RateCounter::Times& RateCounter::times_of(const Rate& rate, const std::string& group, std::uint64_t now_ns) {
  auto at = groups_.find(group);
  if (at == groups_.end()) {
    if (groups_.size() >= kGroupsMax) {
      auto oldest = groups_.begin();
      for (auto other = groups_.begin(); other != groups_.end(); ++other)
        if (other->second.last_ns < oldest->second.last_ns) oldest = other;
      groups_.erase(oldest);
    }
    at = groups_.try_emplace(group).first;
  }
  Times& times = at->second;
  while (!times.at.empty() && times.at.front() + rate.per_ns <= now_ns) times.at.pop_front();
  times.last_ns = now_ns;
  return times;
}

bool RateCounter::reached(const Rate& rate, const std::string& group, std::uint64_t now_ns) {
  if (rate.count <= 1) return true;
  Times& times = times_of(rate, group, now_ns);
  times.at.push_back(now_ns);
  if (times.at.size() < rate.count) return false;
  times.at.clear();
  return true;
}

bool RateCounter::allowed(const Rate& rate, const std::string& group, std::uint64_t now_ns) {
  if (rate.count == 0) return true;
  Times& times = times_of(rate, group, now_ns);
  if (times.at.size() >= rate.count) return false;
  times.at.push_back(now_ns);
  return true;
}

Matcher::Matcher(std::vector<Rule> rules)
    : rules_(std::move(rules)),
      state_(rules_.size()),
      by_kind_(static_cast<std::size_t>(model::StoryKind::kCount) + 1) {
  for (std::uint32_t i = 0; i < rules_.size(); ++i) {
    if (!rules_[i].enabled) continue;
    const auto& events = rules_[i].when.values[static_cast<std::size_t>(Field::kEvent)];
    for (std::size_t kind = 0; kind < by_kind_.size(); ++kind) {
      const std::string_view name = kind + 1 == by_kind_.size() ? "loss" : model::kStoryKinds[kind].name;
      if (std::find(events.begin(), events.end(), name) != events.end()) by_kind_[kind].push_back(i);
    }
  }
}

void Matcher::look(const Subject& subject, std::vector<Hit>& hits) {
  const std::size_t kind =
      subject.event != nullptr ? static_cast<std::size_t>(subject.event->kind) : by_kind_.size() - 1;
  for (const std::uint32_t i : by_kind_[kind]) {
    const Rule& rule = rules_[i];
    State& state = state_[i];
    if (!fits(rule.when, rule.unless, subject)) continue;
    if (rule.rate.count > 0 && !state.rate.reached(rule.rate, group_of(rule.rate.by, subject), subject.now_ns))
      continue;
    if (!state.limit.allowed(rule.limit, group_of(rule.limit.by, subject), subject.now_ns)) {
      ++state.suppressed;
      ++state.suppressed_total;
      continue;
    }
    hits.push_back({&rule, state.suppressed});
    state.suppressed = 0;
  }
}

}  // namespace gpuwatch::daemon
