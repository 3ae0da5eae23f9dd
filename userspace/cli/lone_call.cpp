// SPDX-License-Identifier: Apache-2.0
#include "cli/lone_call.h"

#include <array>
#include <string>

#include "cli/commands.h"
#include "cli/one_call.h"
#include "cli/output.h"
#include "decode/decoder.h"
#include "decode/describe.h"
#include "decode/driver_seen.h"
#include "publish/fields.h"
#include "source/host_info.h"

namespace gpuwatch::cli {

using base::Code;
using base::Error;
using base::Result;

namespace {

constexpr std::array<const char*, 7> kFlags = {"device", "request", "arg", "out", "params", "params-out", "ret"};

std::optional<std::string> text_of(const Flags& flags, const char* name) {
  if (!flags.has(name)) return std::nullopt;
  return flags.text(name);
}

// As NVIDIA writes them: 615.15.00.
std::string version_text(const model::DriverVersion& version) {
  if (!version.known()) return {};
  const auto padded = [](std::uint32_t number) { return (number < 10 ? ".0" : ".") + std::to_string(number); };
  return std::to_string(version.major) + padded(version.minor) + padded(version.patch);
}

}  // namespace

bool is_lone_call(const Flags& flags) {
  for (const char* name : kFlags)
    if (flags.has(name)) return true;
  return false;
}

Result<model::DriverVersion> driver_from_flag(const std::string& text) {
  if (const auto version = model::parse_driver_version(text)) return *version;
  return Error(Code::kBadInput,
               "--driver: '" + text + "' is no driver version; give it as nvidia-smi prints it, as in 580.159.04");
}

Result<int> decode_lone_call(const Flags& flags, std::optional<model::DriverVersion> driver) {
  if (!flags.arguments().empty())
    return Error(Code::kBadInput, "a recording and flags of one call do not go together; leave out '" +
                                      flags.arguments().front() + "' or --device and the like");
  for (const char* name : {"device", "request"})
    if (!flags.has(name))
      return Error(Code::kBadInput,
                   std::string("--") + name + " is missing; one call wants --device, --request and --arg");
  OneCallTexts texts;
  texts.device = flags.text("device");
  texts.request = flags.text("request");
  texts.arg = text_of(flags, "arg");
  texts.out = text_of(flags, "out");
  texts.params = text_of(flags, "params");
  texts.params_out = text_of(flags, "params-out");
  texts.ret = flags.text("ret");
  const auto made = make_one_call(texts);
  if (!made) return Error(made.error());
  const auto record = model::parse_record(made.value().record);
  if (!record) return Error(Code::kBadInput, "the call makes no record");

  publish::LoneCall lone;
  lone.driver_from = "flag";
  if (!driver) {
    driver = decode::driver_seen(decode::Decoder().decode(*record));
    lone.driver_from = "call";
  }
  if (!driver) {
    driver = model::parse_driver_version(source::driver_version());
    lone.driver_from = "proc";
  }
  if (!driver) {
    driver.emplace();
    lone.driver_from = "newest";
  }
  const decode::Decoder decoder(*driver);
  decode::Describer describer(*driver);
  const model::Call call = decoder.decode(*record);
  const std::string version = flags.has("driver") ? flags.text("driver") : version_text(*driver);
  lone.driver = version;
  lone.branch = decoder.branch();
  lone.inherited = decoder.inherited();
  lone.outcome_known = made.value().outcome_known;

  Output output;
  if (flags.has("json")) {
    publish::append_json_lone_call(output.buffer(), lone, call, describer.describe(call));
  } else {
    publish::TextOptions options;
    options.colour = wants_colour();
    publish::append_lone_call(output.buffer(), lone, call, describer.describe(call), options);
    if (!driver->known())
      say("no driver version given and none is loaded: tables of the newest branch, " + std::string(lone.branch) +
          "; name yours with --driver");
    else if (lone.inherited)
      say("driver " + version + ": tables of branch " + std::string(lone.branch) +
          ", inherited; names and fields are likely, not verified");
  }
  if (base::Status status = output.flush(); !status.ok()) return std::move(status.error());
  return kExitOk;
}

}  // namespace gpuwatch::cli
