// SPDX-License-Identifier: Apache-2.0
// Bounds-checked views of the records that define something: a process, a
// cgroup, a change of state. Paths and names point into the record's payload
// and are untrusted bytes. Nothing is concluded from them here.
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>

#include "model/raw_record.h"

namespace gpuwatch::model {

struct TaskDef {
  gpuwatch_rec_task fixed{};
  std::string_view path;
  gpuwatch_task_more more{};  // zeros where the record has none
  Bytes ancestor_bytes;       // more.nr_ancestors structs gpuwatch_ancestor
  Bytes ns_id_bytes;          // more.nr_ns 32-bit ids

  gpuwatch_ancestor ancestor(std::size_t i) const {
    return read_at<gpuwatch_ancestor>(ancestor_bytes, i * sizeof(gpuwatch_ancestor)).value_or(gpuwatch_ancestor{});
  }
  std::uint32_t ns_id(std::size_t i) const {
    return read_at<std::uint32_t>(ns_id_bytes, i * sizeof(std::uint32_t)).value_or(0);
  }
};

struct CgroupDef {
  gpuwatch_rec_cgroup fixed{};
  std::string_view path;
};

struct StateDef {
  std::uint32_t event = 0;  // enum gpuwatch_state
  std::uint32_t value = 0;
  std::int64_t error = 0;
  std::string_view name;
};

namespace detail {

inline std::optional<std::string_view> text_at(Bytes bytes, std::size_t offset, std::size_t length) {
  if (length > GPUWATCH_PATH_MAX || offset > bytes.size() || bytes.size() - offset < length) return std::nullopt;
  return std::string_view(reinterpret_cast<const char*>(bytes.data()) + offset, length);
}

// What follows the path: nothing in old records; false when it can't be right.
inline bool read_more(TaskDef& task, Bytes payload, std::size_t offset) {
  if (offset >= payload.size()) return true;
  const auto more = read_at<gpuwatch_task_more>(payload, offset);
  if (!more || more->nr_ancestors > GPUWATCH_ANCESTORS_MAX || more->nr_ns > GPUWATCH_NS_MAX) return false;
  offset += sizeof *more;
  const std::size_t ancestors = more->nr_ancestors * sizeof(gpuwatch_ancestor);
  const std::size_t ns_ids = more->nr_ns * sizeof(std::uint32_t);
  if (payload.size() - offset < ancestors + ns_ids) return false;
  task.more = *more;
  task.ancestor_bytes = payload.subspan(offset, ancestors);
  task.ns_id_bytes = payload.subspan(offset + ancestors, ns_ids);
  return true;
}

}  // namespace detail

inline std::optional<TaskDef> parse_task(const RawRecord& record) {
  if (record.head.type != GPUWATCH_REC_TASK) return std::nullopt;
  const auto fixed = read_at<gpuwatch_rec_task>(record.payload, 0);
  if (!fixed) return std::nullopt;
  const auto path = detail::text_at(record.payload, sizeof *fixed, fixed->path_len);
  if (!path) return std::nullopt;
  TaskDef task{*fixed, *path, {}, {}, {}};
  if (!detail::read_more(task, record.payload, sizeof *fixed + (path->size() + 7) / 8 * 8)) return std::nullopt;
  return task;
}

// Which node an open was of; nothing where the record does not tell.
inline std::optional<gpuwatch_open_node> parse_open_node(const RawRecord& record) {
  if (record.head.type != GPUWATCH_REC_OPEN) return std::nullopt;
  return read_at<gpuwatch_open_node>(record.payload, sizeof(gpuwatch_rec_open));
}

inline std::optional<CgroupDef> parse_cgroup(const RawRecord& record) {
  if (record.head.type != GPUWATCH_REC_CGROUP) return std::nullopt;
  const auto fixed = read_at<gpuwatch_rec_cgroup>(record.payload, 0);
  if (!fixed) return std::nullopt;
  const auto path = detail::text_at(record.payload, sizeof *fixed, fixed->path_len);
  if (!path) return std::nullopt;
  return CgroupDef{*fixed, *path};
}

inline std::optional<StateDef> parse_state(const RawRecord& record) {
  if (record.head.type != GPUWATCH_REC_STATE) return std::nullopt;
  const auto fixed = read_at<gpuwatch_rec_state>(record.payload, 0);
  if (!fixed) return std::nullopt;
  const auto name = detail::text_at(record.payload, offsetof(gpuwatch_rec_state, name), GPUWATCH_NAME_LEN);
  return StateDef{fixed->event, fixed->value, fixed->error, name->substr(0, std::min(name->find('\0'), name->size()))};
}

// A module image handed to a loader; its bytes are the source's to give.
struct ImageDef {
  gpuwatch_rec_image fixed{};
  std::string_view symbol;
  std::string_view head;  // first bytes, or the path

  std::string_view path() const { return fixed.kind == GPUWATCH_IMAGE_PATH ? head : std::string_view(); }
};

inline std::optional<ImageDef> parse_image(const RawRecord& record) {
  if (record.head.type != GPUWATCH_REC_IMAGE) return std::nullopt;
  const auto fixed = read_at<gpuwatch_rec_image>(record.payload, 0);
  if (!fixed) return std::nullopt;
  const auto symbol = detail::text_at(record.payload, offsetof(gpuwatch_rec_image, symbol), GPUWATCH_SYMBOL_LEN);
  const auto head = detail::text_at(record.payload, sizeof *fixed, fixed->head_len);
  if (!symbol || !head) return std::nullopt;
  return ImageDef{*fixed, symbol->substr(0, std::min(symbol->find('\0'), symbol->size())), *head};
}

// comm of a record up to its first NUL: untrusted bytes, lives with `head`.
inline std::string_view comm_of(const gpuwatch_rec& head) {
  const std::string_view all(head.comm, sizeof head.comm);
  return all.substr(0, std::min(all.find('\0'), all.size()));
}

}  // namespace gpuwatch::model
