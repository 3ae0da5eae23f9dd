// SPDX-License-Identifier: Apache-2.0
// `gpuwatchd`: reads its command line and runs the service. Exit 0 in order, 1
// records were lost, 2 trouble.
#include <cstdio>
#include <exception>
#include <optional>

#include "base/io.h"
#include "control/client.h"
#include "daemon/log.h"
#include "daemon/privileges.h"
#include "daemon/service.h"
#include "daemon/supervise.h"
#include "daemon/version.h"
#include "identify/worker.h"

namespace gpuwatch::daemon {
namespace {

constexpr int kTrouble = 2;

struct Option {
  std::string_view name, value, meaning;
};
constexpr Option kOptions[] = {
#define OPTION(name, value, meaning) {name, value, meaning},
#include "daemon/options.def"
#undef OPTION
};

// Words in lines of at most 80 columns, all but the first indented.
std::string wrapped(std::string_view text, std::size_t indent) {
  std::string out;
  std::size_t column = indent;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (column > indent && column + 1 + end > 80) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += text.substr(0, end);
    column += end;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string help() {
  std::string text =
      "usage: gpuwatchd [OPTIONS]\n\nFollows what programs do with NVIDIA GPUs, judges it, and tells.\n\n";
  for (const Option& option : kOptions) {
    std::string head =
        "  --" + std::string(option.name) + (option.value.empty() ? "" : " " + std::string(option.value));
    head.append(head.size() < 24 ? 24 - head.size() : 1, ' ');
    text += head + wrapped(option.meaning, 24) + "\n";
  }
  return text;
}

int check(const ServiceOptions& options) {
  std::vector<std::string> errors;
  const Settings settings = Settings::read(options.config, options.overrides, errors);
  std::string text;
  for (const std::string& error : errors) text += error + "\n";
  (void)base::write_all(2, text).ok();
  if (!errors.empty()) return kTrouble;
  text = "good: " + std::to_string(settings.rules().size()) + " rules, from";
  for (const std::string& file : settings.files()) text += " " + file;
  if (settings.files().empty()) text += " no file: all defaults";
  (void)base::write_all(1, text + "\n").ok();
  return 0;
}

// The socket is where the configuration says.
int ask(const ServiceOptions& options, const std::string& word) {
  auto request = control::parse_request("{\"request\":\"" + word + "\"}");
  if (!request) {
    say(Level::kError, request.error().message());
    return kTrouble;
  }
  std::vector<std::string> errors;
  const Settings settings = Settings::read(options.config, options.overrides, errors);
  auto answer = control::ask(*request, settings.text(Key::kControlPath), std::chrono::seconds(30));
  if (answer.ok()) return base::write_all(1, *answer + "\n").ok() ? 0 : kTrouble;
  say(Level::kError, answer.error().message());
  return kTrouble;
}

int wrong(const std::string& what) {
  say(Level::kError, what + "; see gpuwatchd --help");
  return kTrouble;
}

int run(int argc, char** argv) {
  ServiceOptions options;
  options.user = kUser;
  bool check_only = false, supervised = false;
  std::optional<std::string> asked;
  std::vector<std::string> passed_on;
  for (int i = 1; i < argc; ++i) {
    std::string_view word = argv[i];
    if (word == "-h") word = "--help";
    if (word == "-o") word = "--set";
    if (!word.starts_with("--")) {
      // As in `gpuwatchd --check-config FILE`.
      if (!check_only) return wrong("unexpected argument");
      options.config = word;
      continue;
    }
    word.remove_prefix(2);
    std::optional<std::string> value;
    if (const std::size_t equals = word.find('='); equals != std::string_view::npos) {
      value = word.substr(equals + 1);
      word = word.substr(0, equals);
    }
    const Option* known = nullptr;
    for (const Option& option : kOptions)
      if (option.name == word) known = &option;
    if (known == nullptr) return wrong("unknown option");
    if (known->value.empty() && value) return wrong("--" + std::string(word) + " takes no value");
    if (!known->value.empty() && !value) {
      if (i + 1 >= argc) return wrong("--" + std::string(word) + " wants a value");
      value = argv[++i];
    }
    if (word == "supervise")
      supervised = true;
    else
      passed_on.push_back("--" + std::string(word) + (value ? "=" + *value : ""));
    if (word == "help") return base::write_all(1, help()).ok() ? 0 : kTrouble;
    if (word == "version")
      return base::write_all(1, std::string("gpuwatchd ") + kDaemonVersion + "\n").ok() ? 0 : kTrouble;
    if (word == "keys-as-manual")
      return base::write_all(1, keys_as_manual() + ".SH RULES\n" + rule_keys_as_manual()).ok() ? 0 : kTrouble;
    if (word == "ask") asked = *value;
    if (word == "check-config") check_only = true;
    if (word == "config") options.config = *value;
    if (word == "set") options.overrides.push_back(*value);
    if (word == "replay") options.replay = *value;
    if (word == "user") options.user = *value;
  }
  if (check_only) return check(options);
  if (asked) return ask(options, *asked);
  auto status = supervised ? supervise({.arguments = passed_on}) : run_service(options);
  if (status.ok()) return *status;
  say(Level::kError, status.error().message());
  return kTrouble;
}

}  // namespace
}  // namespace gpuwatch::daemon

int main(int argc, char** argv) {
  if (gpuwatch::identify::is_worker(argc, argv)) return gpuwatch::identify::worker_main();
  try {
    return gpuwatch::daemon::run(argc, argv);
  } catch (const std::exception& error) {
    // Out of memory, mostly; rooms throw nothing on purpose.
    std::fprintf(stderr, "gpuwatchd: %s\n", error.what());
    return gpuwatch::daemon::kTrouble;
  }
}
