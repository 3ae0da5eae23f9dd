// SPDX-License-Identifier: Apache-2.0
// What is known of GPU code in a file: containers, images in or outside of
// them, and what hashing an image gives. Passive values, in the order of the
// file; every string from the file is untrusted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "identify/digest.h"

namespace gpuwatch::identify {

enum class Kind : std::uint8_t { kElf, kPtx, kLtoIr, kOther };
const char* to_string(Kind kind);  // "elf", "ptx", "ltoir", "other"

// How an image lies in the file.
enum class Compression : std::uint8_t { kNone, kLz4, kZstd };

// One image as its header describes it, before anything is inflated.
struct Image {
  Kind kind = Kind::kOther;
  Compression compression = Compression::kNone;
  bool in_container = false;
  bool opaque = false;         // scrambled LTO-IR, unknown kind: only the stored bytes are hashed
  std::uint32_t entry = 0;     // number within its container
  std::uint32_t sm = 0;        // 90; 0 where only the image itself tells
  char sm_suffix = 0;          // 'a', 'f' or 0
  std::uint16_t raw_kind = 0;  // as in the entry header
  std::uint16_t version_major = 0;
  std::uint16_t version_minor = 0;
  std::uint64_t flags = 0;
  std::uint64_t container_offset = 0;  // in the file; of an image outside of containers its own
  std::uint64_t offset = 0;            // of the stored bytes, in the file
  std::uint64_t stored_bytes = 0;      // padded, as in the file
  std::uint64_t compressed_bytes = 0;  // 0: not compressed
  std::uint64_t bytes = 0;             // inflated, as declared
  std::string identifier;              // source file name, mostly empty
  std::string options;                 // of the compiler, mostly empty
  std::string error;                   // header is wrong: stored bytes are hashed, nothing inflated
};

struct Container {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;  // header and body, cut at the end of the file
  std::uint64_t images = 0;
  // What follows a header that does not fit.
  std::uint64_t unparsed_offset = 0;
  std::uint64_t unparsed_bytes = 0;
  std::string section;  // of the host file, where it has section names
  std::vector<std::string> errors;
};

struct Kernel {
  std::string name;
  bool entry = false;  // false: device function
  Digest k{};
  Digest t{};
  std::uint64_t code_bytes = 0;
  std::uint64_t shared_bytes = 0;
  std::uint32_t registers = 0;
  std::uint32_t barriers = 0;
};

// What hashing an image gives.
struct Module {
  Kind kind = Kind::kOther;
  std::uint32_t sm = 0;
  std::uint8_t abi = 0;      // of a cubin: 7, 8
  bool relocatable = false;  // of a cubin: not linked yet
  bool has_modules = false;  // d and m are set
  std::uint64_t bytes = 0;
  Digest r{};  // of the inflated image; of an opaque one of the stored bytes
  Digest d{};
  Digest m{};
  std::optional<Digest> p;  // of PTX: normal form
  std::vector<Kernel> kernels;
  std::vector<std::string> errors;
};

}  // namespace gpuwatch::identify
