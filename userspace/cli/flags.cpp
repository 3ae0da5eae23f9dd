// SPDX-License-Identifier: Apache-2.0
// The only file that knows CLI11, and the only one that catches its exceptions.
#include "cli/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <iostream>

#include "cli/version.h"

namespace gpuwatch::cli {

namespace {

constexpr CommandSpec kCommands[] = {
#define COMMAND(name, arguments, help) {#name, arguments, help},
#define FLAG(command, name, short_name, kind, value, help)
#include "cli/flags.def"
#undef COMMAND
#undef FLAG
};

constexpr FlagSpec kFlags[] = {
#define COMMAND(name, arguments, help)
#define FLAG(command, name, short_name, kind, value, help) {#command, name, short_name, FlagKind::kind, value, help},
#include "cli/flags.def"
#undef COMMAND
#undef FLAG
};

std::optional<std::uint64_t> parse_count(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

constexpr std::size_t kColumns = 80;
constexpr std::size_t kHelpColumn = 26;

// "  -f, --filter EXPR       what it does", folded at word ends.
void append_entry(std::string& out, const std::string& left, std::string_view help) {
  std::size_t column = left.size();
  out += left;
  const auto fill = [&] {
    out.append(column < kHelpColumn ? kHelpColumn - column : 0, ' ');
    column = std::max(column, kHelpColumn);
  };
  if (column + 2 > kHelpColumn) {
    out += '\n';
    column = 0;
  }
  fill();
  while (!help.empty()) {
    const std::string_view word = help.substr(0, help.find(' '));
    help.remove_prefix(std::min(word.size() + 1, help.size()));
    if (column > kHelpColumn && column + 1 + word.size() > kColumns) {
      out += '\n';
      column = 0;
      fill();
    } else if (column > kHelpColumn) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  out += '\n';
}

std::string program_help() {
  std::string out =
      "Sees what programs ask of NVIDIA GPUs, from inside the kernel.\n\n"
      "usage: gpuwatch COMMAND [FLAGS]\n\ncommands:\n";
  for (const CommandSpec& command : kCommands) append_entry(out, "  " + std::string(command.name), command.help);
  out += "\n`gpuwatch COMMAND --help` lists a command's flags; the manual is gpuwatch(1).\n";
  return out;
}

std::string command_help(const std::string& name) {
  std::string out;
  for (const CommandSpec& command : kCommands)
    if (command.name == name)
      out = "usage: gpuwatch " + name + " [FLAGS]" +
            (command.arguments.empty() ? "" : " " + std::string(command.arguments)) + "\n\n" +
            std::string(command.help) + "\n\nflags:\n";
  for (const FlagSpec& flag : kFlags) {
    if (flag.command != name) continue;
    std::string left = flag.short_name.empty() ? "      " : "  -" + std::string(flag.short_name) + ", ";
    left += "--" + std::string(flag.name);
    if (!flag.value_name.empty()) left += " " + std::string(flag.value_name);
    append_entry(out, left, flag.help);
  }
  append_entry(out, "  -h, --help", "print this and end");
  return out;
}

// Empty when the value has the form its kind asks for, else what is wrong.
std::string check_value(FlagKind kind, const std::string& value) {
  switch (kind) {
    case FlagKind::kCount:
      return parse_count(value) ? "" : "'" + value + "' is not a whole number";
    case FlagKind::kBytes:
      return parse_bytes(value) ? "" : "'" + value + "' is not a number of bytes, as in 65536, 64K or 2M";
    case FlagKind::kSeconds:
      return parse_seconds(value) ? "" : "'" + value + "' is not a number of seconds, as in 10 or 0.5";
    default:
      return value.find('\0') == std::string::npos ? "" : "a NUL byte in the value";
  }
}

}  // namespace

std::span<const CommandSpec> command_table() {
  return kCommands;
}
std::span<const FlagSpec> flag_table() {
  return kFlags;
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  if (text.empty()) return std::nullopt;
  unsigned shift = 0;
  switch (text.back()) {
    case 'K':
      shift = 10;
      break;
    case 'M':
      shift = 20;
      break;
    case 'G':
      shift = 30;
      break;
    default:
      break;
  }
  if (shift != 0) text.remove_suffix(1);
  const auto value = parse_count(text);
  if (!value || *value > (~std::uint64_t{0} >> shift)) return std::nullopt;
  return *value << shift;
}

std::optional<std::chrono::nanoseconds> parse_seconds(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  if (!(value >= 0 && value <= 1e9)) return std::nullopt;
  return std::chrono::nanoseconds(static_cast<std::int64_t>(value * 1e9));
}

const std::vector<std::string>* Flags::find(std::string_view name) const {
  const bool known = std::any_of(std::begin(kFlags), std::end(kFlags),
                                 [&](const FlagSpec& flag) { return flag.command == command_ && flag.name == name; });
  if (!known) {
    std::cerr << "gpuwatch: defect: command " << command_ << " has no flag --" << name << "\n";
    std::abort();
  }
  const auto it = values_.find(name);
  return it == values_.end() ? nullptr : &it->second;
}

bool Flags::has(std::string_view name) const {
  return find(name) != nullptr;
}

std::string Flags::text(std::string_view name) const {
  const auto* values = find(name);
  return values == nullptr || values->empty() ? std::string() : values->back();
}

const std::vector<std::string>& Flags::list(std::string_view name) const {
  static const std::vector<std::string> kNone;
  const auto* values = find(name);
  return values == nullptr ? kNone : *values;
}

std::optional<std::uint64_t> Flags::number(std::string_view name) const {
  const auto* values = find(name);
  if (values == nullptr) return std::nullopt;
  return parse_bytes(values->back());
}

std::optional<std::chrono::nanoseconds> Flags::duration(std::string_view name) const {
  const auto* values = find(name);
  if (values == nullptr) return std::nullopt;
  return parse_seconds(values->back());
}

namespace {

// CLI11's own words for these do not name the command.
std::string check_command(const std::vector<std::string>& args) {
  std::string names;
  for (const CommandSpec& command : kCommands) {
    if (!args.empty() && args.front() == command.name) return {};
    names += (names.empty() ? "" : ", ") + std::string(command.name);
  }
  if (args.empty()) return "no command given; commands are: " + names;
  return args.front().starts_with('-') ? "" : "unknown command '" + args.front() + "'; commands are: " + names;
}

}  // namespace

// Holds what CLI11 writes into while it parses.
struct FlagParser {
  struct Slot {
    const FlagSpec* spec = nullptr;
    bool given = false;
    std::vector<std::string> values;
  };

  static ParseOutcome parse(std::vector<std::string> args) {
    ParseOutcome outcome;
    Flags flags;
    // What follows "--" is another program's business, dashes and all.
    if (const auto cut = std::find(args.begin(), args.end(), "--"); cut != args.end()) {
      flags.rest_.assign(cut + 1, args.end());
      args.erase(cut, args.end());
    }

    if (const std::string wrong = check_command(args); !wrong.empty()) {
      outcome.exit_code = 2;
      outcome.text = "gpuwatch: " + wrong + "\n";
      return outcome;
    }
    CLI::App app("Sees what programs ask of NVIDIA GPUs, from inside the kernel.", "gpuwatch");
    app.set_version_flag("--version", std::string("gpuwatch ") + kVersion);
    app.require_subcommand(1);
    app.failure_message(CLI::FailureMessage::simple);
    // Our own help: CLI11 does not fold lines, and the table is ours.
    app.formatter_fn([](const CLI::App* which, std::string, CLI::AppFormatMode) {
      return which->get_parent() == nullptr ? program_help() : command_help(which->get_name());
    });
    std::vector<Slot> slots(std::size(kFlags));
    for (const CommandSpec& command : kCommands) {
      CLI::App* sub = app.add_subcommand(std::string(command.name), std::string(command.help));
      if (command.arguments == "FILE" || command.arguments == "[FILE]")
        sub->add_option("FILE", flags.arguments_, "the recording; - is standard input")
            ->required(command.arguments == "FILE")
            ->expected(1);
      if (command.arguments == "PATH...")
        sub->add_option("PATH", flags.arguments_, "paths; - is standard input")->required()->expected(1, 1 << 20);
      if (command.arguments == "ACTION [ARG...]")
        sub->add_option("ACTION", flags.arguments_, "what to do, and with what")->required()->expected(1, 1 << 20);
      for (std::size_t i = 0; i < slots.size(); ++i)
        if (kFlags[i].command == command.name) add(*sub, kFlags[i], slots[i]);
    }

    try {
      std::reverse(args.begin(), args.end());  // CLI11 takes them from the back
      app.parse(args);
    } catch (const CLI::ParseError& error) {
      std::ostringstream out;
      std::ostringstream err;
      outcome.exit_code = app.exit(error, out, err) == 0 ? 0 : 2;
      outcome.text = out.str() + err.str();
      if (outcome.exit_code != 0) outcome.text = "gpuwatch: " + outcome.text;
      return outcome;
    }
    flags.command_ = app.get_subcommands().front()->get_name();
    for (Slot& slot : slots) {
      if (!slot.given && slot.values.empty()) continue;
      for (const std::string& value : slot.values)
        if (const std::string wrong = check_value(slot.spec->kind, value); !wrong.empty()) {
          outcome.exit_code = 2;
          outcome.text = "gpuwatch: --" + std::string(slot.spec->name) + ": " + wrong + "\n";
          return outcome;
        }
      flags.values_[std::string(slot.spec->name)] = std::move(slot.values);
    }
    if (!flags.rest_.empty() && flags.command_ != "record") {
      outcome.exit_code = 2;
      outcome.text = "gpuwatch: " + flags.command_ + " takes no command after --; only record does\n";
      return outcome;
    }
    outcome.flags = std::move(flags);
    return outcome;
  }

  static void add(CLI::App& app, const FlagSpec& spec, Slot& slot) {
    slot.spec = &spec;
    std::string names = "--" + std::string(spec.name);
    if (!spec.short_name.empty()) names = "-" + std::string(spec.short_name) + "," + names;
    if (spec.kind == FlagKind::kSwitch) {
      app.add_flag(names, slot.given, std::string(spec.help));
      return;
    }
    CLI::Option* option = app.add_option(names, slot.values, std::string(spec.help));
    option->type_name(std::string(spec.value_name));
    option->expected(1);
    // One value each time, or an option takes the FILE behind it.
    option->allow_extra_args(false);
    option->multi_option_policy(spec.kind == FlagKind::kList ? CLI::MultiOptionPolicy::TakeAll
                                                             : CLI::MultiOptionPolicy::TakeLast);
  }
};

ParseOutcome parse_flags(std::vector<std::string> args) {
  return FlagParser::parse(std::move(args));
}

}  // namespace gpuwatch::cli
