// SPDX-License-Identifier: Apache-2.0
// Helpers of the identify tests: sample files, containers made from nothing,
// the whole way from bytes to modules in this process.
#pragma once

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "identify/hash_images.h"
#include "identify/scan.h"
#include "unit/support.h"

namespace gpuwatch::test {

// Identifiers of images that make the worker of this program fail.
inline constexpr char kCrash[] = "please-crash.cu";
inline constexpr char kHang[] = "please-hang.cu";
inline constexpr char kEatMemory[] = "please-eat-memory.cu";
inline constexpr char kCallHome[] = "please-call-home.cu";
inline constexpr char kMakeCode[] = "please-make-code.cu";

inline std::string data_path(const std::string& name) {
  return std::string(FATBIN_DATA) + "/" + name;
}
inline std::string sample(const std::string& name) {
  return slurp(data_path(name));
}
inline nlohmann::json sample_json(const std::string& name) {
  return nlohmann::json::parse(slurp(data_path(name)));
}

struct Found {
  identify::Scan scan;
  std::vector<identify::Digest> stored;
  std::vector<identify::Module> modules;
};

inline Found identify_here(const std::string& bytes, const identify::Limits& limits = {},
                           identify::HashBatch::Engine engine = identify::HashBatch::Engine::kBest) {
  const identify::MemorySource source(identify::as_bytes(bytes));
  Found found;
  found.scan = identify::scan(source, limits);
  identify::ImageHasher hasher(limits, engine);
  found.stored = hasher.stored(source, found.scan.images);
  found.modules = hasher.modules(source, found.scan.images);
  return found;
}

template <typename T>
void put(std::string& out, std::size_t at, T value) {
  std::memcpy(out.data() + at, &value, sizeof value);
}

struct EntrySpec {
  std::uint16_t kind = 2;
  std::string payload = {};
  std::string identifier = {};
  std::uint64_t flags = 0x11;
  std::uint32_t compressed = 0;
  std::uint64_t inflated = 0;
  std::uint32_t sm = 80;
};

inline std::string make_entry(const EntrySpec& spec) {
  std::string head(64, '\0');
  std::string name = spec.identifier;
  while (name.size() % 8 != 0) name += '\0';
  std::string payload = spec.payload;
  while (payload.size() % 8 != 0) payload += '\0';
  put<std::uint16_t>(head, 0, spec.kind);
  put<std::uint16_t>(head, 2, 0x0101);
  put<std::uint32_t>(head, 4, static_cast<std::uint32_t>(64 + name.size()));
  put<std::uint64_t>(head, 8, payload.size());
  put<std::uint32_t>(head, 16, spec.compressed);
  put<std::uint32_t>(head, 28, spec.sm);
  if (!spec.identifier.empty()) {
    put<std::uint32_t>(head, 32, 64);
    put<std::uint32_t>(head, 36, static_cast<std::uint32_t>(spec.identifier.size()));
  }
  put<std::uint64_t>(head, 40, spec.flags);
  put<std::uint64_t>(head, 56, spec.inflated);
  return head + name + payload;
}

inline std::string make_container(const std::vector<EntrySpec>& entries) {
  std::string body;
  for (const EntrySpec& entry : entries) body += make_entry(entry);
  std::string head(16, '\0');
  put<std::uint64_t>(head, 0, identify::kContainerKey);
  put<std::uint64_t>(head, 8, body.size());
  return head + body;
}

inline std::string make_ptx(const std::string& name = "k") {
  return ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry " + name + "() { ret; }\n";
}

}  // namespace gpuwatch::test
