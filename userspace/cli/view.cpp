// SPDX-License-Identifier: Apache-2.0
#include "cli/view.h"

#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "decode/driver_seen.h"
#include "model/definitions.h"
#include "publish/fields.h"

namespace gpuwatch::cli {

namespace {

// At the end, for looks that still go on.
constexpr std::uint64_t kLastLookNs = 500'000'000;

}  // namespace

View::View(ViewOptions options, model::DriverVersion driver, std::optional<Filter> filter, const Selection& selection)
    : options_(options),
      filter_(std::move(filter)),
      selection_(selection),
      decoder_(driver),
      driver_known_(driver.known()) {
  if (options_.raw && options_.fields) describer_.emplace(driver);
  if (options_.live) attributor_.go_live();
  attributor_.set_names(options_.names);
  if (options_.reports != nullptr)
    options_.reports->start([this](const gpuwatch_rec& head) { return shown_actor(head); });
  if (options_.live && options_.names != nullptr && selection_.by_container()) held_.emplace();
  if (options_.live && !options_.raw) allocation_ = std::make_unique<attribute::AllocationWatch>();
}

void View::header(std::string& out) {
  if (!options_.raw && !options_.json) publish::append_story_header(out, options_.text);
}

// A card is looked up once somebody uses it. Not because of ourselves: the
// look-up uses it too.
void View::note_gpu(const gpuwatch_rec& head, std::int32_t minor) {
  if (options_.gpus != nullptr && minor >= 0 && head.tgid != static_cast<std::uint32_t>(::getpid()))
    options_.gpus->used(minor);
}

void View::follow_gpus(const model::RawRecord& record) {
  const gpuwatch_rec& head = record.head;
  if (head.type == GPUWATCH_REC_OPEN && head.node_kind == GPUWATCH_NODE_GPU)
    note_gpu(head, static_cast<std::int32_t>(head.rdev & 0xfffff));
  if (head.type == GPUWATCH_REC_STATE)
    if (const auto state = model::parse_state(record);
        state && (state->event == GPUWATCH_STATE_DRIVER_LIVE || state->event == GPUWATCH_STATE_DRIVER_GOING))
      options_.gpus->forget();
  options_.text.gpus = options_.json_options.gpus = &options_.gpus->gpus();
}

pipeline::AttributionStats View::stats() const {
  pipeline::AttributionStats stats;
  stats.processes = attributor_.process_counters();
  stats.cgroups = attributor_.cgroup_counters();
  if (options_.gpus != nullptr) stats.gpus = options_.gpus->counters();
  if (allocation_) stats.allocation = allocation_->counters();
  if (options_.names != nullptr) stats.names = options_.names->counters();
  if (held_) stats.held_dropped = held_->dropped();
  return stats;
}

std::size_t View::print_unallocated(std::string& out) {
  std::vector<attribute::UnallocatedUse> found;
  allocation_->take(found);
  if (found.empty()) return 0;
  events_.clear();
  for (const attribute::UnallocatedUse& use : found) {
    model::Call call;
    call.record.head = use.head;
    if (options_.privacy != nullptr) call.record.head = options_.privacy->hide(call.record).head;
    if (filter_ && !filter_->matches(call, shown_actor(use.head))) continue;
    model::StoryEvent event;
    event.kind = model::StoryKind::kUnallocatedUse;
    event.head = call.record.head;
    event.gpu_minor = use.minor;
    // The container's own words are in the evidence.
    event.body = options_.privacy != nullptr ? model::AllocationBody{use.reason, {}}
                                             : model::AllocationBody{use.reason, use.evidence};
    events_.push_back(event);
  }
  return print(out);
}

model::Actor View::shown_actor(const gpuwatch_rec& head) {
  const model::Actor real = attributor_.actor_of(head);
  return options_.privacy != nullptr ? options_.privacy->hide(real) : real;
}

// A call is on a card only where it is on the card's own node.
bool View::on_chosen_card(const model::Call& call) const {
  const gpuwatch_rec& head = call.record.head;
  const bool on_card = head.node_kind == GPUWATCH_NODE_GPU && head.type != GPUWATCH_REC_STATE;
  return selection_.matches_gpu(on_card ? static_cast<std::int32_t>(call.minor) : -1);
}

template <typename Who>
std::size_t View::show(const model::RawRecord& record, Who&& who, std::string& out) {
  const model::Call call = decoder_.decode(record);
  if (!driver_known_) learn_driver(call);
  if (options_.reports != nullptr) {
    report(call, !filter_ || filter_->matches(call, who()));
    return 0;
  }
  if (options_.raw) {
    if (describer_) describer_->observe(call);
    if (!on_chosen_card(call)) return 0;
    if (filter_ && !filter_->matches(call, who())) return 0;
    std::optional<model::Description> fields;
    if (describer_) fields = describer_->describe(call);
    if (options_.json) {
      publish::append_json_line(out, call, who(), options_.json_options, fields ? &*fields : nullptr);
    } else {
      publish::append_raw_line(out, call, who(), options_.text);
      if (fields) publish::append_fields(out, *fields);
    }
    return 1;
  }
  // The story needs every call to keep its totals right; the filter decides
  // which of its events are shown, by the call that completed them.
  events_.clear();
  story_.observe(call, events_);
  if (events_.empty() || (filter_ && !filter_->matches(call, who()))) return 0;
  return print(out);
}

// One by one: pseudonyms live until the next ones are made.
std::size_t View::print_code(std::string& out) {
  std::size_t lines = 0;
  for (model::StoryEvent event : code_events_) {
    std::string name, file;
    auto* body = std::get_if<model::ModuleBody>(&event.body);
    if (options_.privacy != nullptr && body != nullptr) {
      // Heads that come from events about calls are hidden already.
      if (event.kind == model::StoryKind::kModuleLoad) {
        model::RawRecord bare;
        bare.head = event.head;
        event.head = options_.privacy->hide(bare).head;
      }
      body->name = name = options_.privacy->pseudonym("module", body->name);
      body->source = file = options_.privacy->pseudonym("file", body->source);
    }
    if (filter_) {
      model::Call call;
      call.record.head = event.head;
      if (!filter_->matches(call, shown_actor(event.head))) continue;
    }
    events_.assign(1, event);
    lines += print(out);
  }
  return lines;
}

void View::report(const model::Call& call, bool wanted) {
  events_.clear();
  story_.observe(call, events_);
  if ((wanted && on_chosen_card(call)) || call.kind == model::CallKind::kTask || call.kind == model::CallKind::kCgroup)
    options_.reports->observe(call);
  if (!wanted) return;
  for (const model::StoryEvent& event : events_)
    if (selection_.matches_gpu(event.gpu_minor)) options_.reports->observe(event);
}

std::size_t View::print(std::string& out) {
  if (options_.reports != nullptr) {
    for (const model::StoryEvent& event : events_)
      if (selection_.matches_gpu(event.gpu_minor)) options_.reports->observe(event);
    return 0;
  }
  std::size_t lines = 0;
  for (const model::StoryEvent& event : events_) {
    if (!selection_.matches_gpu(event.gpu_minor)) continue;
    note_gpu(event.head, event.gpu_minor);
    if (!options_.json && !options_.detail && event.view == model::StoryView::kDetail) continue;
    // An event may be about another process than the one whose call completed it.
    const model::Actor actor = shown_actor(event.head);
    if (options_.json)
      publish::append_json_line(out, event, actor, options_.json_options);
    else
      publish::append_story_line(out, event, actor, options_.text);
    ++lines;
  }
  return lines;
}

std::size_t View::observe(const model::RawRecord& record, std::string& out) {
  attributor_.learn(record);
  if (options_.gpus != nullptr) follow_gpus(record);
  if (!selection_.shows(record.head)) return 0;
  const std::size_t lines = held_ ? release_held(out) : 0;
  return lines + admit(record, out);
}

void View::wait_for_name(const model::RawRecord& record, const model::Actor& actor) {
  if (actor.chain.empty() && actor.pod_uid.empty()) return;
  if (!actor.container_name.empty() || !actor.pod_name.empty()) return;
  const std::string_view container = actor.chain.empty() ? actor.pod_uid : actor.chain.back().id;
  (void)held_->keep(record, container, base::monotonic_ns());
}

std::size_t View::release_held(std::string& out) {
  if (held_->empty() || !held_->due(options_.names->generation(), base::monotonic_ns())) return 0;
  std::size_t lines = 0;
  for (const HeldRecords::Held& held : held_->take()) lines += admit(held.record(), out);
  return lines;
}

std::size_t View::admit(const model::RawRecord& record, std::string& out) {
  // Live the kernel made the choice, but for what it does not know.
  const bool everything = options_.select_here ? selection_.everything() : !selection_.by_names();
  // Who made the call costs two look-ups: only where somebody asks.
  model::Actor actor;
  bool known = false;
  const auto who = [&]() -> const model::Actor& {
    if (!known) actor = attributor_.actor_of(record.head);
    known = true;
    return actor;
  };
  if (!everything &&
      !(options_.select_here ? selection_.matches(record.head, who()) : selection_.matches_names(record.head, who()))) {
    if (held_) wait_for_name(record, who());
    return 0;
  }
  // A name that came just now: what waited for it goes first.
  std::size_t lines = held_ ? release_held(out) : 0;
  if (held_) known = false;
  if (allocation_) {
    if (record.head.type == GPUWATCH_REC_OPEN && options_.gpus != nullptr)
      allocation_->opened(record, who(), options_.gpus->gpus());
    lines += print_unallocated(out);
  }
  events_.clear();
  if (options_.privacy == nullptr) {
    lines += show(record, who, out);
  } else {
    // Nobody sees the real names, the filter neither.
    const model::RawRecord hidden = options_.privacy->hide(record);
    std::optional<model::Actor> shown;
    lines += show(
        hidden,
        [&]() -> const model::Actor& {
          if (!shown) shown = options_.privacy->hide(who());
          return *shown;
        },
        out);
  }
  if (options_.code == nullptr) return lines;
  code_events_.clear();
  options_.code->observe(
      record, events_, [this](const gpuwatch_rec& head) { return attributor_.actor_of(head); }, code_events_);
  return lines + print_code(out);
}

std::size_t View::settle(std::uint64_t now_ns, std::string& out) {
  std::size_t lines = allocation_ ? print_unallocated(out) : 0;
  if (held_) lines += release_held(out);
  events_.clear();
  if ((!options_.raw || options_.reports != nullptr) && !filter_) {
    story_.settle(now_ns, events_);
    lines += print(out);
  }
  if (options_.code == nullptr) return lines;
  code_events_.clear();
  options_.code->settle(now_ns, events_, code_events_);
  return lines + print_code(out);
}

std::size_t View::finish(std::string& out) {
  std::size_t lines = held_ ? release_held(out) : 0;
  if (allocation_) {
    allocation_->settle(kLastLookNs);
    lines += print_unallocated(out);
  }
  events_.clear();
  if ((!options_.raw || options_.reports != nullptr) && !filter_) {
    story_.finish(events_);
    lines += print(out);
  }
  if (options_.code == nullptr) return lines;
  code_events_.clear();
  options_.code->finish(events_, code_events_);
  return lines + print_code(out);
}

void View::learn_driver(const model::Call& call) {
  const auto driver = decode::driver_seen(call);
  if (!driver) return;
  driver_known_ = true;
  decoder_.use(*driver);
  if (describer_) describer_->use(*driver);
}

std::int32_t local_utc_offset_s(std::uint64_t realtime_ns) {
  const auto seconds = static_cast<time_t>(realtime_ns / 1'000'000'000u);
  tm parts{};
  return ::localtime_r(&seconds, &parts) != nullptr ? static_cast<std::int32_t>(parts.tm_gmtoff) : 0;
}

}  // namespace gpuwatch::cli
