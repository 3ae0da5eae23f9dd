// SPDX-License-Identifier: Apache-2.0
// `gpuwatch cgroup`: what cgroup paths say, given as arguments or as the lines
// of a /proc/PID/cgroup file. It looks at the text only: no path is opened.
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "attribute/container.h"
#include "attribute/proc_cgroup.h"
#include "base/escape.h"
#include "base/io.h"
#include "cli/commands.h"
#include "cli/output.h"

namespace gpuwatch::cli {

using attribute::CgroupFacts;
using attribute::Container;
using base::Error;
using base::Result;

namespace {

constexpr std::size_t kInputLimit = std::size_t{1} << 20;

using Json = nlohmann::ordered_json;

std::string utf8(std::string_view bytes) {
  return base::to_utf8(bytes);
}

void set_if(Json& json, const char* key, std::string_view value) {
  if (!value.empty()) json[key] = utf8(value);
}

Json container_json(const Container& container) {
  Json json;
  json["runtime"] = container.runtime;
  json["container_id"] = utf8(attribute::unescaped(container.id));
  set_if(json, "pod_uid", attribute::pod_uid_text(container.pod_uid));
  set_if(json, "qos", container.qos);
  set_if(json, "podman_pod_id", container.pod_id);
  return json;
}

std::string to_json(std::string_view path, const CgroupFacts& facts) {
  Json json;
  json["path"] = utf8(path);
  if (const Container* inner = facts.innermost()) json.update(container_json(*inner));
  set_if(json, "pod_uid", attribute::pod_uid_text(facts.pod_uid));
  set_if(json, "qos", facts.qos);
  set_if(json, "unit", facts.unit);
  if (facts.user) json["user"] = *facts.user;
  if (facts.slurm_job) json["slurm_job"] = *facts.slurm_job;
  set_if(json, "slurm_sluid", facts.slurm_sluid);
  set_if(json, "slurm_step", facts.slurm_step);
  set_if(json, "nomad_task", facts.nomad_task);
  set_if(json, "ecs_task", facts.ecs_task);
  if (facts.deleted) json["deleted"] = true;
  for (std::size_t i = 0; i < facts.depth; ++i) json["chain"].push_back(container_json(facts.chain[i]));
  if (facts.chain_cut) json["chain_cut"] = true;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

void say_if(std::string& out, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  if (!out.empty()) out += ' ';
  out += name;
  if (!name.empty()) out += ' ';
  base::append_escaped(out, value);
}

std::string to_text(const CgroupFacts& facts) {
  if (facts.unknown()) return "unknown\n";
  std::string out;
  for (std::size_t i = 0; i < facts.depth; ++i) {
    say_if(out, i == 0 ? "" : ">", facts.chain[i].runtime);
    out += ':';
    base::append_escaped(out, attribute::unescaped(facts.chain[i].id));
    if (i + 2 == attribute::kMaxChain && facts.chain_cut) out += " > ...";
  }
  say_if(out, "pod", attribute::pod_uid_text(facts.pod_uid));
  say_if(out, "qos", facts.qos);
  if (facts.depth != 0) say_if(out, "podman-pod", facts.innermost()->pod_id);
  if (facts.slurm_job) say_if(out, "slurm-job", std::to_string(*facts.slurm_job));
  say_if(out, "slurm-job", facts.slurm_sluid);
  say_if(out, "step", facts.slurm_step);
  say_if(out, "task", facts.nomad_task);
  say_if(out, "ecs-task", facts.ecs_task);
  if (facts.user) say_if(out, "user", std::to_string(*facts.user));
  say_if(out, "unit", facts.unit);
  if (facts.deleted) out += " (deleted)";
  return out + "\n";
}

class Printer {
 public:
  explicit Printer(bool json) : json_(json) {}

  void path(std::string_view path) { print(path, attribute::parse_cgroup(path)); }

  // A line as /proc/PID/cgroup has it is as good as its path.
  void argument(std::string_view text) {
    const auto line = attribute::parse_cgroup_line(text);
    path(line ? line->path : text);
  }

  // Lines of a /proc/PID/cgroup file are one process; other lines are a path each.
  void input(std::string_view text) {
    if (text.empty()) print({}, {});
    if (const auto chosen = attribute::parse_proc_cgroup(text)) print(chosen->line.path, chosen->facts);
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      const std::string_view line = text.substr(0, end);
      text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
      if (!line.empty() && !attribute::parse_cgroup_line(line)) path(line);
    }
  }

  base::Status finish() { return output_.flush(); }

 private:
  void print(std::string_view path, const CgroupFacts& facts) {
    output_.buffer() += json_ ? to_json(path, facts) : to_text(facts);
  }

  bool json_;
  Output output_;
};

Result<std::string> read_input() {
  std::string text;
  char chunk[4096];
  for (;;) {
    const ssize_t got = ::read(STDIN_FILENO, chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error::from_errno("standard input");
    if (got == 0) return text;
    text.append(chunk, static_cast<std::size_t>(got));
    if (text.size() > kInputLimit)
      return Error(base::Code::kLimit, "standard input: more than 1 MiB; give the lines of one /proc/PID/cgroup file");
  }
}

}  // namespace

Result<int> run_cgroup(const Flags& flags) {
  Printer printer(flags.has("json"));
  for (const std::string& argument : flags.arguments()) {
    if (argument != "-") {
      printer.argument(argument);
      continue;
    }
    auto text = read_input();
    if (!text) return std::move(text.error());
    printer.input(*text);
  }
  if (base::Status status = printer.finish(); !status.ok()) return std::move(status.error());
  return kExitOk;
}

}  // namespace gpuwatch::cli
