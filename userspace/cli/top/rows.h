// SPDX-License-Identifier: Apache-2.0
// Rows: what of a HoldingsSnapshot is shown, in which order, with which words.
// Pure: no terminal, no clock. All text in a row went through safe().
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "report/holdings.h"

namespace gpuwatch::cli::top {

enum class Column : std::uint8_t {
  kSince,
  kContexts,
  kChannels,
  kMemory,
  kPeak,
  kCode,
  kCalls,
  kGpu,
  kFindings,
  kDenied,
  kLast,
  kUser,
  kCount,
};
inline constexpr std::size_t kColumns = static_cast<std::size_t>(Column::kCount);

struct ColumnInfo {
  const char* title;
  const char* flag;  // name in --sort
  std::size_t width;
  bool right;    // aligned
  int priority;  // 0 is the last to go on a narrow terminal
};
const ColumnInfo& column_info(Column column);
// The column that --sort names; nothing for another word.
std::optional<Column> column_named(std::string_view flag);

enum class Tone : std::uint8_t { kPlain, kGood, kBad, kGone };

struct Row {
  enum class Kind : std::uint8_t { kGpu, kContainer, kProcess };
  Kind kind = Kind::kProcess;
  std::string key;     // the same for the same thing in every snapshot
  std::string prefix;  // lines of the tree
  std::string name;
  bool foldable = false;
  bool folded = false;
  std::array<std::string, kColumns> cells;
  Tone tone = Tone::kPlain;
  Tone code = Tone::kPlain;                      // of the verdict's cell
  const report::HeldProcess* process = nullptr;  // into the snapshot
  const report::HeldGpu* gpu = nullptr;
};

struct ListOptions {
  bool tree = true;
  bool ascii = false;
  bool path = false;       // processes by their executable
  bool hide_open = false;  // leave out what has only the card's node open
  Column sort = Column::kMemory;
  bool turned = false;
  std::string filter;
  std::optional<std::uint32_t> user;
  std::set<std::string> folded;
  std::function<std::string(std::uint32_t)> user_name;  // empty where there is none
};

struct Listing {
  std::vector<Row> rows;
  std::size_t gpus = 0, containers = 0, processes = 0;  // shown, and not ended; a process on two GPUs is one
  std::uint64_t memory = 0;
  std::size_t hidden = 0;  // processes that the options leave out
};

Listing list(const report::HoldingsSnapshot& snapshot, const ListOptions& options);

// Users that hold something, by number.
std::vector<std::uint32_t> users_of(const report::HoldingsSnapshot& snapshot);

std::string user_text(std::uint32_t uid, const ListOptions& options);
// "docker:4f7bf4a02c04 trainer", "ssh.service", ...: before safe().
std::string container_text(const report::Identity& who);
std::string gpu_text(const report::HeldGpu& gpu);
// "unknown 1/15", "12 loads", "-".
std::string code_text(const report::HeldCode& code);
Tone code_tone(const report::HeldCode& code);

}  // namespace gpuwatch::cli::top
