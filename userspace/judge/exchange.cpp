// SPDX-License-Identifier: Apache-2.0
#include "judge/exchange.h"

#include <nlohmann/json.hpp>
#include <set>

#include "judge/sha256.h"

namespace gpuwatch::judge {

using base::Code;
using base::Error;
using base::Result;
using base::Status;
using model::Digest;
using model::KernelPrint;
using nlohmann::json;

namespace {

constexpr std::size_t kBatch = 1000;
constexpr int kDepth = 6;

// Names are bytes, JSON is UTF-8: what is not UTF-8 is written as "\u00XX" of
// each byte behind a mark that no other text begins with.
constexpr std::string_view kLatin = "\x01latin1:";

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const int more = lead < 0x80                   ? 0
                     : lead >= 0xc2 && lead < 0xe0 ? 1
                     : lead >= 0xe0 && lead < 0xf0 ? 2
                     : lead >= 0xf0 && lead < 0xf5 ? 3
                                                   : -1;
    if (more < 0 || text.size() - i <= static_cast<std::size_t>(more)) return false;
    for (int k = 1; k <= more; ++k)
      if ((static_cast<unsigned char>(text[i + static_cast<std::size_t>(k)]) & 0xc0) != 0x80) return false;
    const auto second = more > 0 ? static_cast<unsigned char>(text[i + 1]) : 0;
    if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) || (lead == 0xf0 && second < 0x90) ||
        (lead == 0xf4 && second > 0x8f))
      return false;
    i += static_cast<std::size_t>(more) + 1;
  }
  return true;
}

std::string to_text(std::string_view bytes) {
  if (is_utf8(bytes) && !bytes.starts_with(kLatin[0])) return std::string(bytes);
  std::string out(kLatin);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      out += c;
    } else {
      out += static_cast<char>(0xc0 | byte >> 6);
      out += static_cast<char>(0x80 | (byte & 0x3f));
    }
  }
  return out;
}

std::optional<std::string> from_text(std::string_view text) {
  if (!text.starts_with(kLatin[0])) return std::string(text);
  if (!text.starts_with(kLatin)) return std::nullopt;
  text.remove_prefix(kLatin.size());
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x80) {
      out += text[i];
    } else if ((byte == 0xc2 || byte == 0xc3) && i + 1 < text.size()) {
      out += static_cast<char>((byte & 3) << 6 | (static_cast<unsigned char>(text[++i]) & 0x3f));
    } else {
      return std::nullopt;
    }
  }
  // One value has one form.
  return to_text(out).starts_with(kLatin) ? std::optional(out) : std::nullopt;
}

// Reads the members of one object; remembers the first thing that is wrong.
class Members {
 public:
  Members(const json& object, std::string place, const ExchangeLimits& limits)
      : object_(object), place_(std::move(place)), limits_(limits) {
    if (!object.is_object()) fail("not an object");
  }

  std::string text(const char* key) {
    const json* value = take(key);
    if (value == nullptr) return {};
    if (!value->is_string()) return fail(std::string(key) + ": not a string"), std::string();
    auto bytes = from_text(value->get_ref<const std::string&>());
    if (!bytes) return fail(std::string(key) + ": text that is not written as it must be"), std::string();
    if (bytes->size() > limits_.text_bytes)
      return fail(std::string(key) + ": over " + std::to_string(limits_.text_bytes) + " bytes"), std::string();
    return std::move(*bytes);
  }

  std::uint64_t number(const char* key, std::uint64_t max) {
    const json* value = take(key);
    if (value == nullptr) return 0;
    if (!value->is_number_unsigned() || value->get<std::uint64_t>() > max)
      return fail(std::string(key) + ": not a whole number of at most " + std::to_string(max)), 0;
    return value->get<std::uint64_t>();
  }

  std::optional<Digest> digest(const char* key, bool required) {
    if (!required && !object_.contains(key)) return std::nullopt;
    const json* value = take(key);
    if (value == nullptr) return std::nullopt;
    auto digest = value->is_string() ? model::digest_of_hex(value->get_ref<const std::string&>()) : std::nullopt;
    if (!digest) fail(std::string(key) + ": not 64 lower-case hexadecimal digits");
    return digest;
  }

  const json* array(const char* key, std::size_t max) {
    const json* value = take(key);
    if (value != nullptr && (!value->is_array() || value->size() > max))
      return fail(std::string(key) + ": not an array of at most " + std::to_string(max)), nullptr;
    return value;
  }

  bool boolean(const char* key) {
    const json* value = take(key);
    if (value == nullptr) return false;
    if (!value->is_boolean()) return fail(std::string(key) + ": not true or false"), false;
    return value->get<bool>();
  }

  // Nothing may be left over: a misspelt key must not pass as absent.
  Status done() {
    if (!error_ && taken_ != object_.size()) {
      for (const auto& [key, value] : object_.items())
        if (!seen_.contains(key)) fail("unknown key '" + key.substr(0, 60) + "'");
    }
    return error_ ? Status(Error(Code::kBadInput, *error_)) : Status();
  }

  void fail(const std::string& what) {
    if (!error_) error_ = place_ + ": " + what;
  }

 private:
  const json* take(const char* key) {
    if (error_) return nullptr;
    const auto at = object_.find(key);
    if (at == object_.end()) {
      fail(std::string("lacks ") + key);
      return nullptr;
    }
    if (seen_.insert(key).second) ++taken_;
    return &*at;
  }

  const json& object_;
  std::string place_;
  const ExchangeLimits& limits_;
  std::set<std::string, std::less<>> seen_;
  std::size_t taken_ = 0;
  std::optional<std::string> error_;
};

// No exceptions, and no nesting that would exhaust the stack.
Result<json> parse_line(std::string_view line, const std::string& place) {
  bool too_deep = false, doubled = false;
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int depth, json::parse_event_t event, json& value) {
    if (depth > kDepth) too_deep = true;
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end && !keys.empty()) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.empty() && !keys.back().insert(value.get<std::string>()).second)
      doubled = true;
    return !too_deep;
  };
  json value = json::parse(line, watch, false);
  if (too_deep) return Error(Code::kLimit, place + ": nested deeper than a baseline is");
  if (value.is_discarded()) return Error(Code::kBadInput, place + ": not JSON");
  if (doubled) return Error(Code::kBadInput, place + ": a key is given twice");
  return value;
}

constexpr std::uint64_t kU32 = 0xffffffffu;
constexpr std::uint64_t kI64 = 0x7fffffffffffffffu;

std::optional<model::CodeKind> kind_from(std::string_view name) {
  for (std::size_t i = 0; i < model::kCodeKinds; ++i)
    if (model::code_kind_name(static_cast<model::CodeKind>(i)) == name) return static_cast<model::CodeKind>(i);
  return std::nullopt;
}

Result<KernelPrint> parse_kernel(const json& value, const std::string& place, const ExchangeLimits& limits) {
  KernelPrint kernel;
  Members members(value, place, limits);
  kernel.name = members.text("name");
  kernel.entry = members.boolean("entry");
  kernel.k = members.digest("k", true).value_or(Digest{});
  kernel.t = members.digest("t", true).value_or(Digest{});
  kernel.code_bytes = members.number("code_bytes", kI64);
  kernel.shared_bytes = members.number("shared_bytes", kI64);
  kernel.registers = static_cast<std::uint32_t>(members.number("registers", kU32));
  kernel.barriers = static_cast<std::uint32_t>(members.number("barriers", kU32));
  if (Status status = members.done(); !status.ok()) return std::move(status.error());
  return kernel;
}

Result<Source> parse_source(const json& value, const std::string& place, const ExchangeLimits& limits) {
  Source source;
  Members members(value, place, limits);
  source.path = members.text("path");
  source.manager = members.text("manager");
  source.package = members.text("package");
  source.version = members.text("version");
  source.label = members.text("label");
  source.added_unix = static_cast<std::int64_t>(members.number("added_unix", kI64));
  source.container_offset = members.number("container_offset", kI64);
  source.entry = static_cast<std::uint32_t>(members.number("entry", kU32));
  if (Status status = members.done(); !status.ok()) return std::move(status.error());
  return source;
}

Result<Resident> parse_resident(const json& value, const std::string& place, const ExchangeLimits& limits) {
  Resident resident;
  Members members(value, place, limits);
  resident.name = members.text("name");
  resident.driver = members.text("driver");
  resident.sm = static_cast<std::uint32_t>(members.number("sm", 10'000));
  resident.form = members.digest("form", true).value_or(Digest{});
  resident.bytes = members.number("bytes", kI64);
  resident.k = members.digest("k", false);
  resident.t = members.digest("t", false);
  if (Status status = members.done(); !status.ok()) return std::move(status.error());
  return resident;
}

Result<StoredSignature> parse_signature(const json& value, const std::string& place) {
  const ExchangeLimits limits;
  Members outer(value, place, limits);
  const json* inner = value.is_object() && value.contains("signature") ? &value["signature"] : nullptr;
  StoredSignature signature;
  static const json kNothing = json::object();
  Members members(inner == nullptr ? kNothing : *inner, place, limits);
  if (members.text("algorithm") != "ed25519") members.fail("signature: the algorithm must be ed25519");
  signature.public_key = members.text("public_key");
  signature.value = members.text("value");
  if (Status status = members.done(); !status.ok()) return std::move(status.error());
  if (value.size() != 1) return Error(Code::kBadInput, place + ": a signature stands alone");
  return signature;
}

}  // namespace

std::string head_line(const BaselineInfo& info) {
  return json{{"gpuwatch_baseline", kExchangeVersion},
              {"stance", stance_name(info.stance)},
              {"label", to_text(info.label)},
              {"created_unix", info.created_unix}}
      .dump();
}

// nlohmann's objects are sorted by key, which makes the text canonical.
std::string entry_line(const Entry& entry) {
  const model::ModulePrint& module = entry.module;
  json out{{"r", model::hex_of(module.r)},
           {"kind", model::code_kind_name(module.kind)},
           {"origin", module.origin == model::CodeOrigin::kFile ? "file" : "memory"},
           {"sm", module.sm},
           {"sm_suffix", module.sm_suffix == 0 ? std::string() : std::string(1, module.sm_suffix)},
           {"bytes", module.bytes},
           {"kernels", json::array()},
           {"sources", json::array()}};
  if (module.m) out["m"] = model::hex_of(*module.m);
  if (module.d) out["d"] = model::hex_of(*module.d);
  if (module.p) out["p"] = model::hex_of(*module.p);
  for (const KernelPrint& kernel : module.kernels)
    out["kernels"].push_back({{"name", to_text(kernel.name)},
                              {"entry", kernel.entry},
                              {"k", model::hex_of(kernel.k)},
                              {"t", model::hex_of(kernel.t)},
                              {"code_bytes", kernel.code_bytes},
                              {"shared_bytes", kernel.shared_bytes},
                              {"registers", kernel.registers},
                              {"barriers", kernel.barriers}});
  for (const Source& source : entry.sources)
    out["sources"].push_back({{"path", to_text(source.path)},
                              {"manager", to_text(source.manager)},
                              {"package", to_text(source.package)},
                              {"version", to_text(source.version)},
                              {"label", to_text(source.label)},
                              {"added_unix", source.added_unix},
                              {"container_offset", source.container_offset},
                              {"entry", source.entry}});
  // Left out where there are none: what was signed without them stays as it was.
  for (const Resident& resident : entry.residents) {
    json one{{"name", to_text(resident.name)},
             {"driver", to_text(resident.driver)},
             {"sm", resident.sm},
             {"form", model::hex_of(resident.form)},
             {"bytes", resident.bytes}};
    if (resident.k) one["k"] = model::hex_of(*resident.k);
    if (resident.t) one["t"] = model::hex_of(*resident.t);
    out["residents"].push_back(std::move(one));
  }
  return out.dump();
}

Result<BaselineInfo> parse_head(std::string_view line, const std::string& place) {
  auto value = parse_line(line, place);
  if (!value) return std::move(value.error());
  if (!value->is_object() || !value->contains("gpuwatch_baseline"))
    return Error(Code::kBadInput, place + ": not an exported baseline (no \"gpuwatch_baseline\")");
  const ExchangeLimits limits;
  Members members(*value, place, limits);
  const std::uint64_t version = members.number("gpuwatch_baseline", kU32);
  BaselineInfo info;
  const std::string stance = members.text("stance");
  info.label = members.text("label");
  info.created_unix = static_cast<std::int64_t>(members.number("created_unix", kI64));
  if (stance != "known" && stance != "denied") members.fail("stance: must be known or denied");
  info.stance = stance == "denied" ? Stance::kDenied : Stance::kKnown;
  Status status = members.done();
  if (version != kExchangeVersion && version != 0)
    return Error(Code::kUnsupported, place + ": form " + std::to_string(version) +
                                         " of exported baselines, this program reads " +
                                         std::to_string(kExchangeVersion));
  if (!status.ok()) return std::move(status.error());
  return info;
}

Result<Entry> parse_entry(std::string_view line, const std::string& place, const ExchangeLimits& limits) {
  auto value = parse_line(line, place);
  if (!value) return std::move(value.error());
  Members members(*value, place, limits);
  Entry entry;
  model::ModulePrint& module = entry.module;
  module.r = members.digest("r", true).value_or(Digest{});
  module.m = members.digest("m", false);
  module.d = members.digest("d", false);
  module.p = members.digest("p", false);
  const auto kind = kind_from(members.text("kind"));
  const std::string origin = members.text("origin");
  module.sm = static_cast<std::uint32_t>(members.number("sm", 10'000));
  const std::string suffix = members.text("sm_suffix");
  module.bytes = members.number("bytes", kI64);
  const json* kernels = members.array("kernels", limits.kernels_per_module);
  const json* sources = members.array("sources", limits.sources_per_module);
  const json* residents =
      value->contains("residents") ? members.array("residents", limits.residents_per_module) : nullptr;
  if (!kind) members.fail("kind: must be elf, ptx, ltoir or other");
  if (origin != "file" && origin != "memory") members.fail("origin: must be file or memory");
  if (suffix.size() > 1 || (!suffix.empty() && (suffix[0] < 'a' || suffix[0] > 'z')))
    members.fail("sm_suffix: at most one lower-case letter");
  if (Status status = members.done(); !status.ok()) return std::move(status.error());
  module.kind = *kind;
  module.origin = origin == "file" ? model::CodeOrigin::kFile : model::CodeOrigin::kMemory;
  module.sm_suffix = suffix.empty() ? '\0' : suffix[0];
  for (std::size_t i = 0; i < kernels->size(); ++i) {
    auto kernel = parse_kernel((*kernels)[i], place + ": kernel " + std::to_string(i), limits);
    if (!kernel) return std::move(kernel.error());
    module.kernels.push_back(std::move(*kernel));
  }
  for (std::size_t i = 0; i < sources->size(); ++i) {
    auto source = parse_source((*sources)[i], place + ": source " + std::to_string(i), limits);
    if (!source) return std::move(source.error());
    entry.sources.push_back(std::move(*source));
  }
  for (std::size_t i = 0; residents != nullptr && i < residents->size(); ++i) {
    auto resident = parse_resident((*residents)[i], place + ": resident " + std::to_string(i), limits);
    if (!resident) return std::move(resident.error());
    entry.residents.push_back(std::move(*resident));
  }
  return entry;
}

Status export_baseline(Baseline& baseline, const std::function<Status(std::string_view)>& write) {
  if (Status status = write(head_line(baseline.info()) + "\n"); !status.ok()) return status;
  Status status = baseline.for_each([&](const Entry& entry) { return write(entry_line(entry) + "\n"); });
  if (!status.ok()) return status;
  auto signature = baseline.signature();
  if (!signature) return std::move(signature.error());
  if (!*signature) return {};
  const json line{
      {"signature",
       {{"algorithm", "ed25519"}, {"public_key", (*signature)->public_key}, {"value", (*signature)->value}}}};
  return write(line.dump() + "\n");
}

Result<Digest> contents_digest(Baseline& baseline) {
  Sha256 hash;
  hash.add(head_line(baseline.info()) + "\n");
  Status status = baseline.for_each([&](const Entry& entry) {
    hash.add(entry_line(entry) + "\n");
    return Status();
  });
  if (!status.ok()) return std::move(status.error());
  return hash.finish();
}

Result<Import> import_lines(const std::function<Result<std::size_t>(std::span<char>)>& read, const std::string& name,
                            const TakeEntries& take, const ExchangeLimits& limits) {
  Import import;
  std::string pending;
  std::vector<char> chunk(1 << 16);
  std::vector<Entry> batch;
  std::uint64_t number = 0;
  const auto flush = [&]() -> Status {
    if (batch.empty()) return {};
    Status status = take(import.info, batch);
    batch.clear();
    return status;
  };
  const auto take_line = [&](std::string_view line) -> Status {
    const std::string place = name + ":" + std::to_string(++number);
    if (import.signature) return Error(Code::kBadInput, place + ": nothing may follow the signature");
    if (number == 1) {
      auto info = parse_head(line, place);
      if (!info) return std::move(info.error());
      import.info = std::move(*info);
      return {};
    }
    if (line.starts_with("{\"signature\"")) {
      auto value = parse_line(line, place);
      if (!value) return std::move(value.error());
      auto signature = parse_signature(*value, place);
      if (!signature) return std::move(signature.error());
      import.signature = std::move(*signature);
      return {};
    }
    if (++import.modules > limits.modules)
      return Error(Code::kLimit, place + ": more than " + std::to_string(limits.modules) + " modules");
    auto entry = parse_entry(line, place, limits);
    if (!entry) return std::move(entry.error());
    batch.push_back(std::move(*entry));
    return batch.size() >= kBatch ? flush() : Status();
  };
  for (;;) {
    auto got = read(chunk);
    if (!got) return std::move(got.error()).with_context(name);
    pending.append(chunk.data(), *got);
    std::size_t begin = 0;
    for (std::size_t end; (end = pending.find('\n', begin)) != std::string::npos; begin = end + 1)
      if (Status status = take_line(std::string_view(pending).substr(begin, end - begin)); !status.ok())
        return std::move(status.error());
    pending.erase(0, begin);
    if (pending.size() > limits.line_bytes)
      return Error(Code::kLimit, name + ":" + std::to_string(number + 1) + ": a line over " +
                                     std::to_string(limits.line_bytes) + " bytes");
    if (*got == 0) break;
  }
  if (!pending.empty())
    if (Status status = take_line(pending); !status.ok()) return std::move(status.error());
  if (number == 0) return Error(Code::kBadInput, name + ": empty, not an exported baseline");
  if (Status status = flush(); !status.ok()) return std::move(status.error());
  return import;
}

}  // namespace gpuwatch::judge
