// SPDX-License-Identifier: Apache-2.0
#include "probe/agent/wire.h"

#include <algorithm>

namespace gpuwatch::probe::agent {

namespace {

using identify::Bytes;
using identify::load;

constexpr std::size_t kSpanBytes = 16;
constexpr std::size_t kDeviceBytes = 28;
constexpr std::size_t kRangeBytes = 32;

// Puts a frame together; the length is filled in at the end.
class Writer {
 public:
  explicit Writer(Type type) {
    put(kMagic);
    put(kVersion);
    put(static_cast<std::uint16_t>(type));
    put(std::uint32_t{0});
    put(std::uint32_t{0});
  }

  template <typename T>
  void put(T value) {
    for (std::size_t i = 0; i < sizeof value; ++i) frame_.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
  }
  void bytes(Bytes bytes) { frame_.insert(frame_.end(), bytes.begin(), bytes.end()); }
  void span(const Span& span) {
    put(span.address);
    put(span.bytes);
  }

  Frame done() {
    const std::size_t bytes = frame_.size() - kHeadBytes;
    for (std::size_t i = 0; i < 4; ++i) frame_[8 + i] = static_cast<std::uint8_t>(bytes >> (8 * i));
    return std::move(frame_);
  }

 private:
  Frame frame_;
};

Span span_at(Bytes payload, std::size_t at) {
  return {load<std::uint64_t>(payload, at), load<std::uint64_t>(payload, at + 8)};
}

bool sound(const Span& span) {
  return span.bytes != 0 && span.address + span.bytes > span.address;
}

}  // namespace

std::optional<Head> parse_head(Bytes head, std::size_t max) {
  if (head.size() < kHeadBytes || load<std::uint32_t>(head, 0) != kMagic || load<std::uint32_t>(head, 12) != 0)
    return std::nullopt;
  const Head out{load<std::uint16_t>(head, 4), load<std::uint16_t>(head, 6), load<std::uint32_t>(head, 8)};
  if (out.bytes > max) return std::nullopt;
  return out;
}

std::optional<AskRead> parse_ask_read(Bytes payload) {
  if (payload.size() != 24 || load<std::uint32_t>(payload, 4) != 0) return std::nullopt;
  const AskRead ask{load<std::uint32_t>(payload, 0), span_at(payload, 8)};
  if (ask.device >= kDevicesMax || !sound(ask.span) || ask.span.bytes > kReadMax || ask.span.address % 16 != 0 ||
      ask.span.bytes % 16 != 0)
    return std::nullopt;
  return ask;
}

std::optional<AskHash> parse_ask_hash(Bytes payload) {
  constexpr std::size_t kFixed = 48;
  if (payload.size() < kFixed) return std::nullopt;
  AskHash ask;
  ask.device = load<std::uint32_t>(payload, 0);
  const auto flags = load<std::uint32_t>(payload, 4);
  const auto count = load<std::uint32_t>(payload, 40);
  if (ask.device >= kDevicesMax || flags > 1 || load<std::uint32_t>(payload, 44) != 0 || count == 0 ||
      count > kHashSpansMax || payload.size() != kFixed + count * kSpanBytes)
    return std::nullopt;
  ask.refresh = flags != 0;
  std::copy_n(payload.begin() + 8, ask.nonce.size(), ask.nonce.begin());
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Span span = span_at(payload, kFixed + i * kSpanBytes);
    if (!sound(span) || span.bytes > kHashBytesMax) return std::nullopt;
    total += span.bytes;
    ask.spans.push_back(span);
  }
  if (total > kHashBytesMax) return std::nullopt;
  return ask;
}

std::optional<AskSurvey> parse_ask_survey(Bytes payload) {
  constexpr std::size_t kFixed = 8;
  if (payload.size() < kFixed) return std::nullopt;
  AskSurvey ask;
  ask.device = load<std::uint32_t>(payload, 0);
  const std::size_t count = load<std::uint32_t>(payload, 4);
  if (ask.device >= kDevicesMax || count == 0 || count > kSurveySpansMax ||
      payload.size() != kFixed + count * kSpanBytes)
    return std::nullopt;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Span span = span_at(payload, kFixed + i * kSpanBytes);
    if (!sound(span) || span.bytes > kSurveyBytesMax || span.address % 16 != 0 || span.bytes % 16 != 0)
      return std::nullopt;
    total += span.bytes;
    ask.spans.push_back(span);
  }
  if (total > kSurveyBytesMax) return std::nullopt;
  return ask;
}

std::optional<std::vector<SpanCount>> parse_survey(Bytes payload) {
  if (payload.size() < 4) return std::nullopt;
  const std::size_t count = load<std::uint32_t>(payload, 0);
  if (count > kSurveySpansMax || payload.size() != 4 + 8 * count) return std::nullopt;
  std::vector<SpanCount> counts(count);
  for (std::size_t i = 0; i < count; ++i)
    counts[i] = {load<std::uint32_t>(payload, 4 + 8 * i), load<std::uint32_t>(payload, 8 + 8 * i)};
  return counts;
}

std::optional<Facts> parse_facts(Bytes payload) {
  constexpr std::size_t kFixed = 20;
  if (payload.size() < kFixed) return std::nullopt;
  Facts facts;
  const auto sight = load<std::uint32_t>(payload, 0);
  facts.cuda_version = load<std::uint32_t>(payload, 4);
  const auto flags = load<std::uint32_t>(payload, 8);
  const std::size_t devices = load<std::uint32_t>(payload, 12);
  const std::size_t ranges = load<std::uint32_t>(payload, 16);
  if (sight > static_cast<std::uint32_t>(Sight::kImport) || flags > 1 || devices > kDevicesMax || ranges > kRangesMax ||
      payload.size() != kFixed + devices * kDeviceBytes + ranges * kRangeBytes)
    return std::nullopt;
  facts.sight = static_cast<Sight>(sight);
  facts.cut = flags != 0;
  std::size_t at = kFixed;
  for (std::size_t i = 0; i < devices; ++i, at += kDeviceBytes) {
    DeviceFact device;
    std::copy_n(payload.begin() + static_cast<std::ptrdiff_t>(at), device.uuid.size(), device.uuid.begin());
    device.sm = load<std::uint32_t>(payload, at + 16);
    device.multiprocessors = load<std::uint32_t>(payload, at + 20);
    const auto context = load<std::uint32_t>(payload, at + 24);
    if (context > 1 || device.sm > 10'000) return std::nullopt;
    device.context = context != 0;
    facts.devices.push_back(device);
  }
  for (std::size_t i = 0; i < ranges; ++i, at += kRangeBytes) {
    const RangeFact range{span_at(payload, at), load<std::uint32_t>(payload, at + 16),
                          load<std::uint32_t>(payload, at + 20), load<std::uint64_t>(payload, at + 24)};
    // In order and without overlap, as the agent keeps them.
    if (!sound(range.span)) return std::nullopt;
    if (!facts.ranges.empty()) {
      const Span& last = facts.ranges.back().span;
      if (range.span.address < last.address + last.bytes) return std::nullopt;
    }
    facts.ranges.push_back(range);
  }
  return facts;
}

std::optional<std::vector<identify::Digest>> parse_roots(Bytes payload) {
  if (payload.size() < 4) return std::nullopt;
  const std::size_t count = load<std::uint32_t>(payload, 0);
  if (count > kHashSpansMax || payload.size() != 4 + count * sizeof(identify::Digest)) return std::nullopt;
  std::vector<identify::Digest> roots(count);
  for (std::size_t i = 0; i < count; ++i)
    std::memcpy(roots[i].data(), payload.data() + 4 + i * sizeof(identify::Digest), sizeof(identify::Digest));
  return roots;
}

std::optional<Refusal> parse_refusal(Bytes payload) {
  if (payload.size() < 4 || payload.size() > 4 + kTextMax) return std::nullopt;
  const auto reason = load<std::uint32_t>(payload, 0);
  if (reason == 0 || reason > kReasons) return std::nullopt;
  return Refusal{static_cast<Reason>(reason), std::string(identify::as_text(payload.subspan(4)))};
}

Frame ask_facts() {
  return Writer(Type::kAskFacts).done();
}

Frame make(const AskRead& ask) {
  Writer out(Type::kAskRead);
  out.put(ask.device);
  out.put(std::uint32_t{0});
  out.span(ask.span);
  return out.done();
}

Frame make(const AskHash& ask) {
  Writer out(Type::kAskHash);
  out.put(ask.device);
  out.put(std::uint32_t{ask.refresh});
  out.bytes(ask.nonce);
  out.put(static_cast<std::uint32_t>(ask.spans.size()));
  out.put(std::uint32_t{0});
  for (const Span& span : ask.spans) out.span(span);
  return out.done();
}

Frame make(const AskSurvey& ask) {
  Writer out(Type::kAskSurvey);
  out.put(ask.device);
  out.put(static_cast<std::uint32_t>(ask.spans.size()));
  for (const Span& span : ask.spans) out.span(span);
  return out.done();
}

Frame make_survey(const std::vector<SpanCount>& counts) {
  Writer out(Type::kSurvey);
  out.put(static_cast<std::uint32_t>(counts.size()));
  for (const SpanCount& count : counts) {
    out.put(count.units);
    out.put(count.ends);
  }
  return out.done();
}

Frame make(const Facts& facts) {
  Writer out(Type::kFacts);
  out.put(static_cast<std::uint32_t>(facts.sight));
  out.put(facts.cuda_version);
  out.put(std::uint32_t{facts.cut});
  out.put(static_cast<std::uint32_t>(facts.devices.size()));
  out.put(static_cast<std::uint32_t>(facts.ranges.size()));
  for (const DeviceFact& device : facts.devices) {
    out.bytes(device.uuid);
    out.put(device.sm);
    out.put(device.multiprocessors);
    out.put(std::uint32_t{device.context});
  }
  for (const RangeFact& range : facts.ranges) {
    out.span(range.span);
    out.put(range.memory_class);
    out.put(range.flags);
    out.put(range.devices);
  }
  return out.done();
}

Frame make_data(Bytes bytes) {
  Writer out(Type::kData);
  out.bytes(bytes);
  return out.done();
}

Frame make_roots(const std::vector<identify::Digest>& roots) {
  Writer out(Type::kRoots);
  out.put(static_cast<std::uint32_t>(roots.size()));
  for (const identify::Digest& root : roots) out.bytes(root);
  return out.done();
}

Frame make(const Refusal& refusal) {
  Writer out(Type::kRefused);
  out.put(static_cast<std::uint32_t>(refusal.reason));
  out.bytes(identify::as_bytes(std::string_view(refusal.text).substr(0, kTextMax)));
  return out.done();
}

}  // namespace gpuwatch::probe::agent
