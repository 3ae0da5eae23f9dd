// SPDX-License-Identifier: Apache-2.0
// Fields of the filter language and the evaluation of a compiled filter.
#include <algorithm>
#include <cctype>

#include "cli/filter_fields.h"
#include "cli/kinds.h"
#include "model/definitions.h"

namespace gpuwatch::cli {

namespace {

using model::Actor;
using model::Call;
using model::Field;

std::int64_t field_of(const Call& call, Field field) {
  return static_cast<std::int64_t>(call.get(field));
}
bool flag_of(const Call& call, unsigned flag) {
  return (call.record.head.flags & flag) != 0;
}

// Lambdas without captures become plain function pointers.
constexpr FieldAccess kFields[] = {
    {{"node", 't', "kind of node: ctl, gpu, uvm, ..."},
     [](const Call& c, const Actor&) { return node_kind_name(c.record.head.node_kind); },
     nullptr},
    {{"class", 't', "record class: open, ioctl, mmap, ..."},
     [](const Call& c, const Actor&) { return class_name(c.record.head.type); },
     nullptr},
    {{"name", 't', "name of the call, as NV_ESC_RM_ALLOC"},
     [](const Call& c, const Actor&) { return c.name; },
     nullptr},
    {{"detail", 't', "class of an allocation, command of a control"},
     [](const Call& c, const Actor&) { return c.detail; },
     nullptr},
    {{"status", 't', "name of the driver's status, as NV_OK"},
     [](const Call& c, const Actor&) { return c.status_name; },
     nullptr},
    {{"interface", 't', "family of a control command"},
     [](const Call& c, const Actor&) { return c.interface; },
     nullptr},
    {{"privilege", 't', "who may call a control: user, admin, ..."},
     [](const Call& c, const Actor&) { return c.privilege; },
     nullptr},
    {{"comm", 't', "name of the thread"},
     [](const Call& c, const Actor&) { return model::comm_of(c.record.head); },
     nullptr},
    {{"exe", 't', "path of the executable, a hint"}, [](const Call&, const Actor& a) { return a.exe; }, nullptr},
    {{"cgroup", 't', "path of the cgroup, a hint"}, [](const Call&, const Actor& a) { return a.cgroup_path; }, nullptr},
    {{"container", 't', "container id"}, [](const Call&, const Actor& a) { return a.container_id; }, nullptr},
    {{"runtime", 't', "container runtime, as docker"}, [](const Call&, const Actor& a) { return a.runtime; }, nullptr},
    {{"pod", 't', "uid of the Kubernetes pod"}, [](const Call&, const Actor& a) { return a.pod_uid; }, nullptr},
    {{"pid", 'n', "process id on the host"},
     nullptr,
     [](const Call& c, const Actor&) { return std::int64_t{c.record.head.tgid}; }},
    {{"tid", 'n', "thread id on the host"},
     nullptr,
     [](const Call& c, const Actor&) { return std::int64_t{c.record.head.tid}; }},
    {{"uid", 'n', "real user id on the host"},
     nullptr,
     [](const Call& c, const Actor&) { return std::int64_t{c.record.head.uid}; }},
    {{"cgroup_id", 'n', "id of the cgroup"},
     nullptr,
     [](const Call& c, const Actor&) { return static_cast<std::int64_t>(c.record.head.cgroup_id); }},
    {{"cpu", 'n', "CPU that completed the call"},
     nullptr,
     [](const Call& c, const Actor&) { return std::int64_t{c.record.head.cpu}; }},
    {{"minor", 'n', "minor number of the node"},
     nullptr,
     [](const Call& c, const Actor&) { return std::int64_t{c.minor}; }},
    {{"number", 'n', "number of the call inside its family"},
     nullptr,
     [](const Call& c, const Actor&) { return std::int64_t{c.number}; }},
    {{"request", 'n', "request word of the ioctl"},
     nullptr,
     [](const Call& c, const Actor&) { return std::int64_t{c.request}; }},
    {{"ret", 'n', "what the driver returned"}, nullptr, [](const Call& c, const Actor&) { return c.ret; }},
    {{"duration", 'n', "time in the driver, in ns, or with ns, us, ms, s"},
     nullptr,
     [](const Call& c, const Actor&) { return static_cast<std::int64_t>(c.duration_ns); }},
    {{"bytes", 'n', "size of the memory object or mapping"},
     nullptr,
     [](const Call& c, const Actor&) { return field_of(c, c.has(Field::kBytes) ? Field::kBytes : Field::kLength); }},
    {{"client", 'n', "RM client handle"},
     nullptr,
     [](const Call& c, const Actor&) { return field_of(c, Field::kClient); }},
    {{"object", 'n', "RM object handle"},
     nullptr,
     [](const Call& c, const Actor&) { return field_of(c, Field::kObject); }},
    {{"failed", 'b', "the call returned an error or a status that is one"},
     nullptr,
     [](const Call& c, const Actor&) { return std::int64_t{c.failed}; }},
    {{"named", 'b', "every number of the call has a name"},
     nullptr,
     [](const Call& c, const Actor&) { return std::int64_t{c.named}; }},
    {{"truncated", 'b', "a capture faulted, was capped or left out"},
     nullptr,
     [](const Call& c, const Actor&) { return std::int64_t{c.truncated}; }},
    {{"compat", 'b', "32-bit system call"},
     nullptr,
     [](const Call& c, const Actor&) { return std::int64_t{flag_of(c, GPUWATCH_F_COMPAT)}; }},
    {{"xfer", 'b', "came wrapped in NV_ESC_IOCTL_XFER_CMD"},
     nullptr,
     [](const Call& c, const Actor&) { return std::int64_t{flag_of(c, GPUWATCH_F_XFER)}; }},
};

char lower(char c) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

bool contains(std::string_view text, std::string_view lower_part) {
  return std::search(text.begin(), text.end(), lower_part.begin(), lower_part.end(),
                     [](char a, char b) { return lower(a) == b; }) != text.end() ||
         lower_part.empty();
}

}  // namespace

std::span<const FieldAccess> field_table() {
  return kFields;
}

const std::vector<FilterField>& filter_fields() {
  static const std::vector<FilterField> kInfos = [] {
    std::vector<FilterField> infos;
    for (const FieldAccess& field : kFields) infos.push_back(field.info);
    return infos;
  }();
  return kInfos;
}

bool Filter::matches(const Call& call, const Actor& actor) const {
  return eval(root_, call, actor);
}

bool Filter::eval(std::uint16_t index, const Call& call, const Actor& actor) const {
  const Node& node = nodes_[index];
  switch (node.op) {
    case Op::kAnd:
      return eval(node.left, call, actor) && eval(node.right, call, actor);
    case Op::kOr:
      return eval(node.left, call, actor) || eval(node.right, call, actor);
    case Op::kNot:
      return !eval(node.left, call, actor);
    default:
      break;
  }
  const FieldAccess& field = kFields[node.field];
  if (field.text != nullptr) {
    const std::string_view value = field.text(call, actor);
    switch (node.op) {
      case Op::kEqual:
        return value == node.text;
      case Op::kNotEqual:
        return value != node.text;
      case Op::kContains:
        return contains(value, node.text);
      default:
        return !contains(value, node.text);
    }
  }
  const std::int64_t value = field.number(call, actor);
  switch (node.op) {
    case Op::kTrue:
      return value != 0;
    case Op::kEqual:
      return value == node.number;
    case Op::kNotEqual:
      return value != node.number;
    case Op::kLess:
      return value < node.number;
    case Op::kLessEqual:
      return value <= node.number;
    case Op::kGreater:
      return value > node.number;
    default:
      return value >= node.number;
  }
}

}  // namespace gpuwatch::cli
