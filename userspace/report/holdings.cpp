// SPDX-License-Identifier: Apache-2.0
// A process costs one look-up a call. What it holds is kept by GPU; a GPU is
// known by its minor, or by the driver's number where only that was told, and
// the two are joined once an event names both.
#include "report/holdings.h"

#include <algorithm>
#include <iterator>
#include <list>
#include <map>
#include <tuple>
#include <unordered_map>

#include "model/definitions.h"
#include "report/identity.h"

namespace gpuwatch::report {

namespace {

using model::StoryEvent;
using model::StoryKind;
using model::Verdict;

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::size_t kMostSeconds = 60;
constexpr std::size_t kDevicesKnown = 1024;

std::uint64_t less(std::uint64_t from, std::uint64_t what) {
  return from - std::min(from, what);
}

// Calls of the last seconds, by the second.
class CallWindow {
 public:
  void add(std::uint64_t second) {
    forward(second);
    if (second + kMostSeconds > last_) ++counts_[second % kMostSeconds];
  }

  std::uint64_t sum(std::uint64_t from, std::uint64_t to) const {
    std::uint64_t total = 0;
    for (std::uint64_t second = from; second <= to && second <= last_; ++second)
      if (second + kMostSeconds > last_) total += counts_[second % kMostSeconds];
    return total;
  }

 private:
  void forward(std::uint64_t second) {
    if (second <= last_) return;
    const std::uint64_t steps = std::min<std::uint64_t>(second - last_, kMostSeconds);
    for (std::uint64_t i = 0; i < steps; ++i) counts_[(second - i) % kMostSeconds] = 0;
    last_ = second;
  }

  std::uint64_t last_ = 0;
  std::array<std::uint32_t, kMostSeconds> counts_{};
};

// What a process has on one GPU.
struct Part {
  std::int32_t minor = -1;
  std::int32_t device = -1;
  std::uint64_t since_ns = 0;
  std::uint64_t ended_ns = 0;
  std::uint64_t memory_ns = 0;      // of the event that told `memory`
  std::int32_t memory_device = -1;  // whose total that is
  bool partial = false;
  bool open = false;
  std::uint64_t contexts = 0;
  std::uint64_t channels = 0;
  Amount memory;

  bool holds() const { return open || contexts != 0 || channels != 0 || memory.live != 0; }
};

struct Live {
  gpuwatch_rec head{};
  Identity who;
  std::uint64_t first_ns = 0;
  std::uint64_t last_ns = 0;
  std::vector<Part> parts;
  HeldCode code;
  std::uint64_t calls = 0;
  std::uint64_t findings = 0;
  std::uint64_t denied = 0;
  CallWindow window;
  std::list<model::ProcessKey>::iterator use;

  bool holds() const {
    return std::any_of(parts.begin(), parts.end(), [](const Part& part) { return part.ended_ns == 0; });
  }
};

}  // namespace

std::optional<Verdict> HeldCode::worst() const {
  for (std::size_t i = model::kVerdicts; i-- > 0;)
    if (verdicts[i] != 0) return static_cast<Verdict>(i);
  return std::nullopt;
}

bool HeldCode::finding() const {
  const auto of = [&](Verdict verdict) { return verdicts[static_cast<std::size_t>(verdict)]; };
  return silent || of(Verdict::kJit) > jit_allowed || of(Verdict::kUnverified) != 0 || of(Verdict::kUnknown) != 0 ||
         of(Verdict::kModified) != 0 || of(Verdict::kDenied) != 0;
}

std::uint64_t HoldingsSnapshot::lost_total() const {
  std::uint64_t total = 0;
  for (const auto& [reason, count] : lost) total += count;
  return total;
}

std::string container_key(const Identity& who) {
  if (!who.container_id.empty()) return "c " + who.runtime + " " + who.container_id;
  if (who.slurm_job >= 0) return "s " + std::to_string(who.slurm_job);
  if (!who.unit.empty()) return "u " + who.unit;
  if (!who.cgroup_path.empty()) return "p " + who.cgroup_path;
  return "i " + std::to_string(who.cgroup_id);
}

struct Holdings::Impl {
  explicit Impl(HoldingsLimits set) : limits(set) {
    limits.window_ns = std::clamp(limits.window_ns / kSecond, std::uint64_t{1}, std::uint64_t{kMostSeconds}) * kSecond;
    limits.processes = std::max<std::size_t>(limits.processes, 1);
  }

  HoldingsLimits limits;
  std::unordered_map<model::ProcessKey, Live, ProcessHash> processes;
  std::list<model::ProcessKey> by_use;            // longest idle first
  std::map<std::int32_t, std::int32_t> minor_of;  // by device
  std::uint64_t now_ns = 0;
  std::uint64_t next_sweep_ns = 0;
  std::uint64_t overflow_processes = 0;
  std::uint64_t overflow_gpus = 0;
  std::uint64_t cut_strings = 0;

  Live& live_of(const gpuwatch_rec& head) {
    advance(head.time_ns);
    const model::ProcessKey key{head.start_ns, head.tgid};
    auto at = processes.find(key);
    if (at == processes.end()) {
      make_room();
      at = processes.emplace(key, Live{}).first;
      Live& live = at->second;
      live.use = by_use.insert(by_use.end(), key);
      live.first_ns = head.time_ns;
      live.who.pid = head.tgid;
      live.who.uid = head.uid;
      live.who.start_ns = head.start_ns;
      live.who.cgroup_id = head.cgroup_id;
      live.who.comm.assign(model::comm_of(head));
      live.head = head;
    }
    Live& live = at->second;
    if (std::next(live.use) != by_use.end()) by_use.splice(by_use.end(), by_use, live.use);
    live.last_ns = std::max<std::uint64_t>(live.last_ns, head.time_ns);
    // A thread's name is not the process's.
    if (head.tid == head.tgid) {
      live.who.comm.assign(model::comm_of(head));
      live.head = head;
    }
    return live;
  }

  void make_room() {
    while (processes.size() >= limits.processes) {
      const auto oldest = processes.find(by_use.front());
      if (oldest->second.holds()) ++overflow_processes;
      by_use.pop_front();
      processes.erase(oldest);
    }
  }

  void advance(std::uint64_t to_ns) {
    now_ns = std::max(now_ns, to_ns);
    if (now_ns < next_sweep_ns) return;
    next_sweep_ns = now_ns + kSecond;
    for (auto at = processes.begin(); at != processes.end();) {
      Live& live = at->second;
      std::erase_if(live.parts, [&](const Part& part) { return gone(part); });
      const bool idle = now_ns - std::min(now_ns, live.last_ns) > limits.grace_ns;
      if (!live.parts.empty() || !idle) {
        ++at;
        continue;
      }
      by_use.erase(live.use);
      at = processes.erase(at);
    }
  }

  bool gone(const Part& part) const { return part.ended_ns != 0 && now_ns - part.ended_ns > limits.grace_ns; }

  // Bounds every string, and counts those that were cut.
  void name(Live& live, model::Actor actor) {
    Identity& who = live.who;
    const auto cut = [&](std::string_view& text, const std::string& before) {
      if (text.size() <= limits.text) return;
      text = text.substr(0, limits.text);
      if (text != before) ++cut_strings;
    };
    cut(actor.exe, who.exe);
    cut(actor.cgroup_path, who.cgroup_path);
    cut(actor.runtime, who.runtime);
    cut(actor.container_id, who.container_id);
    cut(actor.container_name, who.container_name);
    cut(actor.image, who.image);
    cut(actor.pod_uid, who.pod_uid);
    cut(actor.pod_name, who.pod_name);
    cut(actor.pod_namespace, who.pod_namespace);
    cut(actor.unit, who.unit);
    fill_identity(who, actor);
    if (actor.cgroup_id != 0) who.cgroup_id = actor.cgroup_id;
  }

  Part* part_of(Live& live, std::int32_t minor, std::int32_t device, const gpuwatch_rec& head, bool partial,
                bool make) {
    if (minor < 0 && device >= 0)
      if (const auto known = minor_of.find(device); known != minor_of.end()) minor = known->second;
    const auto same = [&](const Part& part) {
      if (minor >= 0 && part.minor >= 0) return minor == part.minor;
      if (device >= 0 && part.device >= 0) return device == part.device;
      return minor < 0 && device < 0 && part.minor < 0 && part.device < 0;
    };
    auto at = std::find_if(live.parts.begin(), live.parts.end(), same);
    // The first card it is seen with: what it held before is on that one.
    if (at == live.parts.end() && minor >= 0 && live.parts.size() == 1 && live.parts[0].minor < 0 &&
        live.parts[0].device < 0)
      at = live.parts.begin();
    if (at == live.parts.end()) {
      if (!make) return nullptr;
      if (live.parts.size() >= limits.gpus) {
        ++overflow_gpus;
        return nullptr;
      }
      Part part;
      part.since_ns = head.time_ns;
      part.partial = partial;
      at = live.parts.insert(live.parts.end(), part);
    }
    if (at->minor < 0) at->minor = minor;
    if (at->device < 0) at->device = device;
    return &*at;
  }

  // The same GPU under two names, until an event told both.
  void join(std::int32_t device, std::int32_t minor) {
    if (minor_of.size() >= kDevicesKnown || !minor_of.emplace(device, minor).second) return;
    for (auto& [key, live] : processes) {
      const auto lone = std::find_if(live.parts.begin(), live.parts.end(),
                                     [&](const Part& part) { return part.device == device && part.minor < 0; });
      if (lone != live.parts.end()) (void)adopt(live, *lone, minor);
    }
  }

  // A part whose card is known by now; it may have another part there already.
  static Part* adopt(Live& live, Part& lone, std::int32_t minor) {
    lone.minor = minor;
    const auto other = std::find_if(live.parts.begin(), live.parts.end(),
                                    [&](const Part& part) { return &part != &lone && part.minor == minor; });
    if (other == live.parts.end()) return &lone;
    if (other->device < 0) other->device = lone.device;
    other->since_ns = std::min(other->since_ns, lone.since_ns);
    other->partial = other->partial || lone.partial;
    other->contexts += lone.contexts;
    other->channels += lone.channels;
    other->memory.live += lone.memory.live;
    other->memory.peak = std::max(other->memory.peak, lone.memory.peak);
    other->memory_ns = std::max(other->memory_ns, lone.memory_ns);
    other->memory_device = lone.memory_device;
    if (other->holds()) other->ended_ns = 0;
    const std::size_t gone = static_cast<std::size_t>(&lone - live.parts.data());
    std::size_t kept = static_cast<std::size_t>(other - live.parts.begin());
    live.parts.erase(live.parts.begin() + static_cast<std::ptrdiff_t>(gone));
    kept -= kept > gone;
    return &live.parts[kept];
  }

  // Totals of memory are the driver's device's, of which the card may become
  // known, or doubtful, later: they stay together.
  static Part* carrier_of(Live& live, const StoryEvent& event) {
    for (Part& part : live.parts) {
      if (part.memory_ns == 0 || part.memory_device != event.gpu_device) continue;
      return part.minor < 0 && event.gpu_minor >= 0 ? adopt(live, part, event.gpu_minor) : &part;
    }
    return nullptr;
  }

  void settle(Part& part, std::uint64_t at_ns) const {
    if (part.holds())
      part.ended_ns = 0;
    else if (part.ended_ns == 0)
      part.ended_ns = std::max<std::uint64_t>(at_ns, 1);
  }

  void on_memory(const StoryEvent& event, const model::MemoryBody& body, Part& part) {
    part.memory.live = body.live_bytes;
    part.memory.peak = std::max({part.memory.peak, body.peak_bytes, body.live_bytes});
    part.memory_ns = std::max<std::uint64_t>(event.head.time_ns, 1);
    part.memory_device = event.gpu_device;
    if (event.kind != StoryKind::kMemoryInherited) return;
    const auto from = processes.find(body.from.process);
    if (from == processes.end() || body.from.process == event.process()) return;
    Part* left = part_of(from->second, event.gpu_minor, event.gpu_device, event.head, false, false);
    // What it freed at the same time told its total already.
    if (left == nullptr || left->memory_ns == event.head.time_ns) return;
    left->memory.live = less(left->memory.live, body.bytes);
    settle(*left, event.head.time_ns);
  }

  void on_code(Live& live, const model::ModuleBody& body) {
    HeldCode& code = live.code;
    ++code.loads;
    code.silent = false;
    if (!body.judged) {
      ++code.unjudged;
      return;
    }
    ++code.verdicts[std::min(static_cast<std::size_t>(body.verdict), model::kVerdicts - 1)];
    code.jit_allowed += body.verdict == Verdict::kJit && body.allowed;
  }

  void everything_ends(std::uint64_t at_ns) {
    for (auto& [key, live] : processes) release(live, at_ns);
  }

  void release(Live& live, std::uint64_t at_ns) const {
    for (Part& part : live.parts) {
      part.open = false;
      part.contexts = part.channels = part.memory.live = 0;
      settle(part, at_ns);
    }
  }

  void on_gpu(const StoryEvent& event, Live& live) {
    const auto* memory = std::get_if<model::MemoryBody>(&event.body);
    const bool on_card = memory != nullptr && memory->location == model::Location::kGpu;
    const bool begins = event.kind == StoryKind::kGpuOpened || event.kind == StoryKind::kContextCreated ||
                        event.kind == StoryKind::kContextChanged || event.kind == StoryKind::kChannelCreated ||
                        (on_card && memory->live_bytes != 0 && event.kind != StoryKind::kMemoryRefused);
    Part* part = on_card ? carrier_of(live, event) : nullptr;
    if (part == nullptr) part = part_of(live, event.gpu_minor, event.gpu_device, event.head, event.partial, begins);
    if (part == nullptr) return;
    switch (event.kind) {
      case StoryKind::kGpuOpened:
        part->open = true;
        break;
      case StoryKind::kGpuClosed:
        part->open = false;
        break;
      case StoryKind::kContextCreated:
        ++part->contexts;
        break;
      case StoryKind::kContextDestroyed:
        part->contexts = less(part->contexts, 1);
        break;
      case StoryKind::kChannelCreated:
        ++part->channels;
        break;
      case StoryKind::kChannelDestroyed:
        part->channels = less(part->channels, 1);
        break;
      default:
        if (on_card && event.kind != StoryKind::kMemoryRefused) on_memory(event, *memory, *part);
        break;
    }
    settle(*part, event.head.time_ns);
  }

  void observe(const StoryEvent& event, const model::Actor& actor) {
    if (event.kind == StoryKind::kDriverState) {
      advance(event.head.time_ns);
      const auto* state = std::get_if<model::StateBody>(&event.body);
      if (state != nullptr && state->event == GPUWATCH_STATE_DRIVER_GOING) everything_ends(event.head.time_ns);
      return;
    }
    Live& live = live_of(event.head);
    name(live, actor);
    if (!event.partial && event.gpu_minor >= 0 && event.gpu_device >= 0) join(event.gpu_device, event.gpu_minor);
    switch (event.kind) {
      case StoryKind::kSecurityFinding:
      case StoryKind::kUnallocatedUse:
      case StoryKind::kCodeDiffers:
        ++live.findings;
        return;
      case StoryKind::kCallDenied:
      case StoryKind::kOpenFailed:
        ++live.denied;
        return;
      case StoryKind::kUnverified:
        live.code.silent = true;
        return;
      case StoryKind::kModuleLoad:
      case StoryKind::kModuleFound:
        if (const auto* body = std::get_if<model::ModuleBody>(&event.body)) on_code(live, *body);
        return;
      default:
        on_gpu(event, live);
    }
  }

  void count_call(const gpuwatch_rec& head) {
    if (head.type != GPUWATCH_REC_OPEN && head.type != GPUWATCH_REC_IOCTL && head.type != GPUWATCH_REC_MMAP &&
        head.type != GPUWATCH_REC_RELEASE)
      return;
    Live& live = live_of(head);
    ++live.calls;
    live.window.add(head.time_ns / kSecond);
    // A card that was open before gpuwatch looked.
    if (head.node_kind != GPUWATCH_NODE_GPU || (head.type != GPUWATCH_REC_IOCTL && head.type != GPUWATCH_REC_MMAP))
      return;
    Part* part = part_of(live, static_cast<std::int32_t>(head.rdev & 0xfffff), -1, head, true, true);
    if (part == nullptr || part->open) return;
    part->open = true;
    settle(*part, head.time_ns);
  }

  double rate(const Live& live) const {
    const std::uint64_t second = now_ns / kSecond;
    const std::uint64_t span = limits.window_ns / kSecond;
    const std::uint64_t first = std::max(less(second, span - 1), live.first_ns / kSecond);
    const std::uint64_t begin_ns = std::max(first * kSecond, live.first_ns);
    const std::uint64_t covered_ns = std::max(less(now_ns, begin_ns), kSecond);
    return static_cast<double>(live.window.sum(first, second)) * 1e9 / static_cast<double>(covered_ns);
  }

  HeldProcess held(const Live& live, const Part& part) const {
    HeldProcess process;
    process.who = live.who;
    process.since_ns = part.since_ns;
    process.last_ns = live.last_ns;
    process.partial = part.partial;
    process.open = part.open;
    process.ended_ns = part.ended_ns;
    process.contexts = part.contexts;
    process.channels = part.channels;
    process.memory = part.memory;
    process.code = live.code;
    process.calls = live.calls;
    process.calls_per_second = rate(live);
    process.findings = live.findings;
    process.denied = live.denied;
    return process;
  }
};

Holdings::Holdings(HoldingsLimits limits) : impl_(std::make_unique<Impl>(limits)) {}
Holdings::~Holdings() = default;
Holdings::Holdings(Holdings&&) noexcept = default;
Holdings& Holdings::operator=(Holdings&&) noexcept = default;

void Holdings::observe(const StoryEvent& event, const model::Actor& actor) {
  impl_->observe(event, actor);
}

void Holdings::count_call(const gpuwatch_rec& head) {
  impl_->count_call(head);
}

void Holdings::advance(std::uint64_t now_ns) {
  impl_->advance(now_ns);
}

std::vector<gpuwatch_rec> Holdings::heads() const {
  std::vector<gpuwatch_rec> heads;
  for (const model::ProcessKey& key : impl_->by_use)
    if (const auto at = impl_->processes.find(key); at != impl_->processes.end()) heads.push_back(at->second.head);
  return heads;
}

void Holdings::ended(const model::ProcessKey& process) {
  const auto at = impl_->processes.find(process);
  if (at != impl_->processes.end()) impl_->release(at->second, impl_->now_ns);
}

void Holdings::refresh(const std::function<model::Actor(const gpuwatch_rec&)>& who) {
  for (auto& [key, live] : impl_->processes)
    if (!live.parts.empty()) impl_->name(live, who(live.head));
}

HoldingsSnapshot Holdings::snapshot(const model::GpuList& gpus) const {
  HoldingsSnapshot out;
  out.at_ns = impl_->now_ns;
  out.window_ns = impl_->limits.window_ns;
  out.overflow_processes = impl_->overflow_processes;
  out.overflow_gpus = impl_->overflow_gpus;
  out.cut_strings = impl_->cut_strings;

  using GpuKey = std::pair<std::int32_t, std::int32_t>;  // the unknown sort last
  std::map<GpuKey, std::vector<HeldProcess>> found;
  constexpr std::int32_t kLast = 0x7fffffff;
  for (const auto& [key, live] : impl_->processes)
    for (const Part& part : live.parts)
      if (!impl_->gone(part))
        found[{part.minor >= 0 ? part.minor : kLast, part.minor >= 0 ? -1 : part.device}].push_back(
            impl_->held(live, part));
  for (auto& [key, processes] : found) {
    HeldGpu& gpu = out.gpus.emplace_back();
    gpu.minor = key.first == kLast ? -1 : key.first;
    gpu.device = key.second;
    for (const auto& [device, minor] : impl_->minor_of)
      if (gpu.minor >= 0 && minor == gpu.minor) gpu.device = device;
    if (const model::Gpu* card = model::find_gpu(gpus, gpu.minor)) {
      gpu.pci = card->pci;
      gpu.uuid = card->uuid;
      gpu.name = card->name;
    }
    std::sort(processes.begin(), processes.end(), [](const HeldProcess& a, const HeldProcess& b) {
      return std::tie(a.since_ns, a.who.pid, a.who.start_ns) < std::tie(b.since_ns, b.who.pid, b.who.start_ns);
    });
    for (HeldProcess& process : processes) {
      std::string group = container_key(process.who);
      auto at = std::find_if(gpu.containers.begin(), gpu.containers.end(),
                             [&](const HeldContainer& container) { return container.key == group; });
      if (at == gpu.containers.end()) at = gpu.containers.insert(at, {std::move(group), {}});
      at->processes.push_back(std::move(process));
    }
  }
  return out;
}

}  // namespace gpuwatch::report
