// SPDX-License-Identifier: Apache-2.0
#include "probe/outside/driver_facts.h"

#include <algorithm>

#include "model/raw_record.h"

namespace gpuwatch::probe::outside {

namespace {

using model::Category;
using model::Field;
using model::Tag;

constexpr std::uint32_t kClassDevice = 0x80;
constexpr std::size_t kMapFirstGpu = 24;  // in UVM_MAP_EXTERNAL_ALLOCATION_PARAMS, in every release
constexpr std::size_t kMemoryFlags = 8;   // in NV_MEMORY_ALLOCATION_PARAMS

// A number of the parameters as they went in, 0 where they were not captured.
template <typename T>
T captured(const model::Call& call, gpuwatch_capture_what what, std::size_t offset) {
  const auto view = model::parse_ioctl(call.record);
  const model::Capture* const capture = view ? view->find(what) : nullptr;
  if (capture == nullptr || capture->head.offset > offset) return {};
  return model::read_at<T>(capture->bytes, offset - capture->head.offset).value_or(T{});
}

}  // namespace

std::vector<std::uint32_t> sms_of(std::uint32_t compute_class) {
  switch (compute_class) {
    case 0xc3c0:
      return {70};
    case 0xc5c0:
      return {75};
    case 0xc6c0:
      return {80};
    case 0xc7c0:
      return {86, 87};
    case 0xc9c0:
      return {89};
    case 0xcbc0:
      return {90};
    case 0xcdc0:
      return {100, 103};
    case 0xcec0:
      return {120, 121};
    default:
      return {};
  }
}

void DriverFacts::call(const model::Call& call) {
  if (call.kind != model::CallKind::kIoctl) return;
  if (call.tag == Tag::kFree) {
    // What failed to go may be gone all the same; who names it again is told by the driver.
    freed({call.get32(Field::kClient), call.get32(Field::kObject)});
    return;
  }
  if (call.space == model::Space::kUvm) {
    if (call.name == "UVM_FREE" || call.tag == Tag::kUnmapGpu)
      unmapped(call.get(Field::kAddress), call.get(Field::kLength));
    else if (call.name == "UVM_UNREGISTER_GPU_VASPACE" || call.name == "UVM_UNREGISTER_GPU")
      unregistered(call);
    else if (!call.failed && call.name == "UVM_MAP_EXTERNAL_ALLOCATION")
      mapped(call);
    return;
  }
  if (!call.failed && call.tag == Tag::kAlloc) allocated(call);
}

void DriverFacts::allocated(const model::Call& call) {
  const auto object_class = call.get32(Field::kClass);
  const Key key{call.get32(Field::kClient), call.get32(Field::kObject)};
  if (call.category == Category::kClient) {
    // The client's number is the handle of the new object.
    freed({key.second, key.second});
    return;
  }
  freed(key);
  // Others lie between what is of interest here, so all are kept.
  if (objects_.size() >= kObjectsMax) {
    cut_ = true;
    return;
  }
  Object object;
  object.parent = {key.first, call.get32(Field::kParent)};
  object.object_class = object_class;
  object.number = next_++;
  if (object_class == kClassDevice && call.has(Field::kDevice))
    object.instance = static_cast<std::int32_t>(call.get32(Field::kDevice));
  if (call.category == Category::kDebugger) object.compute = call.get32(Field::kSourceObject);
  if (object_class == kClassVideoMemory)
    object.flags = captured<std::uint32_t>(call, GPUWATCH_CAP_NESTED0_IN, kMemoryFlags);
  children_[object.parent].insert(key.second);
  debuggers_ += object.compute != 0;
  objects_[key] = object;
}

void DriverFacts::freed(Key key) {
  // No recursion: a hostile record may nest as deep as there are objects.
  std::vector<Key> going{key};
  if (key.first == key.second)
    for (auto it = objects_.lower_bound({key.first, 0}); it != objects_.end() && it->first.first == key.first; ++it)
      going.push_back(it->first);
  while (!going.empty()) {
    const Key one = going.back();
    going.pop_back();
    if (const auto below = children_.find(one); below != children_.end()) {
      for (const Handle child : below->second) going.emplace_back(one.first, child);
      children_.erase(below);
    }
    const auto object = objects_.find(one);
    if (object == objects_.end()) continue;
    if (const auto above = children_.find(object->second.parent); above != children_.end()) {
      above->second.erase(one.second);
      // Of a parent that was never made nobody would take it away.
      if (above->second.empty()) children_.erase(above);
    }
    debuggers_ -= object->second.compute != 0;
    objects_.erase(object);
  }
}

void DriverFacts::mapped(const model::Call& call) {
  const std::uint64_t address = call.get(Field::kAddress);
  Range range;
  range.bytes = call.get(Field::kLength);
  range.offset = call.get(Field::kOffset);
  range.memory = {call.get32(Field::kClient), call.get32(Field::kObject)};
  if (range.bytes == 0 || address + range.bytes < address || range.offset + range.bytes < range.offset) return;
  unmapped(address, range.bytes);
  if (ranges_.size() >= kRangesMax) {
    cut_ = true;
    return;
  }
  range.uuid = captured<Uuid>(call, GPUWATCH_CAP_ARG_IN, kMapFirstGpu);
  if (const auto object = objects_.find(range.memory); object != objects_.end()) {
    range.number = object->second.number;
    range.object_class = object->second.object_class;
    range.flags = object->second.flags;
    range.device = object->second.parent;
  }
  ranges_[address] = range;
}

void DriverFacts::unmapped(std::uint64_t address, std::uint64_t bytes) {
  if (bytes == 0 || address + bytes < address) return;
  const std::uint64_t end = address + bytes;
  auto it = ranges_.upper_bound(address);
  if (it != ranges_.begin()) --it;
  while (it != ranges_.end() && it->first < end) {
    const auto [first, range] = *it;
    const std::uint64_t last = first + range.bytes;
    if (last <= address) {
      ++it;
      continue;
    }
    it = ranges_.erase(it);
    if (first < address) {
      Range left = range;
      left.bytes = address - first;
      ranges_[first] = left;
    }
    if (last > end && ranges_.size() >= kRangesMax) {
      // Its other part is one more than are kept.
      cut_ = true;
    } else if (last > end) {
      Range right = range;
      right.bytes = last - end;
      right.offset += end - first;
      it = ranges_.insert_or_assign(end, right).first;
    }
  }
}

void DriverFacts::unregistered(const model::Call& call) {
  const auto uuid = captured<Uuid>(call, GPUWATCH_CAP_ARG_IN, 0);
  std::erase_if(ranges_, [&](const auto& entry) { return entry.second.uuid == uuid || entry.second.uuid == Uuid{}; });
}

std::vector<Device> DriverFacts::devices() const {
  // By when the first of the debugger objects was made.
  std::map<std::uint64_t, Device> found;
  std::map<Key, std::uint64_t> numbers;
  std::vector<std::pair<std::uint64_t, Key>> order;
  for (const auto& [key, object] : objects_)
    if (object.compute != 0) order.emplace_back(object.number, key);
  std::sort(order.begin(), order.end());
  order.resize(std::min(order.size(), kDebuggersMax));
  for (const auto& [number, key] : order) {
    const Object& debugger = objects_.at(key);
    Device& device = found[numbers.try_emplace(debugger.parent, number).first->second];
    device.client = key.first;
    device.object = debugger.parent.second;
    device.debuggers.push_back(key.second);
    if (const auto at = objects_.find(debugger.parent); at != objects_.end()) device.instance = at->second.instance;
    if (const auto at = objects_.find({key.first, debugger.compute}); at != objects_.end())
      device.compute_class = at->second.object_class;
  }
  for (const auto& [address, range] : ranges_) {
    const auto number = numbers.find(range.device);
    if (number == numbers.end()) continue;
    Device& device = found[number->second];
    MappedMemory memory;
    memory.span = {address, range.bytes};
    memory.client = range.memory.first;
    memory.memory = range.memory.second;
    memory.offset = range.offset;
    memory.memory_class = range.object_class;
    memory.flags = range.flags;
    const auto object = objects_.find(range.memory);
    memory.held = object != objects_.end() && object->second.number == range.number;
    device.memory.push_back(memory);
    if (device.uuid == Uuid{} && range.object_class == kClassVideoMemory) device.uuid = range.uuid;
  }
  std::vector<Device> out;
  for (auto& [number, device] : found) out.push_back(std::move(device));
  return out;
}

}  // namespace gpuwatch::probe::outside
