// SPDX-License-Identifier: Apache-2.0
#include "decode/file_table.h"

#include <algorithm>

namespace gpuwatch::decode {

namespace {

using model::CallKind;
using model::Field;

constexpr std::uint32_t kMapMemory = 78;    // NV_ESC_RM_MAP_MEMORY
constexpr std::uint32_t kAllocMemory = 39;  // NV_ESC_RM_ALLOC_MEMORY
// More than this is not followed: of one process, of one file, of all threads.
constexpr std::size_t kMostNumbers = 1024;
constexpr std::size_t kMostHolders = 64;
constexpr std::size_t kMostProcesses = 16384;
constexpr std::size_t kMostThreads = 65536;

bool fits(std::uint8_t node_kind, FileTable::Wanted wanted) {
  switch (wanted) {
    case FileTable::Wanted::kCtl:
      return node_kind == GPUWATCH_NODE_CTL;
    case FileTable::Wanted::kUvm:
      return node_kind == GPUWATCH_NODE_UVM;
    case FileTable::Wanted::kMap:
      return node_kind == GPUWATCH_NODE_CTL || node_kind == GPUWATCH_NODE_GPU;
    case FileTable::Wanted::kAny:
      break;
  }
  return false;
}

bool wants_mapping(const model::Call& call) {
  return call.kind == CallKind::kIoctl && call.space == model::Space::kFrontend &&
         (call.number == kMapMemory || call.number == kAllocMemory) && call.has(Field::kFd);
}

}  // namespace

FileTable::Process FileTable::process_of(const model::Call& call) {
  return {call.record.head.tgid, call.record.head.start_ns};
}

std::optional<FoundFile> FileTable::file(std::uint64_t file_id) const {
  const auto found = files_.find(file_id);
  if (found == files_.end()) return std::nullopt;
  return FoundFile{file_id, found->second.node_kind, found->second.minor};
}

void FileTable::forget(std::uint64_t file_id) {
  const auto found = files_.find(file_id);
  if (found == files_.end()) return;
  for (const Process& process : found->second.holders) {
    const auto known = processes_.find(process);
    if (known == processes_.end()) continue;
    std::erase(known->second.files, file_id);
    std::erase_if(known->second.fds, [&](const auto& entry) { return entry.second == file_id; });
    // Without a file there is nothing left to work out.
    if (known->second.files.empty()) processes_.erase(known);
  }
  by_number_.erase(found->second.number);
  files_.erase(found);
}

// A call on a file shows that the process has it, however it came by it.
void FileTable::use(const model::Call& call) {
  const gpuwatch_rec& head = call.record.head;
  const auto [at, added] = files_.try_emplace(head.file_id);
  if (added) {
    at->second.number = next_number_++;
    at->second.node_kind = head.node_kind;
    at->second.minor = call.minor;
    by_number_[at->second.number] = head.file_id;
  }
  const Process process = process_of(call);
  auto& holders = at->second.holders;
  const bool room =
      holders.size() < kMostHolders && (processes_.size() < kMostProcesses || processes_.contains(process));
  if (room && std::find(holders.begin(), holders.end(), process) == holders.end()) {
    holders.push_back(process);
    processes_[process].files.push_back(head.file_id);
  }
  if (files_.size() > kMostFiles) forget(by_number_.begin()->second);
}

void FileTable::observe(const model::Call& call) {
  const gpuwatch_rec& head = call.record.head;
  switch (call.kind) {
    case CallKind::kRelease:
      forget(head.file_id);
      return;
    case CallKind::kOpen:
    case CallKind::kIoctl:
    case CallKind::kMmap:
      break;
    default:
      return;
  }
  if (head.file_id == 0 || (call.kind == CallKind::kOpen && call.ret < 0)) return;
  use(call);
  const auto known = processes_.find(process_of(call));
  if (known == processes_.end()) return;
  const auto key = std::make_pair(process_of(call), head.tid);
  const auto thread = threads_.find(key);
  auto& fds = known->second.fds;
  if (call.kind == CallKind::kMmap && call.ret == 0 && thread != threads_.end() && thread->second.fd >= 0 &&
      fds.size() < kMostNumbers)
    fds[thread->second.fd] = head.file_id;
  Thread next;
  if (call.kind == CallKind::kOpen) next.opened = head.file_id;
  if (wants_mapping(call)) {
    next.fd = static_cast<std::int32_t>(call.get32(Field::kFd));
    // The file that was opened for it is still the answer.
    if (thread != threads_.end()) next.opened = thread->second.opened;
  }
  if (next.opened == 0 && next.fd < 0) {
    if (thread != threads_.end()) threads_.erase(thread);
    return;
  }
  if (threads_.size() >= kMostThreads) threads_.clear();
  threads_[key] = next;
}

std::optional<FoundFile> FileTable::find(const model::Call& call, std::int32_t fd, Wanted wanted) {
  if (fd < 0 || wanted == Wanted::kAny) return std::nullopt;
  const auto known = processes_.find(process_of(call));
  if (known == processes_.end()) return std::nullopt;
  if (wanted == Wanted::kMap) {
    // A file is made for each mapping: opened, named here, mapped, closed.
    const auto thread = threads_.find({process_of(call), call.record.head.tid});
    if (thread != threads_.end() && thread->second.opened != 0)
      if (const auto opened = file(thread->second.opened); opened && fits(opened->node_kind, wanted)) return opened;
  }
  if (const auto at = known->second.fds.find(fd); at != known->second.fds.end())
    if (const auto mapped = file(at->second); mapped && fits(mapped->node_kind, wanted)) return mapped;
  if (wanted == Wanted::kMap) return std::nullopt;
  std::optional<FoundFile> only;
  for (const std::uint64_t file_id : known->second.files) {
    const auto candidate = file(file_id);
    if (!candidate || !fits(candidate->node_kind, wanted) || file_id == call.record.head.file_id) continue;
    if (only) return std::nullopt;
    only = candidate;
  }
  if (only && known->second.fds.size() < kMostNumbers) known->second.fds[fd] = only->file_id;
  return only;
}

}  // namespace gpuwatch::decode
