// SPDX-License-Identifier: Apache-2.0
// Groups are found by process, or by cgroup and then container; rows by the
// addresses of their static names, so that a call costs two look-ups.
#include "report/summary.h"

#include <algorithm>
#include <iterator>
#include <list>
#include <unordered_map>
#include <unordered_set>

#include "model/definitions.h"
#include "report/identity.h"

namespace gpuwatch::report {

namespace {

using model::Call;
using model::CallKind;
using model::Field;
using model::StoryEvent;
using model::StoryKind;

struct NameKey {
  const char* name = nullptr;
  const char* detail = nullptr;
  std::uint32_t number = 0;
  std::uint32_t node = 0;
  bool operator==(const NameKey&) const = default;
};

struct NameHash {
  std::size_t operator()(const NameKey& key) const {
    const std::uint64_t mixed = reinterpret_cast<std::uintptr_t>(key.name) * 31 +
                                reinterpret_cast<std::uintptr_t>(key.detail) * 17 +
                                (std::uint64_t{key.number} << 8 | key.node);
    return static_cast<std::size_t>(mixed * 0x9E3779B97F4A7C15ULL >> 11);
  }
};

// Live bytes of one process on one GPU, as its latest event said.
struct HeldKey {
  model::ProcessKey process;
  std::int64_t place = 0;
  bool operator==(const HeldKey&) const = default;
};

struct HeldHash {
  std::size_t operator()(const HeldKey& key) const {
    return ProcessHash{}(key.process) ^ static_cast<std::size_t>(key.place * 0x9E3779B9);
  }
};

bool is_call(const Call& call) {
  return call.kind == CallKind::kOpen || call.kind == CallKind::kIoctl || call.kind == CallKind::kMmap ||
         call.kind == CallKind::kRelease;
}

std::uint32_t nameless_number(const Call& call) {
  if (call.name.empty()) return call.kind == CallKind::kIoctl ? call.number : 0;
  if (!call.detail.empty()) return 0;
  if (call.has(Field::kControl)) return call.get32(Field::kControl);
  return call.has(Field::kClass) ? call.get32(Field::kClass) : 0;
}

struct Live {
  Group group;
  model::ProcessKey key;
  std::string container;  // key of a group by container
  std::unordered_map<NameKey, std::size_t, NameHash> rows;
  std::unordered_set<model::ProcessKey, ProcessHash> members;
  std::unordered_map<HeldKey, std::uint64_t, HeldHash> held;
  std::list<Live*>::iterator use;  // place in the order of use
};

std::string container_key(const model::Actor& actor) {
  if (!actor.container_id.empty()) return "c " + std::string(actor.runtime) + " " + std::string(actor.container_id);
  if (actor.slurm_job) return "s " + std::to_string(*actor.slurm_job);
  if (!actor.unit.empty()) return "u " + std::string(actor.unit);
  if (!actor.cgroup_path.empty()) return "p " + std::string(actor.cgroup_path);
  return "i " + std::to_string(actor.cgroup_id);
}

void settle_amount(Amount& amount, std::uint64_t before, std::uint64_t now) {
  amount.live = amount.live - std::min(before, amount.live) + now;
  amount.peak = std::max(amount.peak, amount.live);
}

std::uint64_t less(std::uint64_t from, std::uint64_t what) {
  return from - std::min(from, what);
}

}  // namespace

struct Summary::Impl {
  Impl(SummaryOptions set, ActorLookup lookup) : options(set), who(std::move(lookup)) {}

  SummaryOptions options;
  ActorLookup who;
  std::list<Live*> by_use;  // longest idle first
  std::unordered_map<model::ProcessKey, std::unique_ptr<Live>, ProcessHash> processes;
  std::unordered_map<std::string, std::unique_ptr<Live>> containers;
  std::unordered_map<std::uint64_t, Live*> by_cgroup;  // into `containers`
  std::unordered_set<model::ProcessKey, ProcessHash> all_processes;
  std::size_t row_count = 0;
  std::uint64_t records = 0;
  std::uint64_t origin_ns = 0;
  std::uint64_t last_ns = 0;
  Folded folded;

  std::size_t group_count() const { return processes.size() + containers.size(); }

  Live& group_for(const gpuwatch_rec& head) {
    Live& live = options.by == GroupBy::kProcess ? process_group(head) : container_group(head);
    if (std::next(live.use) != by_use.end()) by_use.splice(by_use.end(), by_use, live.use);
    return live;
  }

  Live& process_group(const gpuwatch_rec& head) {
    const model::ProcessKey key{head.start_ns, head.tgid};
    if (const auto at = processes.find(key); at != processes.end()) return *at->second;
    make_room();
    Live& live = *processes.emplace(key, std::make_unique<Live>()).first->second;
    live.key = key;
    start(live, head, who(head));
    return live;
  }

  Live& container_group(const gpuwatch_rec& head) {
    if (const auto at = by_cgroup.find(head.cgroup_id); at != by_cgroup.end()) return *at->second;
    const model::Actor actor = who(head);
    std::string key = container_key(actor);
    auto at = containers.find(key);
    if (at == containers.end()) {
      make_room();
      at = containers.emplace(key, std::make_unique<Live>()).first;
      at->second->container = std::move(key);
      start(*at->second, head, actor);
    }
    if (by_cgroup.size() >= options.limits.processes) by_cgroup.clear();
    by_cgroup[head.cgroup_id] = at->second.get();
    return *at->second;
  }

  void start(Live& live, const gpuwatch_rec& head, const model::Actor& actor) {
    Identity& identity = live.group.who;
    identity.pid = head.tgid;
    identity.uid = head.uid;
    identity.comm.assign(model::comm_of(head));
    identity.start_ns = head.start_ns;
    identity.cgroup_id = head.cgroup_id;
    fill_identity(identity, actor);
    live.group.events.resize(static_cast<std::size_t>(StoryKind::kCount));
    live.use = by_use.insert(by_use.end(), &live);
  }

  void make_room() {
    while (group_count() >= options.limits.groups && !by_use.empty()) {
      Live* const oldest = by_use.front();
      by_use.pop_front();
      ++folded.groups;
      folded.calls += oldest->group.calls;
      folded.driver_ns += oldest->group.driver_ns;
      row_count -= oldest->rows.size();
      if (options.by == GroupBy::kProcess) {
        processes.erase(oldest->key);
      } else {
        std::erase_if(by_cgroup, [oldest](const auto& entry) { return entry.second == oldest; });
        const std::string key = oldest->container;
        containers.erase(key);
      }
    }
  }

  void note_process(Live& live, const model::ProcessKey& key) {
    if (all_processes.size() < options.limits.processes) all_processes.insert(key);
    if (options.by == GroupBy::kProcess)
      live.group.processes = 1;
    else if (live.members.size() < options.limits.processes && live.members.insert(key).second)
      ++live.group.processes;
  }

  NameRow* row_for(Live& live, const Call& call) {
    NameKey key;
    key.name = call.name.data();
    key.detail = call.detail.empty() ? call.node.data() : call.detail.data();
    key.number = nameless_number(call);
    key.node = call.record.head.node_kind;
    if (const auto at = live.rows.find(key); at != live.rows.end()) return &live.group.names[at->second];
    if (row_count >= options.limits.names) return nullptr;
    ++row_count;
    live.rows.emplace(key, live.group.names.size());
    NameRow& row = live.group.names.emplace_back();
    row.name = call.name;
    row.detail = call.detail;
    row.node = call.node;
    row.number = key.number;
    return &row;
  }

  void count(Live& live, const Call& call) {
    Group& group = live.group;
    const gpuwatch_rec& head = call.record.head;
    const std::uint64_t begin_ns = less(head.time_ns, call.duration_ns);
    if (group.calls == 0) group.first_ns = begin_ns;
    group.first_ns = std::min(group.first_ns, begin_ns);
    group.last_ns = std::max<std::uint64_t>(group.last_ns, head.time_ns);
    ++group.calls;
    group.failed += call.failed;
    group.denied += call.denied;
    group.driver_ns += call.duration_ns;
    group.durations.add(call.duration_ns);
    NameRow* row = row_for(live, call);
    if (row == nullptr) {
      ++group.unlisted;
      return;
    }
    row->durations.add(call.duration_ns);
    row->denied += call.denied;
    if (!call.failed) return;
    ++row->failed;
    row->last_status = call.status_name;
    row->last_ret = call.ret;
  }

  void observe(const Call& call) {
    ++records;
    const gpuwatch_rec& head = call.record.head;
    if (!is_call(call)) {
      redefine(call);
      return;
    }
    const std::uint64_t begin_ns = less(head.time_ns, call.duration_ns);
    if (origin_ns == 0) origin_ns = begin_ns;
    last_ns = std::max<std::uint64_t>(last_ns, head.time_ns);
    Live& live = group_for(head);
    note_process(live, {head.start_ns, head.tgid});
    const std::uint64_t after = less(head.time_ns, origin_ns);
    if (after < options.since_ns || after > options.until_ns) return;
    count(live, call);
  }

  // What a definition says may be new: another program after exec, a cgroup
  // whose path came late.
  void redefine(const Call& call) {
    const gpuwatch_rec& head = call.record.head;
    if (options.by == GroupBy::kContainer && call.kind == CallKind::kCgroup) by_cgroup.erase(head.cgroup_id);
    if (options.by != GroupBy::kProcess || (call.kind != CallKind::kTask && call.kind != CallKind::kCgroup)) return;
    const auto at = processes.find({head.start_ns, head.tgid});
    if (at != processes.end()) fill_identity(at->second->group.who, who(head));
  }

  void on_memory(Live& live, const StoryEvent& event, const model::MemoryBody& body) {
    if (event.kind == StoryKind::kMemoryRefused) return;
    Group& group = live.group;
    Amount* amount = nullptr;
    std::int64_t place = static_cast<std::int64_t>(body.location);
    if (body.location == model::Location::kGpu) {
      place = event.gpu_device >= 0 ? 1000 + event.gpu_device : -1 - event.gpu_minor;
      const auto same = [&](const GpuAmount& gpu) {
        return event.gpu_device >= 0 ? gpu.device == event.gpu_device : gpu.device < 0 && gpu.minor == event.gpu_minor;
      };
      auto at = std::find_if(group.gpus.begin(), group.gpus.end(), same);
      if (at == group.gpus.end()) at = group.gpus.insert(at, {event.gpu_minor, event.gpu_device, {}});
      if (at->minor < 0) at->minor = event.gpu_minor;
      amount = &at->memory;
    } else if (body.location == model::Location::kHost) {
      amount = &group.host;
    } else if (body.location == model::Location::kPinned) {
      amount = &group.pinned;
    } else {
      return;  // a handle for memory elsewhere takes none here
    }
    const HeldKey key{event.process(), place};
    auto held = live.held.find(key);
    if (held == live.held.end()) {
      if (live.held.size() >= options.limits.processes) return;
      held = live.held.emplace(key, 0).first;
    }
    settle_amount(*amount, held->second, body.live_bytes);
    // What was freed before anybody looked: the peak is older than the event.
    if (options.by == GroupBy::kProcess) amount->peak = std::max(amount->peak, body.peak_bytes);
    held->second = body.live_bytes;
  }

  void observe(const StoryEvent& event) {
    if (event.kind == StoryKind::kDriverState || event.kind >= StoryKind::kCount) return;
    Live& live = group_for(event.head);
    Group& group = live.group;
    ++group.events[static_cast<std::size_t>(event.kind)];
    fill_identity(group.who, who(event.head));
    const auto add = [](Amount& amount, std::uint64_t& made) {
      ++made;
      amount.peak = std::max(amount.peak, ++amount.live);
    };
    switch (event.kind) {
      case StoryKind::kContextCreated:
        add(group.contexts, group.contexts_made);
        break;
      case StoryKind::kContextDestroyed:
        group.contexts.live = less(group.contexts.live, 1);
        break;
      case StoryKind::kChannelCreated:
        add(group.channels, group.channels_made);
        break;
      case StoryKind::kChannelDestroyed:
        group.channels.live = less(group.channels.live, 1);
        break;
      default:
        if (const auto* memory = std::get_if<model::MemoryBody>(&event.body)) on_memory(live, event, *memory);
    }
  }

  std::uint64_t window_begin() const { return origin_ns + std::min(options.since_ns, last_ns - origin_ns); }
  std::uint64_t window_end() const { return origin_ns + std::min(options.until_ns, last_ns - origin_ns); }

  Group finished(const Live& live) const {
    Group group = live.group;
    const bool window = options.since_ns != 0 || options.until_ns != ~std::uint64_t{0};
    group.span_ns = window ? window_end() - window_begin() : group.last_ns - group.first_ns;
    std::stable_sort(group.names.begin(), group.names.end(), [](const NameRow& a, const NameRow& b) {
      return a.durations.total_ns() > b.durations.total_ns();
    });
    return group;
  }
};

Summary::Summary(SummaryOptions options, ActorLookup who) : impl_(std::make_unique<Impl>(options, std::move(who))) {}
Summary::~Summary() = default;
Summary::Summary(Summary&&) noexcept = default;
Summary& Summary::operator=(Summary&&) noexcept = default;

void Summary::observe(const Call& call) {
  impl_->observe(call);
}

void Summary::observe(const StoryEvent& event) {
  impl_->observe(event);
}

SummaryResult Summary::result() const {
  SummaryResult result;
  result.by = impl_->options.by;
  result.records = impl_->records;
  result.origin_ns = impl_->origin_ns;
  if (impl_->origin_ns != 0) {
    result.from_ns = impl_->window_begin();
    result.to_ns = impl_->window_end();
  }
  result.processes = impl_->all_processes.size();
  result.folded = impl_->folded;
  // In the order of first use, whatever the hash says: equal ones stay put.
  for (const Live* live : impl_->by_use) result.groups.push_back(impl_->finished(*live));
  std::stable_sort(result.groups.begin(), result.groups.end(), [](const Group& a, const Group& b) {
    return a.driver_ns != b.driver_ns ? a.driver_ns > b.driver_ns : a.who.start_ns < b.who.start_ns;
  });
  result.calls = result.folded.calls;
  result.driver_ns = result.folded.driver_ns;
  for (const Group& group : result.groups) {
    result.calls += group.calls;
    result.driver_ns += group.driver_ns;
  }
  return result;
}

}  // namespace gpuwatch::report
