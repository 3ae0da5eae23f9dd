// SPDX-License-Identifier: Apache-2.0
#include "control/protocol.h"

#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/escape.h"

namespace gpuwatch::control {

using base::Code;
using base::Error;
using base::Result;
using Json = nlohmann::json;

namespace {

constexpr std::array<std::string_view, 4> kVerbs = {"status", "holdings", "dump", "reload"};

// Nesting is checked before the parser builds anything, so that depth costs
// neither stack nor memory.
bool too_deep(std::string_view text) {
  int depth = 0;
  bool quoted = false, escaped = false;
  for (const char c : text) {
    if (quoted) {
      if (escaped)
        escaped = false;
      else if (c == '\\')
        escaped = true;
      else if (c == '"')
        quoted = false;
      continue;
    }
    if (c == '"') quoted = true;
    if (c == '{' || c == '[') {
      if (++depth > kDepthMax) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

Result<Json> parse_object(std::string_view line, std::size_t max_bytes, const char* what) {
  if (line.size() > max_bytes)
    return Error(Code::kLimit, std::string(what) + " has more than " + std::to_string(max_bytes) + " bytes");
  if (too_deep(line))
    return Error(Code::kLimit, std::string(what) + " is nested deeper than " + std::to_string(kDepthMax) + " levels");
  Json json = Json::parse(line, nullptr, false);
  if (json.is_discarded() || !json.is_object())
    return Error(Code::kBadInput, std::string(what) + " is not one JSON object on one line");
  return json;
}

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string_view verb_name(Verb verb) {
  return kVerbs[static_cast<std::size_t>(verb)];
}

Result<Request> parse_request(std::string_view line) {
  auto json = parse_object(line, kRequestMax, "the request");
  if (!json) return std::move(json.error());
  Request request;
  std::optional<Verb> verb;
  for (const auto& [key, value] : json->items()) {
    if (key != "request" && key != "path")
      return Error(Code::kBadInput,
                   "unknown key \"" + base::escaped(key) + "\"; a request has \"request\" and \"path\"");
    if (!value.is_string()) return Error(Code::kBadInput, "\"" + key + "\" wants a string");
    const std::string text = value.get<std::string>();
    if (key == "path") {
      request.path = text;
      continue;
    }
    for (std::size_t i = 0; i < kVerbs.size(); ++i)
      if (text == kVerbs[i]) verb = static_cast<Verb>(i);
    if (!verb)
      return Error(Code::kBadInput,
                   "unknown request \"" + base::escaped(text) + "\"; there are status, holdings, dump and reload");
  }
  if (!verb) return Error(Code::kBadInput, "the request names no \"request\"");
  request.verb = *verb;
  if (!request.path.empty() && request.verb != Verb::kDump)
    return Error(Code::kBadInput, "\"path\" belongs to dump only");
  if (!request.path.empty() && (request.path.front() != '/' || request.path.find('\0') != std::string::npos))
    return Error(Code::kBadInput, "\"path\" wants an absolute path");
  return request;
}

std::string format_request(const Request& request) {
  Json json = {{"request", std::string(verb_name(request.verb))}};
  if (!request.path.empty()) json["path"] = request.path;
  return dumped(json);
}

std::string format_answer(Verb verb, std::string_view body) {
  std::string line = "{\"ok\":true,\"";
  line += verb_name(verb);
  line += "\":";
  line += body;
  line += '}';
  return line;
}

std::string format_refusal(std::string_view why) {
  return dumped({{"ok", false}, {"error", std::string(why)}});
}

Result<std::string> parse_answer(std::string_view line, Verb verb) {
  auto json = parse_object(line, kAnswerMax, "the daemon's answer");
  if (!json) return std::move(json.error());
  const auto ok = json->find("ok");
  if (ok == json->end() || !ok->is_boolean()) return Error(Code::kBadInput, "the daemon's answer lacks \"ok\"");
  if (!ok->get<bool>()) {
    const auto why = json->find("error");
    return Error(Code::kUnsupported, "gpuwatchd: " + (why != json->end() && why->is_string() ? why->get<std::string>()
                                                                                             : std::string("refused")));
  }
  const auto body = json->find(std::string(verb_name(verb)));
  if (body == json->end())
    return Error(Code::kBadInput, "the daemon's answer lacks \"" + std::string(verb_name(verb)) + "\"");
  return dumped(*body);
}

}  // namespace gpuwatch::control
