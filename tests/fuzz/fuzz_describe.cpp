// SPDX-License-Identifier: Apache-2.0
// Fuzz target: any bytes as the argument of any call, described field by field
// on every driver branch and printed. The first bytes choose branch, node,
// command and how the rest is cut into captures; with a first byte over 0x7f
// the rest is a stream of records instead.
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/one_call.h"
#include "decode/decoder.h"
#include "decode/describe.h"
#include "decode/driver_seen.h"
#include "publish/fields.h"
#include "publish/json.h"

namespace {

using namespace gpuwatch;

constexpr std::uint32_t kBranches[] = {535, 545, 550, 570, 580, 590, 595, 620};

void must(bool good) {
  if (!good) std::abort();
}

// Without building the value: that took a third of this target's time.
bool is_object(const std::string& json) {
  return json.starts_with('{') && nlohmann::json::accept(json);
}

void check_output(const decode::Decoder& decoder, const decode::Describer& describer, const model::Call& call) {
  const model::Description description = describer.describe(call);
  for (const model::DescribedPart& part : description.parts)
    for (const model::DescribedField& field : part.fields) {
      must(field.before.has_value() || field.after.has_value());
      must(!field.value().items.empty());
      must(field.array || field.value().items.size() == 1);
      must(field.value().items.size() <= field.elements);
    }
  publish::LoneCall lone;
  lone.branch = decoder.branch();
  lone.outcome_known = true;
  std::string text;
  publish::append_lone_call(text, lone, call, description);
  for (const char c : text) must(c == '\n' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f));
  std::string json;
  publish::append_json_lone_call(json, lone, call, description);
  must(is_object(json));
  json.clear();
  publish::append_json_line(json, call, {}, {}, &description);
  must(is_object(json));
}

void run_stream(model::Bytes bytes) {
  decode::Decoder decoder;
  decode::Describer describer;
  while (const auto record = model::parse_record(bytes)) {
    const model::Call call = decoder.decode(*record);
    if (const auto driver = decode::driver_seen(call)) {
      decoder.use(*driver);
      describer.use(*driver);
    }
    describer.observe(call);
    check_output(decoder, describer, call);
    bytes = bytes.subspan(record->head.len);
  }
}

// head: branch, node, flags, command (4 bytes), sizes of four captures (2 each)
constexpr std::size_t kHead = 15;

void run_call(const std::vector<std::uint8_t>& data) {
  if (data.size() < kHead) return;
  gpuwatch_rec head{};
  gpuwatch_rec_ioctl fixed{};
  head.type = GPUWATCH_REC_IOCTL;
  head.node_kind = static_cast<std::uint8_t>(data[1] % (GPUWATCH_NODE_MAX + 1));
  head.flags = (data[2] & 1) != 0 ? GPUWATCH_F_XFER : 0;
  fixed.ret = (data[2] & 2) != 0 ? -13 : 0;
  std::memcpy(&fixed.cmd, data.data() + 3, 4);
  fixed.inner_cmd = fixed.cmd & 0xFF;
  fixed.inner_size = fixed.cmd >> 16 & 0x3FFF;
  std::vector<std::byte> payload(sizeof fixed);
  std::size_t at = kHead;
  static constexpr gpuwatch_capture_what kWhat[] = {GPUWATCH_CAP_ARG_IN, GPUWATCH_CAP_ARG_OUT, GPUWATCH_CAP_NESTED0_IN,
                                                    GPUWATCH_CAP_NESTED0_OUT};
  for (std::size_t i = 0; i < 4; ++i) {
    std::uint16_t size = 0;
    std::memcpy(&size, data.data() + 7 + 2 * i, 2);
    gpuwatch_capture capture{};
    capture.what = static_cast<std::uint16_t>(kWhat[i]);
    capture.len = static_cast<std::uint32_t>(std::min<std::size_t>(size & 0x3FFF, data.size() - at));
    if (capture.len == 0) continue;
    // The top bits make a window of the end, as plans for large arguments do.
    capture.offset = (size >> 14) * 2304U;
    capture.want = capture.offset + capture.len;
    const auto* const bytes = reinterpret_cast<const std::byte*>(&capture);
    payload.insert(payload.end(), bytes, bytes + sizeof capture);
    const auto* const from = reinterpret_cast<const std::byte*>(data.data() + at);
    payload.insert(payload.end(), from, from + capture.len);
    payload.resize((payload.size() + 7) & ~std::size_t{7});
    at += capture.len;
    ++fixed.nr_captures;
  }
  std::memcpy(payload.data(), &fixed, sizeof fixed);
  model::RawRecord record;
  record.head = head;
  record.payload = payload;
  const model::DriverVersion version{kBranches[data[0] % std::size(kBranches)], 60, 1};
  const decode::Decoder decoder(version);
  decode::Describer describer(version);
  const model::Call call = decoder.decode(record);
  describer.observe(call);
  check_output(decoder, describer, call);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A copy of the exact size lets the address sanitizer see any overrun.
  const std::vector<std::uint8_t> copy(data, data + size);
  if (!copy.empty() && copy[0] > 0x7F) {
    const std::vector<std::uint8_t> rest(copy.begin() + 1, copy.end());
    run_stream(std::as_bytes(std::span(rest)));
  } else {
    run_call(copy);
  }
  const std::string text(copy.begin(), copy.end());
  (void)cli::bytes_from_text(text);
  return 0;
}
