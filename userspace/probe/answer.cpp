// SPDX-License-Identifier: Apache-2.0
#include "probe/answer.h"

#include <climits>

namespace gpuwatch::probe {

using base::Code;
using base::Error;
using base::Result;
using base::Status;
using nlohmann::json;

namespace {

constexpr int kDepth = 4;

// Lower case alone, so that one digest has one form.
int digit(char c) {
  return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

Error wrong(const std::string& what) {
  return Error(Code::kBadInput, "gpuwatch-probe printed " + what);
}

}  // namespace

Result<json> parse_answer(std::string_view line) {
  if (line.size() > kAnswerLineMax) return wrong("a line over " + std::to_string(kAnswerLineMax) + " bytes");
  bool too_deep = false;
  const auto watch = [&](int depth, json::parse_event_t, json&) {
    too_deep = too_deep || depth > kDepth;
    return !too_deep;
  };
  json value = json::parse(line, watch, false);
  if (too_deep || value.is_discarded() || !value.is_object() || answer_text(value, "type", 64).empty())
    return wrong("a line that is no answer of it");
  return value;
}

std::optional<std::uint64_t> answer_number(const json& line, const char* key) {
  const auto at = line.find(key);
  if (at == line.end() || !at->is_number_unsigned()) return std::nullopt;
  return at->get<std::uint64_t>();
}

std::string answer_text(const json& line, const char* key, std::size_t max) {
  const auto at = line.find(key);
  if (at == line.end() || !at->is_string()) return {};
  const std::string& text = at->get_ref<const std::string&>();
  return text.size() <= max ? text : std::string();
}

std::optional<identify::Digest> answer_digest(const json& line, const char* key) {
  const std::string text = answer_text(line, key, 64);
  identify::Digest out{};
  if (text.size() != 2 * out.size()) return std::nullopt;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int value = digit(text[i]);
    if (value < 0) return std::nullopt;
    out[i / 2] = static_cast<std::uint8_t>(out[i / 2] << 4 | value);
  }
  return out;
}

std::optional<KernelAnswer> kernel_answer(const json& line) {
  KernelAnswer out;
  const auto gpu = answer_number(line, "gpu");
  const auto bytes = answer_number(line, "bytes");
  out.name = answer_text(line, "name");
  out.verdict = answer_text(line, "verdict", 64);
  if (!gpu || *gpu > INT_MAX || !bytes || out.name.empty() || out.verdict.empty()) return std::nullopt;
  out.gpu = static_cast<int>(*gpu);
  out.bytes = *bytes;
  out.image = answer_text(line, "image");
  out.reason = answer_text(line, "reason");
  out.first_offset = answer_number(line, "first_offset").value_or(0);
  out.different_bytes = answer_number(line, "different_bytes").value_or(0);
  out.confirmed = out.verdict == "match" || out.verdict == "match-relocated";
  out.ptx = answer_text(line, "source", 16) == "ptx";
  if (!out.confirmed) return out;
  out.form = answer_digest(line, "form_sha256");
  out.r = answer_digest(line, "r");
  out.k = answer_digest(line, "k");
  out.t = answer_digest(line, "t");
  if (!out.form) return std::nullopt;
  return out;
}

Status AnswerLines::feed(std::string_view piece, const std::function<Status(const json&)>& take) {
  if (piece.size() > left_) return wrong("more than it may");
  left_ -= piece.size();
  pending_ += piece;
  std::size_t begin = 0;
  for (std::size_t end; (end = pending_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    auto line = parse_answer(std::string_view(pending_).substr(begin, end - begin));
    if (!line) return std::move(line.error());
    if (Status status = take(*line); !status.ok()) return status;
  }
  pending_.erase(0, begin);
  if (pending_.size() > kAnswerLineMax) return wrong("a line over " + std::to_string(kAnswerLineMax) + " bytes");
  return {};
}

Status AnswerLines::end() const {
  return pending_.empty() ? Status() : Status(wrong("half of a line, and ended"));
}

}  // namespace gpuwatch::probe
