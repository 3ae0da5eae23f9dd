// SPDX-License-Identifier: Apache-2.0
#include "source/gwcap_format.h"

#include <bit>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/escape.h"

namespace gpuwatch::source {

static_assert(std::endian::native == std::endian::little, "structs are written as they lie in memory");

namespace {

using Json = nlohmann::json;
using base::Code;
using base::Error;
using base::Result;

// Lookups that take a wrong type for absent: the caller decides what must be
// there. nlohmann's own accessors would throw.
template <typename T>
T number_or(const Json& object, const char* key, T fallback) {
  const auto it = object.find(key);
  if (it == object.end()) return fallback;
  if (it->is_number_unsigned()) {
    const auto value = it->get<std::uint64_t>();
    return value <= static_cast<std::uint64_t>(std::numeric_limits<T>::max()) ? static_cast<T>(value) : fallback;
  }
  if (std::numeric_limits<T>::is_signed && it->is_number_integer()) {
    const auto value = it->get<std::int64_t>();
    if (value >= static_cast<std::int64_t>(std::numeric_limits<T>::min())) return static_cast<T>(value);
  }
  return fallback;
}

std::string string_or_empty(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

Result<Json> parse_object(std::string_view text) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object()) return Error(Code::kBadInput, "not a JSON object");
  return json;
}

}  // namespace

std::string header_to_json(const GwcapHeader& header) {
  Json gpus = Json::array();
  for (const GwcapGpu& gpu : header.gpus)
    gpus.push_back({{"minor", gpu.minor},
                    {"pci", base::to_utf8(gpu.pci)},
                    {"name", base::to_utf8(gpu.name)},
                    {"uuid", base::to_utf8(gpu.uuid)}});
  return Json{{"schema", header.schema},
              {"abi_major", header.abi_major},
              {"abi_minor", header.abi_minor},
              {"source", base::to_utf8(header.source)},
              {"label", base::to_utf8(header.label)},
              {"kernel_release", base::to_utf8(header.kernel_release)},
              {"driver_version", base::to_utf8(header.driver_version)},
              {"gpus", gpus},
              {"realtime_minus_monotonic_ns", header.realtime_minus_monotonic_ns},
              {"boottime_minus_monotonic_ns", header.boottime_minus_monotonic_ns},
              {"started_realtime_ns", header.started_realtime_ns}}
      .dump();
}

Result<GwcapHeader> header_from_json(std::string_view text) {
  auto parsed = parse_object(text);
  if (!parsed) return std::move(parsed.error());
  const Json& json = *parsed;
  GwcapHeader header;
  header.schema = number_or<std::uint32_t>(json, "schema", 0);
  if (header.schema == 0) return Error(Code::kBadInput, "no number under \"schema\"");
  header.abi_major = number_or<std::uint16_t>(json, "abi_major", 0);
  header.abi_minor = number_or<std::uint16_t>(json, "abi_minor", 0);
  header.source = string_or_empty(json, "source");
  header.label = string_or_empty(json, "label");
  header.kernel_release = string_or_empty(json, "kernel_release");
  header.driver_version = string_or_empty(json, "driver_version");
  header.realtime_minus_monotonic_ns = number_or<std::int64_t>(json, "realtime_minus_monotonic_ns", 0);
  header.boottime_minus_monotonic_ns = number_or<std::int64_t>(json, "boottime_minus_monotonic_ns", 0);
  header.started_realtime_ns = number_or<std::uint64_t>(json, "started_realtime_ns", 0);
  if (const auto gpus = json.find("gpus"); gpus != json.end() && gpus->is_array())
    for (const Json& gpu : *gpus)
      if (gpu.is_object())
        header.gpus.push_back({number_or<std::uint32_t>(gpu, "minor", 0), string_or_empty(gpu, "pci"),
                               string_or_empty(gpu, "name"), string_or_empty(gpu, "uuid")});
  return header;
}

std::string footer_to_json(const GwcapFooter& footer) {
  Json lost = Json::object();
  for (std::size_t i = 0; i < footer.lost.by_reason.size(); ++i)
    if (const auto name = model::loss_name(i); !name.empty()) lost[std::string(name)] = footer.lost.by_reason[i];
  Json notes = Json::array();
  for (const std::string& note : footer.notes) notes.push_back(base::to_utf8(note));
  return Json{{"records", footer.records},
              {"bytes", footer.bytes},
              {"lost", lost},
              {"clean_end", footer.clean_end},
              {"notes", notes}}
      .dump();
}

Result<GwcapFooter> footer_from_json(std::string_view text) {
  auto parsed = parse_object(text);
  if (!parsed) return std::move(parsed.error());
  const Json& json = *parsed;
  GwcapFooter footer;
  footer.records = number_or<std::uint64_t>(json, "records", 0);
  footer.bytes = number_or<std::uint64_t>(json, "bytes", 0);
  if (const auto lost = json.find("lost"); lost != json.end() && lost->is_object())
    for (std::size_t i = 0; i < footer.lost.by_reason.size(); ++i)
      if (const auto name = model::loss_name(i); !name.empty())
        footer.lost.by_reason[i] = number_or<std::uint64_t>(*lost, std::string(name).c_str(), 0);
  const auto clean = json.find("clean_end");
  footer.clean_end = clean != json.end() && clean->is_boolean() && clean->get<bool>();
  if (const auto notes = json.find("notes"); notes != json.end() && notes->is_array())
    for (const Json& note : *notes)
      if (note.is_string()) footer.notes.push_back(note.get<std::string>());
  return footer;
}

}  // namespace gpuwatch::source
