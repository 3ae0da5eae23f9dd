// SPDX-License-Identifier: Apache-2.0
// Bodies of the story events about GPU code: module.load, module.found,
// process.unverified, code.probed and code.differs. Views into what pipeline/code_story.h keeps: an event is
// printed before its next call. Names and paths are untrusted bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "model/fingerprint.h"
#include "model/verdict.h"

namespace gpuwatch::model {

// One module of an image.
struct ModuleLine {
  CodeKind kind = CodeKind::kOther;
  std::uint32_t sm = 0;
  char sm_suffix = 0;
  std::uint64_t kernels = 0;
  Digest r{};
  std::optional<Digest> m;
  Verdict verdict = Verdict::kUnknown;
};

// Where an image lay.
enum class ImagePlace : std::uint8_t {
  kUnknown,  // the recorder did not tell
  kFile,     // in a file that the process had mapped, or had opened by its path
  kMemory,   // in memory of no file: made at run time, or unpacked
};

struct ModuleBody {
  std::string_view loader;      // function of libcuda; empty of what a scan found
  std::string_view image_kind;  // "fatbin", "elf", "text", "path", "unknown"
  std::string_view name;        // as the compiler called it, else its first kernel
  std::string_view source;      // the file; of what was found in memory the mapping
  ImagePlace place = ImagePlace::kUnknown;
  std::uint64_t bytes = 0;  // of the image
  std::span<const ModuleLine> modules;
  std::size_t deciding = 0;  // the one that the verdict is about
  bool judged = false;       // there was a baseline or a policy
  Verdict verdict = Verdict::kUnknown;
  std::string_view why;
  std::string_view baseline;
  std::string_view known_from;
  bool allowed = false;
  std::string_view problem;  // why modules are missing, or not all were seen
  std::span<const Difference> differences;
};

// A process has channels, and no code of it was seen being loaded.
struct UnverifiedBody {
  std::uint64_t waited_ns = 0;
  std::uint64_t channels = 0;  // at that moment
};

// A process's agent was asked what lies in its GPU memory.
struct ProbedBody {
  std::uint64_t match = 0;  // with those whose relocations were applied
  std::uint64_t differ = 0;
  std::uint64_t not_resident = 0;
  std::uint64_t not_probed = 0;
  std::uint64_t duration_ns = 0;
  std::uint32_t exit_status = 0;  // of gpuwatch-probe
  std::string_view problem;       // why there is no result; empty: there is one
};

// A function in GPU memory that is not what its image calls for.
struct DiffersBody {
  std::string_view kernel;
  std::string_view image;  // where the image lay
  std::string_view reason;
  std::uint64_t bytes = 0;  // of the function
  std::uint64_t first_offset = 0;
  std::uint64_t different_bytes = 0;
};

}  // namespace gpuwatch::model
