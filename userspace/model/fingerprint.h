// SPDX-License-Identifier: Apache-2.0
// Fingerprint: what is known of one GPU module by its hashes: R of the bytes,
// K and T of each kernel, D of the module's data, M of all together. Passive;
// made from what identify finds, compared by judge. Names are untrusted bytes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuwatch::model {

using Digest = std::array<std::uint8_t, 32>;

inline std::string hex_of(const Digest& digest) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(2 * digest.size());
  for (const std::uint8_t byte : digest) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

// Exactly 64 lower-case digits, so that one digest has one form.
inline std::optional<Digest> digest_of_hex(std::string_view text) {
  Digest out{};
  if (text.size() != 2 * out.size()) return std::nullopt;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return std::nullopt;
    const auto value = static_cast<std::uint8_t>(c <= '9' ? c - '0' : c - 'a' + 10);
    out[i / 2] = static_cast<std::uint8_t>(out[i / 2] << 4 | value);
  }
  return out;
}

enum class CodeKind : std::uint8_t { kElf, kPtx, kLtoIr, kOther };
inline constexpr std::size_t kCodeKinds = 4;

constexpr std::string_view code_kind_name(CodeKind kind) {
  constexpr std::string_view kNames[kCodeKinds] = {"elf", "ptx", "ltoir", "other"};
  return kNames[static_cast<std::size_t>(kind)];
}

// Where a module came from, as far as that is evident.
enum class CodeOrigin : std::uint8_t {
  kFile,    // lies in a file
  kMemory,  // made at run time, or unpacked into memory
};

struct KernelPrint {
  std::string name;   // mangled
  bool entry = true;  // false: a function that kernels call
  Digest k{};
  Digest t{};
  std::uint64_t code_bytes = 0;
  std::uint64_t shared_bytes = 0;
  std::uint32_t registers = 0;
  std::uint32_t barriers = 0;
  bool operator==(const KernelPrint&) const = default;
};

struct ModulePrint {
  CodeKind kind = CodeKind::kOther;
  CodeOrigin origin = CodeOrigin::kFile;
  std::uint32_t sm = 0;
  char sm_suffix = 0;  // 'a', 'f' or 0
  std::uint64_t bytes = 0;
  Digest r{};
  std::optional<Digest> m;  // of cubins
  std::optional<Digest> d;
  std::optional<Digest> p;  // of PTX: its normal form
  std::vector<KernelPrint> kernels;
  bool operator==(const ModulePrint&) const = default;
};

}  // namespace gpuwatch::model
