// SPDX-License-Identifier: Apache-2.0
// What must be there, and in which form, per command. Lengths are exact: a later
// kernel that changes one is another contract.
#include "netlink/message.h"

#include <linux/genetlink.h>
#include <linux/gpuwatch.h>
#include <linux/gpuwatch_genl.h>

#include "netlink/attributes.h"

namespace gpuwatch::netlink {

using base::Code;
using base::Error;
using base::Result;

namespace {

using Top = Attributes<GPUWATCH_A_MAX>;

Error damaged(const std::string& what) {
  return {Code::kBadInput, "message of generic netlink family " GPUWATCH_GENL_NAME ": " + what};
}

Top::Policy make_top_policy() {
  Top::Policy policy{};
  for (const int type :
       {GPUWATCH_A_GROUP,       GPUWATCH_A_EVENT,      GPUWATCH_A_PID,           GPUWATCH_A_TID,
        GPUWATCH_A_UID,         GPUWATCH_A_NODE_KIND,  GPUWATCH_A_RDEV,          GPUWATCH_A_GPU_MINOR,
        GPUWATCH_A_RESULT,      GPUWATCH_A_OPEN_FLAGS, GPUWATCH_A_IMAGE_KIND,    GPUWATCH_A_VALUE,
        GPUWATCH_A_VERDICT,     GPUWATCH_A_SEVERITY,   GPUWATCH_A_SUBMITTER_PID, GPUWATCH_A_SUBMITTER_UID,
        GPUWATCH_A_IN_FLIGHT,   GPUWATCH_A_ABI_MAJOR,  GPUWATCH_A_ABI_MINOR,     GPUWATCH_A_SCHEMA,
        GPUWATCH_A_ATTACHED,    GPUWATCH_A_PINNED,     GPUWATCH_A_CONSUMERS,     GPUWATCH_A_PLAN,
        GPUWATCH_A_HEARTBEAT_MS})
    policy[static_cast<std::size_t>(type)] = number_policy(4);
  for (const int type :
       {GPUWATCH_A_SEQ, GPUWATCH_A_TIME_NS, GPUWATCH_A_REALTIME_NS, GPUWATCH_A_INSTANCE, GPUWATCH_A_START_NS,
        GPUWATCH_A_CGROUP_ID, GPUWATCH_A_FILE_ID, GPUWATCH_A_IMAGE_ID, GPUWATCH_A_IMAGE_BYTES, GPUWATCH_A_FEATURES})
    policy[static_cast<std::size_t>(type)] = number_policy(8);
  policy[GPUWATCH_A_COMM] = text_policy(GPUWATCH_COMM_LEN);
  policy[GPUWATCH_A_SYMBOL] = text_policy(GPUWATCH_NAME_LEN);
  policy[GPUWATCH_A_MODULE] = text_policy(GPUWATCH_NAME_LEN);
  policy[GPUWATCH_A_RELEASE] = text_policy(64);
  policy[GPUWATCH_A_RULE] = text_policy(GPUWATCH_GENL_RULE_MAX);
  policy[GPUWATCH_A_TEXT] = text_policy(GPUWATCH_GENL_TEXT_MAX);
  policy[GPUWATCH_A_CONTAINER] = text_policy(GPUWATCH_GENL_CONTAINER_MAX);
  policy[GPUWATCH_A_DIGEST] = number_policy(GPUWATCH_GENL_DIGEST_LEN);
  return policy;
}

// One message: its command and its attributes.
struct Opened {
  std::uint8_t command = 0;
  const nlattr* first = nullptr;
  int bytes = 0;
  Top attributes;
};

Result<Opened> open_message(std::span<const std::byte> bytes) {
  static const Top::Policy kPolicy = make_top_policy();
  constexpr std::size_t kHeads = NLMSG_HDRLEN + GENL_HDRLEN;
  if (bytes.size() < kHeads) return damaged("shorter than its headers");
  nlmsghdr header{};
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.nlmsg_len < kHeads || header.nlmsg_len > bytes.size()) return damaged("its length is not what came");
  Opened opened;
  opened.command = static_cast<std::uint8_t>(bytes[NLMSG_HDRLEN]);
  opened.first = reinterpret_cast<const nlattr*>(bytes.data() + kHeads);
  opened.bytes = static_cast<int>(header.nlmsg_len - kHeads);
  if (!opened.attributes.parse(opened.first, opened.bytes, kPolicy)) return damaged("an attribute has another form");
  return opened;
}

// Calls `see` for each nest of that type; false: one of them is damaged.
template <int kMax, typename See>
bool each_nest(const Opened& opened, int type, const typename Attributes<kMax>::Policy& policy, See&& see) {
  int left = opened.bytes;
  for (auto* at = const_cast<nlattr*>(opened.first); nla_ok(at, left) != 0; at = nla_next(at, &left)) {
    if (nla_type(at) != type) continue;
    Attributes<kMax> inner;
    if (!inner.parse(static_cast<const nlattr*>(nla_data(at)), nla_len(at), policy)) return false;
    see(inner);
  }
  return true;
}

template <int kMax>
typename Attributes<kMax>::Policy numbers(std::initializer_list<int> four, std::initializer_list<int> eight,
                                          int text = 0) {
  typename Attributes<kMax>::Policy policy{};
  for (const int type : four) policy[static_cast<std::size_t>(type)] = number_policy(4);
  for (const int type : eight) policy[static_cast<std::size_t>(type)] = number_policy(8);
  if (text != 0) policy[static_cast<std::size_t>(text)] = text_policy(GPUWATCH_NAME_LEN);
  return policy;
}

bool read_losses(const Opened& opened, std::vector<LossCount>& out) {
  static const auto kPolicy =
      numbers<GPUWATCH_A_LOSS_TOTAL>({GPUWATCH_A_LOSS_CAUSE}, {GPUWATCH_A_LOSS_COUNT, GPUWATCH_A_LOSS_TOTAL});
  return each_nest<GPUWATCH_A_LOSS_TOTAL>(opened, GPUWATCH_A_LOSS, kPolicy, [&](const auto& inner) {
    out.push_back({inner.template number_or_zero<std::uint32_t>(GPUWATCH_A_LOSS_CAUSE),
                   inner.template number_or_zero<std::uint64_t>(GPUWATCH_A_LOSS_COUNT),
                   inner.template number_or_zero<std::uint64_t>(GPUWATCH_A_LOSS_TOTAL)});
  });
}

bool read_hooks(const Opened& opened, std::vector<HookState>& out) {
  static const auto kPolicy =
      numbers<GPUWATCH_A_HOOK_IN_FLIGHT>({GPUWATCH_A_HOOK_OP, GPUWATCH_A_HOOK_METHOD, GPUWATCH_A_HOOK_ERROR},
                                         {GPUWATCH_A_HOOK_CALLS, GPUWATCH_A_HOOK_IN_FLIGHT}, GPUWATCH_A_HOOK_MODULE);
  return each_nest<GPUWATCH_A_HOOK_IN_FLIGHT>(opened, GPUWATCH_A_HOOK, kPolicy, [&](const auto& inner) {
    out.push_back({inner.text(GPUWATCH_A_HOOK_MODULE), inner.template number_or_zero<std::uint32_t>(GPUWATCH_A_HOOK_OP),
                   inner.template number_or_zero<std::uint32_t>(GPUWATCH_A_HOOK_METHOD),
                   inner.template number_or_zero<std::int32_t>(GPUWATCH_A_HOOK_ERROR),
                   inner.template number_or_zero<std::uint64_t>(GPUWATCH_A_HOOK_CALLS),
                   inner.template number_or_zero<std::uint64_t>(GPUWATCH_A_HOOK_IN_FLIGHT)});
  });
}

bool read_drivers(const Opened& opened, std::vector<DriverState>& out) {
  static const auto kPolicy = numbers<GPUWATCH_A_DRIVER_HOOKED>({GPUWATCH_A_DRIVER_KNOWN, GPUWATCH_A_DRIVER_HOOKED}, {},
                                                                GPUWATCH_A_DRIVER_MODULE);
  return each_nest<GPUWATCH_A_DRIVER_HOOKED>(opened, GPUWATCH_A_DRIVER, kPolicy, [&](const auto& inner) {
    out.push_back({inner.text(GPUWATCH_A_DRIVER_MODULE),
                   inner.template number_or_zero<std::uint32_t>(GPUWATCH_A_DRIVER_KNOWN),
                   inner.template number_or_zero<std::uint32_t>(GPUWATCH_A_DRIVER_HOOKED)});
  });
}

bool read_streams(const Opened& opened, std::vector<StreamState>& out) {
  static const auto kPolicy = numbers<GPUWATCH_A_STREAM_LISTENED>({GPUWATCH_A_STREAM_GROUP, GPUWATCH_A_STREAM_LISTENED},
                                                                  {GPUWATCH_A_STREAM_SEQ});
  return each_nest<GPUWATCH_A_STREAM_LISTENED>(opened, GPUWATCH_A_STREAM, kPolicy, [&](const auto& inner) {
    const auto group = inner.template number_or_zero<std::uint32_t>(GPUWATCH_A_STREAM_GROUP);
    if (group >= kGroups) return;
    out.push_back({static_cast<Group>(group), inner.template number_or_zero<std::uint64_t>(GPUWATCH_A_STREAM_SEQ),
                   inner.template number_or_zero<std::uint32_t>(GPUWATCH_A_STREAM_LISTENED) != 0});
  });
}

bool read_rings(const Opened& opened, State& state) {
  static const auto kPolicy = numbers<GPUWATCH_A_RINGS_WAKEUPS>(
      {}, {GPUWATCH_A_RINGS_RECORDS, GPUWATCH_A_RINGS_OFFERED, GPUWATCH_A_RINGS_BYTES, GPUWATCH_A_RINGS_WAKEUPS});
  return each_nest<GPUWATCH_A_RINGS_WAKEUPS>(opened, GPUWATCH_A_RINGS, kPolicy, [&](const auto& inner) {
    state.records = inner.template number_or_zero<std::uint64_t>(GPUWATCH_A_RINGS_RECORDS);
    state.records_offered = inner.template number_or_zero<std::uint64_t>(GPUWATCH_A_RINGS_OFFERED);
    state.record_bytes = inner.template number_or_zero<std::uint64_t>(GPUWATCH_A_RINGS_BYTES);
    state.wakeups = inner.template number_or_zero<std::uint64_t>(GPUWATCH_A_RINGS_WAKEUPS);
  });
}

bool read_images(const Opened& opened, State& state) {
  static const auto kPolicy = numbers<GPUWATCH_A_IMAGES_STORED_BYTES>(
      {GPUWATCH_A_IMAGES_PROBES, GPUWATCH_A_IMAGES_KEPT, GPUWATCH_A_IMAGES_PENDING},
      {GPUWATCH_A_IMAGES_USED_BYTES, GPUWATCH_A_IMAGES_TOTAL_MAX, GPUWATCH_A_IMAGES_HITS, GPUWATCH_A_IMAGES_STORED,
       GPUWATCH_A_IMAGES_STORED_BYTES});
  return each_nest<GPUWATCH_A_IMAGES_STORED_BYTES>(opened, GPUWATCH_A_IMAGES, kPolicy, [&](const auto& inner) {
    state.probes = inner.template number_or_zero<std::uint32_t>(GPUWATCH_A_IMAGES_PROBES);
    state.images_kept = inner.template number_or_zero<std::uint32_t>(GPUWATCH_A_IMAGES_KEPT);
    state.captures_pending = inner.template number_or_zero<std::uint32_t>(GPUWATCH_A_IMAGES_PENDING);
    state.image_bytes_used = inner.template number_or_zero<std::uint64_t>(GPUWATCH_A_IMAGES_USED_BYTES);
    state.image_bytes_max = inner.template number_or_zero<std::uint64_t>(GPUWATCH_A_IMAGES_TOTAL_MAX);
    state.image_hits = inner.template number_or_zero<std::uint64_t>(GPUWATCH_A_IMAGES_HITS);
    state.images_stored = inner.template number_or_zero<std::uint64_t>(GPUWATCH_A_IMAGES_STORED);
    state.image_bytes_stored = inner.template number_or_zero<std::uint64_t>(GPUWATCH_A_IMAGES_STORED_BYTES);
  });
}

bool read_stamp(const Top& top, Stamp& stamp) {
  for (const int type : {GPUWATCH_A_SEQ, GPUWATCH_A_TIME_NS, GPUWATCH_A_REALTIME_NS, GPUWATCH_A_INSTANCE})
    if (!top.has(type)) return false;
  stamp = {top.number_or_zero<std::uint64_t>(GPUWATCH_A_SEQ), top.number_or_zero<std::uint64_t>(GPUWATCH_A_TIME_NS),
           top.number_or_zero<std::uint64_t>(GPUWATCH_A_REALTIME_NS),
           top.number_or_zero<std::uint64_t>(GPUWATCH_A_INSTANCE)};
  return true;
}

Result<Message> read_event(const Opened& opened) {
  const Top& top = opened.attributes;
  Event event;
  if (!read_stamp(top, event.stamp) || !top.has(GPUWATCH_A_EVENT))
    return damaged("an event without its number or kind");
  event.kind = static_cast<EventKind>(top.number_or_zero<std::uint32_t>(GPUWATCH_A_EVENT));
  event.pid = top.number<std::uint32_t>(GPUWATCH_A_PID);
  event.tid = top.number<std::uint32_t>(GPUWATCH_A_TID);
  event.uid = top.number<std::uint32_t>(GPUWATCH_A_UID);
  event.start_ns = top.number<std::uint64_t>(GPUWATCH_A_START_NS);
  event.cgroup_id = top.number<std::uint64_t>(GPUWATCH_A_CGROUP_ID);
  event.comm = top.text(GPUWATCH_A_COMM);
  event.node_kind = top.number<std::uint32_t>(GPUWATCH_A_NODE_KIND);
  event.rdev = top.number<std::uint32_t>(GPUWATCH_A_RDEV);
  event.gpu_minor = top.number<std::uint32_t>(GPUWATCH_A_GPU_MINOR);
  event.file_id = top.number<std::uint64_t>(GPUWATCH_A_FILE_ID);
  event.result = top.number<std::int32_t>(GPUWATCH_A_RESULT);
  event.open_flags = top.number<std::uint32_t>(GPUWATCH_A_OPEN_FLAGS);
  event.image_id = top.number<std::uint64_t>(GPUWATCH_A_IMAGE_ID);
  event.image_bytes = top.number<std::uint64_t>(GPUWATCH_A_IMAGE_BYTES);
  event.image_kind = top.number<std::uint32_t>(GPUWATCH_A_IMAGE_KIND);
  event.symbol = top.text(GPUWATCH_A_SYMBOL);
  event.module = top.text(GPUWATCH_A_MODULE);
  event.value = top.number<std::uint32_t>(GPUWATCH_A_VALUE);
  if (!read_losses(opened, event.losses)) return damaged("a damaged count of loss");
  return Message(std::move(event));
}

Result<Message> read_verdict(const Opened& opened) {
  const Top& top = opened.attributes;
  Verdict verdict;
  if (!read_stamp(top, verdict.stamp) || !top.has(GPUWATCH_A_VERDICT) || !top.has(GPUWATCH_A_SEVERITY) ||
      !top.has(GPUWATCH_A_SUBMITTER_PID) || !top.has(GPUWATCH_A_SUBMITTER_UID))
    return damaged("a verdict without number, kind, severity or submitter");
  verdict.submitter_pid = top.number_or_zero<std::uint32_t>(GPUWATCH_A_SUBMITTER_PID);
  verdict.submitter_uid = top.number_or_zero<std::uint32_t>(GPUWATCH_A_SUBMITTER_UID);
  VerdictMessage& said = verdict.said;
  said.verdict = static_cast<VerdictKind>(top.number_or_zero<std::uint32_t>(GPUWATCH_A_VERDICT));
  said.severity = static_cast<Severity>(top.number_or_zero<std::uint32_t>(GPUWATCH_A_SEVERITY));
  said.rule = top.text(GPUWATCH_A_RULE);
  said.text = top.text(GPUWATCH_A_TEXT);
  said.container = top.text(GPUWATCH_A_CONTAINER);
  said.pid = top.number<std::uint32_t>(GPUWATCH_A_PID);
  said.start_ns = top.number<std::uint64_t>(GPUWATCH_A_START_NS);
  said.cgroup_id = top.number<std::uint64_t>(GPUWATCH_A_CGROUP_ID);
  said.gpu_minor = top.number<std::uint32_t>(GPUWATCH_A_GPU_MINOR);
  said.digest = top.number<std::array<std::byte, GPUWATCH_GENL_DIGEST_LEN>>(GPUWATCH_A_DIGEST);
  return Message(std::move(verdict));
}

Result<Message> read_heartbeat(const Opened& opened) {
  const Top& top = opened.attributes;
  Heartbeat beat;
  const auto group = top.number<std::uint32_t>(GPUWATCH_A_GROUP);
  if (!read_stamp(top, beat.stamp) || !group || *group >= kGroups)
    return damaged("a heartbeat without its number or group");
  beat.group = static_cast<Group>(*group);
  beat.period_ms = top.number_or_zero<std::uint32_t>(GPUWATCH_A_HEARTBEAT_MS);
  return Message(beat);
}

}  // namespace

Result<Message> parse_message(std::span<const std::byte> bytes) {
  auto opened = open_message(bytes);
  if (!opened) return std::move(opened.error());
  switch (opened->command) {
    case GPUWATCH_CMD_EVENT:
      return read_event(*opened);
    case GPUWATCH_CMD_VERDICT:
      return read_verdict(*opened);
    case GPUWATCH_CMD_HEARTBEAT:
      return read_heartbeat(*opened);
    default:
      return Error(Code::kUnsupported, "message of generic netlink family " GPUWATCH_GENL_NAME ": command " +
                                           std::to_string(opened->command) + " is not known");
  }
}

Result<State> parse_state(std::span<const std::byte> bytes) {
  auto opened = open_message(bytes);
  if (!opened) return std::move(opened.error());
  const Top& top = opened->attributes;
  if (opened->command != GPUWATCH_CMD_GET || !top.has(GPUWATCH_A_INSTANCE) || !top.has(GPUWATCH_A_ABI_MAJOR))
    return damaged("it is no state");
  State state;
  state.instance = top.number_or_zero<std::uint64_t>(GPUWATCH_A_INSTANCE);
  state.release = top.text(GPUWATCH_A_RELEASE);
  state.abi_major = top.number_or_zero<std::uint32_t>(GPUWATCH_A_ABI_MAJOR);
  state.abi_minor = top.number_or_zero<std::uint32_t>(GPUWATCH_A_ABI_MINOR);
  state.schema = top.number_or_zero<std::uint32_t>(GPUWATCH_A_SCHEMA);
  state.features = top.number_or_zero<std::uint64_t>(GPUWATCH_A_FEATURES);
  state.attached = top.number_or_zero<std::uint32_t>(GPUWATCH_A_ATTACHED) != 0;
  state.pinned = top.number_or_zero<std::uint32_t>(GPUWATCH_A_PINNED) != 0;
  state.consumers = top.number_or_zero<std::uint32_t>(GPUWATCH_A_CONSUMERS);
  state.in_flight = top.number_or_zero<std::uint32_t>(GPUWATCH_A_IN_FLIGHT);
  state.plan = top.number_or_zero<std::uint32_t>(GPUWATCH_A_PLAN);
  state.heartbeat_ms = top.number_or_zero<std::uint32_t>(GPUWATCH_A_HEARTBEAT_MS);
  if (!read_streams(*opened, state.streams) || !read_rings(*opened, state) || !read_images(*opened, state) ||
      !read_losses(*opened, state.losses) || !read_drivers(*opened, state.drivers) || !read_hooks(*opened, state.hooks))
    return damaged("a damaged part of the state");
  return state;
}

Result<SetAnswer> parse_set_answer(std::span<const std::byte> bytes) {
  auto opened = open_message(bytes);
  if (!opened) return std::move(opened.error());
  const Top& top = opened->attributes;
  if (opened->command != GPUWATCH_CMD_SET || !top.has(GPUWATCH_A_RESULT)) return damaged("it is no answer to a change");
  return SetAnswer{top.number_or_zero<std::int32_t>(GPUWATCH_A_RESULT),
                   top.number_or_zero<std::uint32_t>(GPUWATCH_A_IN_FLIGHT)};
}

const Stamp& stamp_of(const Message& message) {
  return std::visit([](const auto& one) -> const Stamp& { return one.stamp; }, message);
}

}  // namespace gpuwatch::netlink
