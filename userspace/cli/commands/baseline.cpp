// SPDX-License-Identifier: Apache-2.0
// `gpuwatch baseline`: which action is meant, and those that need nothing but
// baseline files. What looks at GPU code is in baseline_code.cpp.
#include "cli/commands/baseline.h"

#include <fcntl.h>
#include <unistd.h>

#include <ctime>
#include <map>
#include <nlohmann/json.hpp>

#include "base/escape.h"
#include "base/fd.h"
#include "base/io.h"
#include "base/scope_exit.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "judge/baseline.h"
#include "judge/compare.h"
#include "judge/exchange.h"
#include "judge/sign.h"

namespace gpuwatch::cli {

using base::Code;
using base::Error;
using base::Result;
using base::Status;
using judge::Baseline;
using judge::Entry;
using Json = nlohmann::ordered_json;

namespace {

std::string line_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string short_hash(const model::Digest& digest) {
  return model::hex_of(digest).substr(0, 16);
}

std::string date_of(std::int64_t unix_s) {
  const std::time_t time = unix_s;
  std::tm parts{};
  char text[32] = "";
  if (unix_s == 0 || ::gmtime_r(&time, &parts) == nullptr) return "-";
  std::strftime(text, sizeof text, "%Y-%m-%d", &parts);
  return text;
}

std::string sm_text(const model::ModulePrint& module) {
  if (module.sm == 0) return "-";
  std::string out = "sm_" + std::to_string(module.sm);
  if (module.sm_suffix != 0) out += module.sm_suffix;
  return out;
}

void append_source(std::string& out, const judge::Source& source) {
  base::append_escaped(out, source.path);
  if (source.package.empty()) return;
  out += " (";
  base::append_escaped(out, source.package + " " + source.version);
  out += ", " + source.manager + ")";
}

// "  in GPU memory: 12 under driver 580.159.04 and sm_90"
void append_residents(std::string& out, const std::vector<judge::Resident>& residents) {
  std::map<std::pair<std::string, std::uint32_t>, std::size_t> counts;
  for (const judge::Resident& resident : residents) ++counts[{resident.driver, resident.sm}];
  const char* before = "  in GPU memory: ";
  for (const auto& [where, count] : counts) {
    out += before + std::to_string(count) + " under driver ";
    base::append_escaped(out, where.first);
    out += " and sm_" + std::to_string(where.second);
    before = ", ";
  }
}

Result<int> show(const Flags& flags, std::span<const std::string> names) {
  auto baseline = Baseline::open(names[0], Baseline::Access::kRead);
  if (!baseline) return std::move(baseline.error());
  auto counts = baseline->counts();
  if (!counts) return std::move(counts.error());
  auto signature = baseline->signature();
  if (!signature) return std::move(signature.error());
  Output output;
  const judge::BaselineInfo& info = baseline->info();
  if (flags.has("json")) {
    Json json{{"type", "baseline"},
              {"label", base::to_utf8(info.label)},
              {"stance", judge::stance_name(info.stance)},
              {"created_unix", info.created_unix},
              {"modules", counts->modules},
              {"kernels", counts->kernels},
              {"kernel_names", counts->names},
              {"files", counts->files},
              {"residents", counts->residents}};
    if (*signature) json["signed_by"] = base::to_utf8((*signature)->public_key);
    output.buffer() += line_of(json);
  } else {
    std::string& out = output.buffer();
    base::append_escaped(out, info.label.empty() ? names[0] : info.label);
    out += ": " + std::string(judge::stance_name(info.stance)) + ", made " + date_of(info.created_unix) + ", " +
           std::to_string(counts->modules) + " modules, " + std::to_string(counts->kernels) + " kernels of " +
           std::to_string(counts->names) + " names, from " + std::to_string(counts->files) + " files";
    if (counts->residents != 0)
      out += "; " + std::to_string(counts->residents) + " functions as they lie in GPU memory";
    out += '\n';
    if (*signature) {
      out += "signed by key ";
      base::append_escaped(out, (*signature)->public_key);
      out += " (not verified: gpuwatch baseline verify --key)\n";
    }
  }
  const std::optional<std::uint64_t> sm = flags.number("sm");
  Status status = baseline->for_each([&](const Entry& entry) -> Status {
    const model::ModulePrint& module = entry.module;
    if (sm && module.sm != *sm) return {};
    std::string& out = output.buffer();
    if (flags.has("json")) {
      Json json = Json::parse(judge::entry_line(entry));
      json["type"] = "module";
      out += line_of(json);
    } else {
      out += short_hash(module.r) + "  " + std::string(model::code_kind_name(module.kind)) + "  " + sm_text(module) +
             "  " + std::to_string(module.kernels.size()) + " kernels  ";
      if (!entry.sources.empty()) append_source(out, entry.sources.front());
      append_residents(out, entry.residents);
      out += '\n';
    }
    return output.flush_if_full();
  });
  if (!status.ok()) return std::move(status.error());
  if (status = output.flush(); !status.ok()) return std::move(status.error());
  return kExitOk;
}

Result<int> diff(const Flags& flags, std::span<const std::string> names) {
  auto first = Baseline::open(names[0], Baseline::Access::kRead);
  if (!first) return std::move(first.error());
  auto second = Baseline::open(names[1], Baseline::Access::kRead);
  if (!second) return std::move(second.error());
  Output output;
  const bool json = flags.has("json");
  auto counts = judge::diff(*first, *second, [&](const judge::DiffLine& line) -> Status {
    static constexpr const char* kWords[] = {"removed", "added", "changed"};
    static constexpr char kMarks[] = {'-', '+', '~'};
    const auto kind = static_cast<std::size_t>(line.kind);
    const model::ModulePrint& module = line.entry->module;
    std::string& out = output.buffer();
    if (json) {
      Json object{{"type", kWords[kind]}, {"r", model::hex_of(module.r)}, {"sm", module.sm}};
      if (line.kernel != nullptr) {
        object["kernel"] = base::to_utf8(line.kernel->name);
        object["k"] = model::hex_of(line.kernel->k);
        object["k_before"] = model::hex_of(line.before->k);
      } else {
        object["kernels"] = module.kernels.size();
      }
      if (!line.entry->sources.empty()) object["path"] = base::to_utf8(line.entry->sources.front().path);
      out += line_of(object);
      return output.flush_if_full();
    }
    out += kMarks[kind];
    if (line.kernel != nullptr) {
      out += "   kernel ";
      base::append_escaped(out, line.kernel->name);
      out += " K " + short_hash(line.before->k) + " -> " + short_hash(line.kernel->k) + '\n';
    } else {
      out += " module " + short_hash(module.r) + " " + sm_text(module) + ", " + std::to_string(module.kernels.size()) +
             " kernels, ";
      if (!line.entry->sources.empty()) append_source(out, line.entry->sources.front());
      out += '\n';
    }
    return output.flush_if_full();
  });
  if (!counts) return std::move(counts.error());
  if (Status status = output.flush(); !status.ok()) return std::move(status.error());
  say(std::to_string(counts->removed) + " modules removed, " + std::to_string(counts->added) + " added, " +
      std::to_string(counts->common) + " in both; " + std::to_string(counts->changed) +
      " kernels of the added ones are known by name with another K");
  return counts->any() ? kExitFinding : kExitOk;
}

Result<int> merge(const Flags& flags, std::span<const std::string> names) {
  std::uint64_t added = 0;
  std::optional<Baseline> into;
  for (const std::string& name : names) {
    auto from = Baseline::open(name, Baseline::Access::kRead);
    if (!from) return std::move(from.error());
    if (!into) {
      judge::BaselineInfo info = from->info();
      if (flags.has("label")) info.label = flags.text("label");
      auto made = Baseline::open_or_make(flags.text("output"), info);
      if (!made) return std::move(made.error());
      into = std::move(*made);
    }
    auto fresh = judge::merge(*into, *from);
    if (!fresh) return std::move(fresh.error());
    added += *fresh;
  }
  say(flags.text("output") + ": " + std::to_string(added) + " modules added");
  return kExitOk;
}

Result<int> export_text(const Flags& flags, std::span<const std::string> names) {
  auto baseline = Baseline::open(names[0], Baseline::Access::kRead);
  if (!baseline) return std::move(baseline.error());
  base::Fd file;
  if (flags.has("output")) {
    file = base::Fd(::open(flags.text("output").c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!file.valid()) return Error::from_errno(flags.text("output"));
  }
  Output output(file.valid() ? file.get() : STDOUT_FILENO);
  Status status = judge::export_baseline(*baseline, [&](std::string_view line) {
    output.buffer() += line;
    return output.flush_if_full();
  });
  if (status.ok()) status = output.flush();
  if (!status.ok()) {
    if (file.valid()) ::unlink(flags.text("output").c_str());
    return std::move(status.error());
  }
  return kExitOk;
}

// Everything is read and checked into a file beside the target first: a text
// that is wrong in its last line changes nothing.
Result<int> import_text(const Flags& flags, std::span<const std::string> names) {
  const bool standard = names[0] == "-";
  const base::Fd file(standard ? -1 : ::open(names[0].c_str(), O_RDONLY | O_CLOEXEC));
  if (!standard && !file.valid()) return Error::from_errno(names[0]);
  const std::string target = flags.text("output");
  const std::string scratch = target + ".import." + std::to_string(::getpid());
  const base::ScopeExit clean([&] {
    for (const char* suffix : {"", "-wal", "-shm", "-journal"}) ::unlink((scratch + suffix).c_str());
  });
  std::optional<Baseline> checked;
  const auto take = [&](const judge::BaselineInfo& info, std::span<const Entry> entries) -> Status {
    if (!checked) {
      auto made = Baseline::open_or_make(scratch, info);
      if (!made) return std::move(made.error());
      checked = std::move(*made);
    }
    auto added = checked->add(entries);
    return added ? Status() : Status(std::move(added.error()));
  };
  auto import = judge::import_lines(
      [&](std::span<char> out) {
        return base::read_full(standard ? STDIN_FILENO : file.get(), std::as_writable_bytes(out));
      },
      standard ? "standard input" : names[0], take);
  if (!import) return std::move(import.error());
  if (!checked)
    if (Status status = take(import->info, {}); !status.ok()) return std::move(status.error());
  auto into = Baseline::open_or_make(target, import->info);
  if (!into) return std::move(into.error());
  auto before = into->counts();
  if (!before) return std::move(before.error());
  auto added = judge::merge(*into, *checked);
  if (!added) return std::move(added.error());
  // The signature is over these contents alone, under their own label.
  const bool whole = before->modules == 0 && into->info() == import->info;
  if (import->signature && whole)
    if (Status status = into->set_signature(*import->signature); !status.ok()) return std::move(status.error());
  if (import->signature && !whole) say("the signature is left out: " + target + " has other contents too");
  say(target + ": " + std::to_string(*added) + " of " + std::to_string(import->modules) + " modules are new");
  return kExitOk;
}

Result<int> sign(const Flags& flags, std::span<const std::string> names) {
  auto baseline = Baseline::open(names[0], Baseline::Access::kWrite);
  if (!baseline) return std::move(baseline.error());
  if (Status status = judge::sign_baseline(*baseline, flags.text("key")); !status.ok())
    return std::move(status.error());
  return kExitOk;
}

Result<int> verify(const Flags& flags, std::span<const std::string> names) {
  auto baseline = Baseline::open(names[0], Baseline::Access::kRead);
  if (!baseline) return std::move(baseline.error());
  if (Status status = baseline->check_pages(); !status.ok()) return std::move(status.error());
  auto state = judge::verify_baseline(*baseline, flags.text("key"));
  if (!state) return std::move(state.error());
  static constexpr const char* kWords[] = {"good", "unsigned", "other-key", "bad"};
  static constexpr const char* kTexts[] = {"the signature is good", "not signed", "signed, but by another key",
                                           "BAD signature: the contents are not those that were signed"};
  const auto index = static_cast<std::size_t>(*state);
  Output output;
  if (flags.has("json")) {
    output.buffer() = line_of(Json{{"type", "verify"}, {"path", base::to_utf8(names[0])}, {"state", kWords[index]}});
  } else {
    base::append_escaped(output.buffer(), names[0]);
    output.buffer() += std::string(": ") + kTexts[index] + "\n";
  }
  if (Status status = output.flush(); !status.ok()) return std::move(status.error());
  return *state == judge::SignatureState::kGood ? kExitOk : kExitFinding;
}

struct Action {
  std::string_view name;
  std::size_t least, most;  // arguments
  const char* needs;        // flag that must be given; nullptr: none
  Result<int> (*run)(const Flags&, std::span<const std::string>);
  const char* usage;
};

constexpr std::size_t kMany = 1 << 20;

constexpr Action kActions[] = {
    {"build", 1, kMany, "output", baseline_build, "build PATH... -o DB, or build --resident FILE... -o DB"},
    {"learn", 0, kMany, "output", baseline_learn, "learn [RECORDING...] -o DB"},
    {"show", 1, 1, nullptr, show, "show DB"},
    {"diff", 2, 2, nullptr, diff, "diff DB DB"},
    {"merge", 1, kMany, "output", merge, "merge DB... -o DB"},
    {"export", 1, 1, nullptr, export_text, "export DB [-o FILE]"},
    {"import", 1, 1, "output", import_text, "import FILE -o DB"},
    {"sign", 1, 1, "key", sign, "sign DB --key PRIVATE.pem"},
    {"verify", 1, 1, "key", verify, "verify DB --key PUBLIC.pem"},
    {"check", 0, kMany, nullptr, baseline_check, "check PATH... [--db DB], or check --process PID [--db DB]"},
};

}  // namespace

Result<int> run_baseline(const Flags& flags) {
  const std::vector<std::string>& arguments = flags.arguments();
  std::string names;
  for (const Action& action : kActions) {
    names += (names.empty() ? "" : ", ") + std::string(action.name);
    if (action.name != arguments.front()) continue;
    const std::span<const std::string> rest(arguments.begin() + 1, arguments.end());
    if (rest.size() < action.least || rest.size() > action.most ||
        (action.needs != nullptr && !flags.has(action.needs)))
      return Error(Code::kBadInput, "usage: gpuwatch baseline " + std::string(action.usage));
    return action.run(flags, rest);
  }
  return Error(Code::kBadInput, "baseline: unknown action '" + arguments.front() + "'; actions are: " + names);
}

}  // namespace gpuwatch::cli
