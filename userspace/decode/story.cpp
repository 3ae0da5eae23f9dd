// SPDX-License-Identifier: Apache-2.0
// Which calls make an event. Decides by tag and category, which are data, never
// by a number. Habitual failures of CUDA programs (unsupported queries, probes of
// their own channels) are no events; refusals are.
#include "decode/story.h"

#include <algorithm>
#include <cstring>

#include "decode/story_state.h"
#include "model/definitions.h"

namespace gpuwatch::decode {

namespace {

using model::Call;
using model::CallKind;
using model::Category;
using model::Field;
using model::StoryEvent;
using model::StoryKind;
using model::Tag;
using story::File;
using story::Object;
using story::Pending;
using story::Process;
using story::ProcessKey;

constexpr std::size_t kMaxPending = 64;
constexpr std::size_t kMaxGpus = 64;
constexpr std::size_t kMaxForeignMaps = 256;
// Smaller memory (notifiers, semaphores: one per channel) counts into the totals
// but makes no line of its own.
constexpr std::uint64_t kTellFromBytes = 64 << 10;

bool is_engine(Category category) {
  return category == Category::kCompute || category == Category::kCopy || category == Category::kGraphics ||
         category == Category::kVideo || category == Category::kInlineToMemory;
}

bool is_memory(Category category) {
  return category == Category::kMemoryGpu || category == Category::kMemoryHost || category == Category::kMemoryOther ||
         category == Category::kFabric;
}

}  // namespace

struct StoryBuilder::Impl {
  explicit Impl(StoryLimits set) : limits(set) {}

  StoryLimits limits;
  std::unordered_map<ProcessKey, Process, story::ProcessKeyHash> processes;
  std::unordered_map<std::uint64_t, File> files;
  std::size_t object_count = 0;
  std::uint64_t clock = 0;
  std::uint64_t forgotten = 0;

  // --- state ---------------------------------------------------------------

  Process& process_of(const gpuwatch_rec& head) {
    const ProcessKey key{head.start_ns, head.tgid};
    auto at = processes.find(key);
    if (at == processes.end()) {
      if (processes.size() >= limits.processes) forget_oldest();
      at = processes.try_emplace(key).first;
      at->second.key = key;
    }
    at->second.head = head;
    at->second.last_use = ++clock;
    return at->second;
  }

  void forget_oldest() {
    const auto oldest = std::min_element(processes.begin(), processes.end(), [](const auto& a, const auto& b) {
      return a.second.last_use < b.second.last_use;
    });
    if (oldest == processes.end()) return;
    object_count -= oldest->second.objects.size();
    const ProcessKey key = oldest->first;
    std::erase_if(files, [&](const auto& file) { return file.second.owner == key; });
    processes.erase(oldest);
    ++forgotten;
  }

  // A handle that is made again while known: its end was lost.
  void forget_known(Process& process, std::uint32_t client, std::uint32_t handle) {
    const Taken old = take_tree(process, client, handle);
    process.gpu_bytes -= std::min(old.gpu, process.gpu_bytes);
    process.host_bytes -= std::min(old.host, process.host_bytes);
  }

  // The handle must not be known. False when a limit says no.
  bool remember(Process& process, std::uint32_t client, std::uint32_t handle, const Object& object) {
    if (handle == 0) return false;
    if (object_count >= limits.objects || process.objects.size() >= limits.objects_per_process) {
      ++forgotten;
      return false;
    }
    process.insert(client, handle, object);
    ++object_count;
    return true;
  }

  struct Taken {
    std::uint64_t gpu = 0;
    std::uint64_t host = 0;
    std::vector<std::uint32_t> groups;  // that were running
  };

  // Forgets an object and, as RM does, all below it: leaves first.
  Taken take_tree(Process& process, std::uint32_t client, std::uint32_t handle) {
    Taken taken;
    if (process.find(client, handle) == nullptr) return taken;
    std::vector<std::uint32_t> doomed{handle};
    while (!doomed.empty()) {
      const std::uint32_t each = doomed.back();
      const Object* object = process.find(client, each);
      if (object->first_child != 0) {
        doomed.push_back(object->first_child);
        continue;
      }
      doomed.pop_back();
      if (is_memory(object->category)) (object->host ? taken.host : taken.gpu) += object->bytes;
      if (object->category == Category::kChannelGroup && process.find_pending(client, each) == nullptr)
        taken.groups.push_back(each);
      process.drop_pending(client, each);
      process.erase(client, each);
      --object_count;
    }
    return taken;
  }

  // --- events --------------------------------------------------------------

  static StoryEvent event_for(StoryKind kind, const Call& call, const Process& process) {
    StoryEvent event;
    event.kind = kind;
    event.head = call.record.head;
    event.client = call.get32(Field::kClient);
    event.object = call.get32(Field::kObject);
    event.source_client = call.get32(Field::kSourceClient);
    event.source_object = call.get32(Field::kSourceObject);
    event.name = call.name;
    event.detail = call.detail;
    event.ret = call.ret;
    place(event, call, process, -1);
    return event;
  }

  // The node says which GPU; else the only GPU the process has; else the RM
  // device the object belongs to. Never a guess among several.
  static void place(StoryEvent& event, const Call& call, const Process& process, std::int32_t device) {
    event.gpu_device = device;
    if (call.record.head.node_kind == GPUWATCH_NODE_GPU)
      event.gpu_minor = static_cast<std::int32_t>(call.minor);
    else if (process.gpus.size() == 1)
      event.gpu_minor = static_cast<std::int32_t>(process.gpus.front().minor);
  }

  static void tell_denial(const Call& call, const Process& process, std::vector<StoryEvent>& out) {
    StoryEvent event = event_for(StoryKind::kDenied, call, process);
    event.status = call.get32(Field::kStatus);
    event.status_name = call.status_name;
    if (call.has(Field::kControl))
      event.number = call.get32(Field::kControl);
    else if (call.has(Field::kClass))
      event.number = call.get32(Field::kClass);
    else
      event.number = call.number;
    if (call.detail.empty() && !call.interface.empty()) event.detail = call.interface;
    out.push_back(event);
  }

  // Out of memory, mostly: the driver says so in the status alone.
  static void tell_refused_memory(const Call& call, Process& process, std::vector<StoryEvent>& out) {
    if (!call.has(Field::kBytes)) return;
    StoryEvent event = event_for(StoryKind::kMemoryRefused, call, process);
    event.name = call.detail;
    event.host_memory = call.category == Category::kMemoryHost;
    event.bytes = call.get(Field::kBytes);
    event.total_bytes = process.total(event.host_memory);
    event.status = call.get32(Field::kStatus);
    event.status_name = call.status_name;
    const Object* above = process.find(event.client, call.get32(Field::kParent));
    place(event, call, process, above == nullptr ? -1 : above->device);
    out.push_back(event);
  }

  // One event per kind of memory for all of `freed`, then forget the objects.
  void free_memory(Process& process, const Call& call, std::uint64_t gpu, std::uint64_t host, std::int32_t device,
                   std::vector<StoryEvent>& out) {
    for (const bool is_host : {false, true}) {
      const std::uint64_t bytes = is_host ? host : gpu;
      if (bytes == 0) continue;
      process.total(is_host) -= std::min(bytes, process.total(is_host));
      if (bytes < kTellFromBytes) continue;
      StoryEvent event = event_for(StoryKind::kMemoryFreed, call, process);
      event.head = owner_head(process, call);
      event.host_memory = is_host;
      event.bytes = bytes;
      event.total_bytes = process.total(is_host);
      place(event, call, process, device);
      out.push_back(event);
    }
  }

  static gpuwatch_rec owner_head(const Process& process, const Call& call) {
    gpuwatch_rec head = process.head;
    head.time_ns = call.record.head.time_ns;
    head.cpu = call.record.head.cpu;
    head.seq = call.record.head.seq;
    return head;
  }

  void free_tree(Process& process, std::uint32_t client, std::uint32_t handle, const Call& call,
                 std::vector<StoryEvent>& out) {
    const Object* top = process.find(client, handle);
    if (top == nullptr) return;
    const std::int32_t device = top->device;
    const bool whole_client = top->category == Category::kClient;
    const Taken taken = take_tree(process, client, handle);
    free_memory(process, call, taken.gpu, taken.host, device, out);
    if (!taken.groups.empty()) {
      StoryEvent event = event_for(StoryKind::kContextClosed, call, process);
      event.head = owner_head(process, call);
      event.client = client;
      event.object = taken.groups.size() == 1 ? taken.groups.front() : handle;
      event.contexts = static_cast<std::uint32_t>(taken.groups.size());
      place(event, call, process, device);
      out.push_back(event);
    }
    if (!whole_client) return;
    StoryEvent event = event_for(StoryKind::kClientClosed, call, process);
    event.head = owner_head(process, call);
    event.client = client;
    out.push_back(event);
  }

  // --- files ---------------------------------------------------------------

  void on_open(const Call& call, std::vector<StoryEvent>& out) {
    const gpuwatch_rec& head = call.record.head;
    Process& process = process_of(head);
    if (call.ret < 0) {
      StoryEvent event = event_for(StoryKind::kOpenFailed, call, process);
      event.name = call.node;
      out.push_back(event);
      return;
    }
    if (files.size() >= limits.objects) {
      ++forgotten;
      return;
    }
    files.insert_or_assign(head.file_id, File{process.key, head.node_kind, call.minor});
    if (head.node_kind != GPUWATCH_NODE_GPU || process.gpus.size() >= kMaxGpus) return;
    if (process.gpu(call.minor).files++ == 0) out.push_back(event_for(StoryKind::kGpuOpened, call, process));
  }

  void on_release(const Call& call, std::vector<StoryEvent>& out) {
    const auto file = files.find(call.record.head.file_id);
    if (file == files.end()) return;
    const File info = file->second;
    files.erase(file);
    const auto owner = processes.find(info.owner);
    if (owner == processes.end()) return;
    Process& process = owner->second;
    if (info.node_kind == GPUWATCH_NODE_CTL) close_clients(process, call, out);
    if (info.node_kind != GPUWATCH_NODE_GPU) return;
    story::OpenGpu& gpu = process.gpu(info.minor);
    if (gpu.files == 0 || --gpu.files != 0) return;
    StoryEvent event = event_for(StoryKind::kGpuClosed, call, process);
    event.head = owner_head(process, call);
    out.push_back(event);
  }

  void close_clients(Process& process, const Call& call, std::vector<StoryEvent>& out) {
    std::vector<std::uint32_t> clients;
    for (const auto& [key, object] : process.objects)
      if (object.category == Category::kClient && object.file_id == call.record.head.file_id)
        clients.push_back(static_cast<std::uint32_t>(key));
    std::sort(clients.begin(), clients.end());
    for (const std::uint32_t client : clients) free_tree(process, client, client, call, out);
  }

  // --- objects -------------------------------------------------------------

  void on_alloc(Process& process, const Call& call, std::vector<StoryEvent>& out) {
    std::uint32_t client = call.get32(Field::kClient);
    const std::uint32_t handle = call.get32(Field::kObject);
    const std::uint32_t parent = call.get32(Field::kParent);
    if (call.category == Category::kClient) client = handle;
    forget_known(process, client, handle);
    Object object;
    object.category = call.category;
    object.parent = parent;
    if (const Object* above = process.find(client, parent)) {
      object.device = above->device;
      if (above->category == Category::kChannel) object.group = above->group;
    }
    switch (call.category) {
      case Category::kClient: {
        object.file_id = call.record.head.file_id;
        StoryEvent event = event_for(StoryKind::kClientCreated, call, process);
        event.client = client;
        out.push_back(event);
        break;
      }
      case Category::kDevice:
        object.device = call.has(Field::kDevice) ? static_cast<std::int32_t>(call.get32(Field::kDevice)) : -1;
        break;
      case Category::kChannelGroup:
        add_pending(process, client, handle, object.device);
        break;
      case Category::kChannel:
        object.group = parent;
        if (Pending* group = process.find_pending(client, parent)) {
          ++group->channels;
        } else if (const Object* above = process.find(client, parent);
                   above == nullptr || above->category != Category::kChannelGroup) {
          // A channel of its own, without a group.
          object.group = handle;
          add_pending(process, client, handle, object.device);
          if (Pending* alone = process.find_pending(client, handle)) alone->channels = 1;
        }
        break;
      case Category::kDebugger:
        if (process.find(call.get32(Field::kSourceClient), call.get32(Field::kSourceClient)) == nullptr)
          out.push_back(event_for(StoryKind::kDebuggerAttached, call, process));
        break;
      case Category::kProfiler: {
        StoryEvent event = event_for(StoryKind::kProfilerAttached, call, process);
        event.name = call.detail;
        out.push_back(event);
        break;
      }
      default:
        if (is_engine(call.category)) {
          if (Pending* group = process.find_pending(client, object.group)) group->add_engine(call.detail);
        } else if (is_memory(call.category)) {
          object.host = call.category == Category::kMemoryHost;
          object.bytes = call.has(Field::kBytes) ? call.get(Field::kBytes) : call.get(Field::kLength);
        }
    }
    const bool counted = remember(process, client, handle, object);
    if (is_memory(object.category)) tell_memory(process, call, object, counted, out);
  }

  static void add_pending(Process& process, std::uint32_t client, std::uint32_t group, std::int32_t device) {
    if (process.pending.size() >= kMaxPending) process.pending.erase(process.pending.begin());
    Pending& pending = process.pending.emplace_back();
    pending.client = client;
    pending.group = group;
    pending.device = device;
  }

  // Only what is remembered counts into the totals: the rest could not be taken
  // out again.
  static void tell_memory(Process& process, const Call& call, const Object& object, bool counted,
                          std::vector<StoryEvent>& out) {
    if (object.bytes == 0) return;
    if (counted) process.total(object.host) += object.bytes;
    if (object.bytes < kTellFromBytes) return;
    StoryEvent event = event_for(StoryKind::kMemoryAllocated, call, process);
    event.name = call.detail;
    event.host_memory = object.host;
    event.bytes = object.bytes;
    event.total_bytes = process.total(object.host);
    place(event, call, process, object.device);
    out.push_back(event);
  }

  // NV_ESC_RM_VID_HEAP_CONTROL: older way to allocate and free GPU memory.
  void on_heap_control(Process& process, const Call& call, std::vector<StoryEvent>& out) {
    constexpr std::uint32_t kAllocSize = 2;
    constexpr std::uint32_t kFree = 3;
    const std::uint32_t client = call.get32(Field::kClient);
    if (call.get32(Field::kFunction) == kFree) free_tree(process, client, call.get32(Field::kObject), call, out);
    if (call.get32(Field::kFunction) != kAllocSize) return;
    Object object;
    object.category = Category::kMemoryGpu;
    object.parent = call.get32(Field::kParent);
    object.bytes = call.get(Field::kBytes);
    if (const Object* above = process.find(client, object.parent)) object.device = above->device;
    forget_known(process, client, call.get32(Field::kObject));
    const bool counted = remember(process, client, call.get32(Field::kObject), object);
    tell_memory(process, call, object, counted, out);
  }

  static void on_schedule(Process& process, const Call& call, std::vector<StoryEvent>& out) {
    const std::uint32_t client = call.get32(Field::kClient);
    std::uint32_t group = call.get32(Field::kObject);
    if (const Object* object = process.find(client, group); object != nullptr && object->category == Category::kChannel)
      group = object->group;
    const Pending* pending = process.find_pending(client, group);
    if (pending == nullptr) return;
    StoryEvent event = event_for(StoryKind::kContextCreated, call, process);
    event.object = group;
    event.channels = pending->channels;
    event.engine_count = pending->engine_count;
    event.engines = pending->engines;
    place(event, call, process, pending->device);
    out.push_back(event);
    process.drop_pending(client, group);
  }

  // Mapping one's own memory follows each allocation and tells nothing new;
  // mapping somebody else's does.
  static void on_uvm_map(Process& process, const Call& call, std::vector<StoryEvent>& out) {
    if (!call.has(Field::kObject)) return;
    if (process.find(call.get32(Field::kClient), call.get32(Field::kObject)) != nullptr) return;
    StoryEvent event = event_for(StoryKind::kMemoryMapped, call, process);
    event.address = call.get(Field::kAddress);
    event.bytes = call.get(Field::kLength);
    out.push_back(event);
    if (process.foreign_maps.size() < kMaxForeignMaps) process.foreign_maps.push_back({event.address, event.bytes});
  }

  static void on_uvm_unmap(Process& process, const Call& call, std::vector<StoryEvent>& out) {
    const std::uint64_t address = call.get(Field::kAddress);
    const auto known = std::find_if(process.foreign_maps.begin(), process.foreign_maps.end(),
                                    [address](const auto& map) { return map.address == address; });
    if (known == process.foreign_maps.end()) return;
    StoryEvent event = event_for(StoryKind::kMemoryUnmapped, call, process);
    event.address = address;
    event.bytes = known->bytes;
    process.foreign_maps.erase(known);
    out.push_back(event);
  }

  void on_ioctl(const Call& call, std::vector<StoryEvent>& out) {
    Process& process = process_of(call.record.head);
    if (call.record.head.node_kind == GPUWATCH_NODE_GPU && process.gpus.size() < kMaxGpus) process.gpu(call.minor);
    if (call.denied)
      tell_denial(call, process, out);
    else if (call.failed && call.tag == Tag::kAlloc && is_memory(call.category))
      tell_refused_memory(call, process, out);
    if (call.failed) return;
    const auto simple = [&](StoryKind kind, std::string_view name) {
      StoryEvent event = event_for(kind, call, process);
      event.name = name;
      out.push_back(event);
    };
    switch (call.tag) {
      case Tag::kAlloc:
      case Tag::kAllocMemory:
        on_alloc(process, call, out);
        break;
      case Tag::kFree:
        free_tree(process, call.get32(Field::kClient), call.get32(Field::kObject), call, out);
        break;
      case Tag::kHeapControl:
        on_heap_control(process, call, out);
        break;
      case Tag::kSchedule:
        on_schedule(process, call, out);
        break;
      case Tag::kUvmMap:
        on_uvm_map(process, call, out);
        break;
      case Tag::kUvmUnmap:
      case Tag::kUvmFree:
        on_uvm_unmap(process, call, out);
        break;
      case Tag::kPeerOn:
        simple(StoryKind::kPeerEnabled, call.name);
        break;
      case Tag::kPeerOff:
        simple(StoryKind::kPeerDisabled, call.name);
        break;
      case Tag::kForeignMemory:
        simple(StoryKind::kForeignMemory, call.detail.empty() ? call.name : call.detail);
        break;
      case Tag::kExport:
      case Tag::kShare:
        simple(StoryKind::kExported, call.detail.empty() ? call.name : call.detail);
        break;
      case Tag::kImport:
        simple(StoryKind::kImported, call.detail.empty() ? call.name : call.detail);
        break;
      case Tag::kDup: {
        const std::uint32_t source = call.get32(Field::kSourceClient);
        if (process.find(source, source) == nullptr) simple(StoryKind::kDuplicated, call.name);
        break;
      }
      default:
        break;
    }
  }

  static void on_state(const Call& call, std::vector<StoryEvent>& out) {
    const auto state = model::parse_state(call.record);
    if (!state) return;
    StoryEvent event;
    event.kind = StoryKind::kDriverState;
    event.head = call.record.head;
    event.state_event = state->event;
    event.state_value = state->value;
    event.state_error = state->error;
    std::memcpy(event.state_name.data(), state->name.data(), std::min(state->name.size(), event.state_name.size()));
    // One line per hooked function is for the raw view; a failure is for all.
    if (state->event != GPUWATCH_STATE_HOOKED && state->event != GPUWATCH_STATE_PLAN) out.push_back(event);
  }
};

StoryBuilder::StoryBuilder(StoryLimits limits) : impl_(std::make_unique<Impl>(limits)) {}
StoryBuilder::~StoryBuilder() = default;
StoryBuilder::StoryBuilder(StoryBuilder&&) noexcept = default;
StoryBuilder& StoryBuilder::operator=(StoryBuilder&&) noexcept = default;

void StoryBuilder::observe(const Call& call, std::vector<StoryEvent>& out) {
  switch (call.kind) {
    case CallKind::kOpen:
      impl_->on_open(call, out);
      break;
    case CallKind::kRelease:
      impl_->on_release(call, out);
      break;
    case CallKind::kIoctl:
      impl_->on_ioctl(call, out);
      break;
    case CallKind::kState:
      Impl::on_state(call, out);
      break;
    default:
      break;
  }
}

std::uint64_t StoryBuilder::forgotten() const {
  return impl_->forgotten;
}

}  // namespace gpuwatch::decode
