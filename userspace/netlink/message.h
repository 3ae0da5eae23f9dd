// SPDX-License-Identifier: Apache-2.0
// Messages of the family as passive values, and the parser of their bytes. The
// bytes are taken for hostile: whatever is not as the contract says is an error,
// attributes that are not known are skipped, texts are untrusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "netlink/submitter.h"
#include "netlink/words.h"

namespace gpuwatch::netlink {

// The kernel's own words on every message of a group.
struct Stamp {
  std::uint64_t seq = 0;
  std::uint64_t time_ns = 0;      // CLOCK_MONOTONIC
  std::uint64_t realtime_ns = 0;  // CLOCK_REALTIME
  std::uint64_t instance = 0;     // of the loaded module
};

struct LossCount {
  std::uint32_t cause = 0;
  std::uint64_t count = 0;  // since it was told last
  std::uint64_t total = 0;  // since the module was loaded
};

struct Event {
  Stamp stamp;
  EventKind kind{};
  std::optional<std::uint32_t> pid, tid, uid;
  std::optional<std::uint64_t> start_ns, cgroup_id;
  std::string comm;
  std::optional<std::uint32_t> node_kind, rdev, gpu_minor;
  std::optional<std::uint64_t> file_id;
  std::optional<std::int32_t> result;
  std::optional<std::uint32_t> open_flags;
  std::optional<std::uint64_t> image_id, image_bytes;
  std::optional<std::uint32_t> image_kind;
  std::string symbol;
  std::string module;
  std::optional<std::uint32_t> value;
  std::vector<LossCount> losses;
};

struct Verdict {
  Stamp stamp;
  std::uint32_t submitter_pid = 0;
  std::uint32_t submitter_uid = 0;
  VerdictMessage said;
};

struct Heartbeat {
  Stamp stamp;  // seq: that of the last message
  Group group{};
  std::uint32_t period_ms = 0;
};

using Message = std::variant<Event, Verdict, Heartbeat>;

struct HookState {
  std::string module;
  std::uint32_t op = 0;
  std::uint32_t method = 0;
  std::int32_t error = 0;
  std::uint64_t calls = 0;
  std::uint64_t in_flight = 0;
};

struct DriverState {
  std::string module;
  std::uint32_t known = 0;
  std::uint32_t hooked = 0;
};

struct StreamState {
  Group group{};
  std::uint64_t seq = 0;
  bool listened = false;
};

struct State {
  std::uint64_t instance = 0;
  std::string release;
  std::uint32_t abi_major = 0, abi_minor = 0, schema = 0;
  std::uint64_t features = 0;
  bool attached = false, pinned = false;
  std::uint32_t consumers = 0, in_flight = 0, plan = 0, heartbeat_ms = 0;
  std::vector<StreamState> streams;
  std::uint64_t records = 0, records_offered = 0, record_bytes = 0, wakeups = 0;
  std::uint32_t probes = 0, images_kept = 0, captures_pending = 0;
  std::uint64_t image_bytes_used = 0, image_bytes_max = 0, image_hits = 0, images_stored = 0, image_bytes_stored = 0;
  std::vector<LossCount> losses;
  std::vector<DriverState> drivers;
  std::vector<HookState> hooks;
};

struct SetAnswer {
  std::int32_t result = 0;
  std::uint32_t in_flight = 0;
};

// Each takes one whole netlink message, header included.
base::Result<Message> parse_message(std::span<const std::byte> bytes);
base::Result<State> parse_state(std::span<const std::byte> bytes);
base::Result<SetAnswer> parse_set_answer(std::span<const std::byte> bytes);

const Stamp& stamp_of(const Message& message);

}  // namespace gpuwatch::netlink
