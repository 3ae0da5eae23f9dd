// SPDX-License-Identifier: Apache-2.0
// The command line as data: the table of flags.def, the parser made from it,
// and the parsed result. Values are checked here for form; what they mean is
// the commands'.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gpuwatch::cli {

enum class FlagKind { kSwitch, kText, kList, kCount, kBytes, kSeconds };

struct FlagSpec {
  std::string_view command;
  std::string_view name;
  std::string_view short_name;
  FlagKind kind;
  std::string_view value_name;
  std::string_view help;
};

struct CommandSpec {
  std::string_view name;
  std::string_view arguments;
  std::string_view help;
};

std::span<const CommandSpec> command_table();
std::span<const FlagSpec> flag_table();

// What the user gave. Asking for a name that the command does not have in
// flags.def is a defect of the program and ends it.
class Flags {
 public:
  const std::string& command() const { return command_; }
  bool has(std::string_view name) const;
  std::string text(std::string_view name) const;  // empty where not given
  const std::vector<std::string>& list(std::string_view name) const;
  std::optional<std::uint64_t> number(std::string_view name) const;  // of kCount and kBytes
  std::optional<std::chrono::nanoseconds> duration(std::string_view name) const;
  const std::vector<std::string>& arguments() const { return arguments_; }  // FILE of decode
  const std::vector<std::string>& rest() const { return rest_; }            // after "--"

 private:
  friend struct FlagParser;
  const std::vector<std::string>* find(std::string_view name) const;

  std::string command_;
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
  std::vector<std::string> arguments_;
  std::vector<std::string> rest_;
};

struct ParseOutcome {
  std::optional<Flags> flags;  // nothing: print `text` and end with `exit_code`
  std::string text;
  int exit_code = 0;
};

// `args` without the program's name.
ParseOutcome parse_flags(std::vector<std::string> args);

std::optional<std::uint64_t> parse_bytes(std::string_view text);  // 4096, 64K, 2M, 1G
std::optional<std::chrono::nanoseconds> parse_seconds(std::string_view text);

}  // namespace gpuwatch::cli
