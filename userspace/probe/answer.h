// SPDX-License-Identifier: Apache-2.0
// What gpuwatch-probe printed, read back by whoever started it: the program is a
// process of its own that looked at untrusted images, so its lines are input like
// any other. Bounds and types are checked here; what they mean is the reader's.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "identify/digest.h"

namespace gpuwatch::probe {

// The longest real line has the differences of 16 units and a mangled name.
inline constexpr std::size_t kAnswerLineMax = 1 << 20;

// One line, an object with a "type". Errors say what is wrong with it.
base::Result<nlohmann::json> parse_answer(std::string_view line);

// Values of a line: nothing where the key is missing or of another type, or the
// value over the bound.
std::optional<std::uint64_t> answer_number(const nlohmann::json& line, const char* key);
std::string answer_text(const nlohmann::json& line, const char* key, std::size_t max = 64 << 10);
std::optional<identify::Digest> answer_digest(const nlohmann::json& line, const char* key);

// A line of type kernel. The digests are there for confirmed code alone.
struct KernelAnswer {
  int gpu = 0;
  std::string name, image, verdict, reason;
  std::uint64_t bytes = 0, first_offset = 0, different_bytes = 0;
  bool confirmed = false;  // match, match-relocated
  bool ptx = false;
  std::optional<identify::Digest> form, r, k, t;
};
// Nothing where a value that every such line has is missing.
std::optional<KernelAnswer> kernel_answer(const nlohmann::json& line);

// Takes output as it comes, in pieces, and gives whole lines.
class AnswerLines {
 public:
  explicit AnswerLines(std::uint64_t total_max) : left_(total_max) {}
  // Stops at the first line that is wrong or too long, and when all is too much.
  base::Status feed(std::string_view piece, const std::function<base::Status(const nlohmann::json&)>& take);
  // The output ended: a line without its end is wrong.
  base::Status end() const;

 private:
  std::string pending_;
  std::uint64_t left_;
};

}  // namespace gpuwatch::probe
