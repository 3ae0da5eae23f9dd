// SPDX-License-Identifier: Apache-2.0
// What the agent inside a process and its requester say to each other: frames
// of a fixed head and a payload, little endian. Both sides take the other's
// bytes for hostile: every length and count has a bound, and a frame is parsed
// whole or not at all. Nothing here does input or output.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "identify/bytes.h"
#include "identify/digest.h"
#include "probe/plan.h"
#include "probe/ranges.h"

namespace gpuwatch::probe::agent {

// Head of a frame: u32 magic, u16 version, u16 type, u32 bytes of the payload,
// u32 zero. It stays as it is in every version, so that each side can say which
// one the other speaks.
inline constexpr std::uint32_t kMagic = 0x47415747;  // "GWAG"
inline constexpr std::uint16_t kVersion = 3;
inline constexpr std::size_t kHeadBytes = 16;

inline constexpr std::uint64_t kReadMax = 512u << 10;     // bytes of one reading
inline constexpr std::uint64_t kHashBytesMax = 8u << 20;  // of all spans of one request
inline constexpr std::size_t kHashSpansMax = 1024;
inline constexpr std::uint64_t kSurveyBytesMax = 256u << 20;  // of all spans of one request
inline constexpr std::size_t kSurveySpansMax = 256;
inline constexpr std::size_t kDevicesMax = 64;
inline constexpr std::size_t kRangesMax = 32768;
inline constexpr std::size_t kTextMax = 512;
inline constexpr std::size_t kRequestMax = 32 * 1024;     // payload of a request
inline constexpr std::size_t kAnswerMax = kReadMax + 64;  // payload of an answer

enum class Type : std::uint16_t {
  kAskFacts = 1,
  kFacts,
  kAskRead,
  kData,
  kAskHash,
  kRoots,
  kRefused,
  kAskSurvey,
  kSurvey
};

// Why an answer is not the one that was asked for.
enum class Reason : std::uint32_t {
  kMalformed = 1,
  kVersion,    // the other side's is not ours
  kDenied,     // neither root nor the process's own user
  kBusy,       // another requester is being served
  kNoDriver,   // the process has no libcuda, or one without what is needed
  kNoContext,  // no primary context is live on that GPU
  kUnproven,   // an address that the process's own driver calls do not prove
  kGpu,        // the driver refused; the text says what
  kOutOfMemory,
  kOccupied,  // the GPU did not come to it in time
};
inline constexpr std::uint32_t kReasons = 10;

struct Head {
  std::uint16_t version = 0;
  std::uint16_t type = 0;
  std::uint32_t bytes = 0;
};

struct AskRead {
  std::uint32_t device = 0;
  Span span;  // multiples of 16
};

struct AskHash {
  std::uint32_t device = 0;
  bool refresh = false;  // instruction caches fetch anew before it
  Nonce nonce{};
  std::vector<Span> spans;
};

// What is in each span? Answered by a SpanCount each.
struct AskSurvey {
  std::uint32_t device = 0;
  std::vector<Span> spans;  // multiples of 16
};

struct SpanCount {
  std::uint32_t units = 0;  // of 16 bytes that are not zero
  std::uint32_t ends = 0;   // of functions
  bool operator==(const SpanCount&) const = default;
};

// How the agent sees the process's driver calls.
enum class Sight : std::uint32_t { kNone = 0, kPreloaded = 1, kImport = 2 };

struct DeviceFact {
  Uuid uuid{};
  std::uint32_t sm = 0;
  std::uint32_t multiprocessors = 0;
  bool context = false;  // its primary context is live
};

struct RangeFact {
  Span span;
  std::uint32_t memory_class = 0;
  std::uint32_t flags = 0;
  std::uint64_t devices = 0;  // a bit for each device that has it mapped
};

struct Facts {
  Sight sight = Sight::kNone;
  std::uint32_t cuda_version = 0;
  bool cut = false;  // more ranges than fit
  std::vector<DeviceFact> devices;
  std::vector<RangeFact> ranges;
};

struct Refusal {
  Reason reason = Reason::kMalformed;
  std::string text;
};

// Nothing: not a head of ours, or longer than `max`.
std::optional<Head> parse_head(identify::Bytes head, std::size_t max);

// Payloads. Nothing: malformed.
std::optional<AskRead> parse_ask_read(identify::Bytes payload);
std::optional<AskHash> parse_ask_hash(identify::Bytes payload);
std::optional<AskSurvey> parse_ask_survey(identify::Bytes payload);
std::optional<std::vector<SpanCount>> parse_survey(identify::Bytes payload);
std::optional<Facts> parse_facts(identify::Bytes payload);
std::optional<std::vector<identify::Digest>> parse_roots(identify::Bytes payload);
std::optional<Refusal> parse_refusal(identify::Bytes payload);

// Whole frames.
using Frame = std::vector<std::uint8_t>;
Frame ask_facts();
Frame make(const AskRead& ask);
Frame make(const AskHash& ask);
Frame make(const AskSurvey& ask);
Frame make_survey(const std::vector<SpanCount>& counts);
Frame make(const Facts& facts);
Frame make_data(identify::Bytes bytes);
Frame make_roots(const std::vector<identify::Digest>& roots);
Frame make(const Refusal& refusal);

}  // namespace gpuwatch::probe::agent
