// SPDX-License-Identifier: Apache-2.0
// Fuzz target: what the agent and its requester parse of each other's frames. A
// payload that parses must come out again as it was.
#include <cstdlib>
#include <cstring>

#include "probe/agent/ask.h"
#include "probe/agent/resident.h"
#include "probe/agent/wire.h"

namespace {

using namespace gpuwatch;
using namespace gpuwatch::probe::agent;

void same(const Frame& frame, identify::Bytes payload) {
  if (frame.size() != kHeadBytes + payload.size()) std::abort();
  if (!payload.empty() && std::memcmp(frame.data() + kHeadBytes, payload.data(), payload.size()) != 0) std::abort();
  if (!parse_head(frame, kAnswerMax)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A copy of the exact size lets the address sanitizer see any overrun.
  const std::vector<std::uint8_t> copy(data, data + size);
  const identify::Bytes bytes(copy);
  (void)parse_head(bytes, kRequestMax);
  const identify::Bytes payload = bytes.subspan(std::min(kHeadBytes, bytes.size()));
  if (const auto ask = parse_ask_read(payload)) same(make(*ask), payload);
  if (const auto ask = parse_ask_hash(payload)) same(make(*ask), payload);
  if (const auto ask = parse_ask_survey(payload)) same(make(*ask), payload);
  if (const auto counts = parse_survey(payload)) same(make_survey(*counts), payload);
  if (const auto facts = parse_facts(payload)) same(make(*facts), payload);
  if (const auto roots = parse_roots(payload)) same(make_roots(*roots), payload);
  if (const auto refusal = parse_refusal(payload)) same(make(*refusal), payload);
  (void)socket_of(identify::as_text(bytes), {0, 1, 41000});
  for (const probe::Span& span : code_like({0x1000, copy}))
    if (span.address < 0x1000 || span.address + span.bytes > 0x1000 + copy.size()) std::abort();
  return 0;
}
