// SPDX-License-Identifier: Apache-2.0
// CodeWatch: an IMAGE record and the bytes behind it become a load: where the
// code came from, and the fingerprints of the modules in it. It judges nothing.
//
//   auto load = CodeWatch::read(record);      the record alone
//   fetch(*load, source)                      while its batch is current: quick
//   hash(*load)                               any thread, one at a time: slow
#pragma once

#include <array>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "identify/identify.h"
#include "model/code_story.h"
#include "model/fingerprint.h"
#include "model/raw_record.h"
#include "source/source.h"

namespace gpuwatch::pipeline {

struct CodeModule {
  model::ModulePrint print;
  std::string identifier;  // what the compiler called it; mostly empty
  std::string error;       // its bytes are damaged: the fingerprint is not to be used
  std::uint64_t container_offset = 0;
  std::uint32_t entry = 0;
};

// Why the bytes of a load were not seen, as counted.
enum class LoadGap : std::uint8_t { kNone, kNotCaptured, kNotKept, kFileGone, kQueueFull, kDamaged, kStopped };
inline constexpr std::size_t kLoadGaps = 7;
std::string_view load_gap_words(LoadGap gap);

struct CodeLoad {
  gpuwatch_rec head{};
  gpuwatch_rec_image image{};
  std::string symbol;  // of the loader that was called
  std::string path;    // that the loader was given
  std::string file;    // that the image lies in, or the path; empty: none
  model::ImagePlace place = model::ImagePlace::kUnknown;
  source::ImageBytes bytes;
  bool read_file = false;  // live, a path: hash() reads the file
  std::vector<CodeModule> modules;
  LoadGap gap = LoadGap::kNone;
  std::string problem;  // the same in words; empty: none
};

class CodeWatch {
 public:
  explicit CodeWatch(identify::Options options) : identifier_(std::move(options)) {}

  // Nothing of other records, and of calls without an image.
  static std::optional<CodeLoad> read(const model::RawRecord& record);

  // Takes the bytes from the source; without them the load says why. `live`:
  // the process may still be there, and with it the file a path names.
  static void fetch(CodeLoad& load, source::Source& source, bool live);

  // Starts the process that hashes, so that the first load need not wait for it.
  // Trouble is not told: the first load will have the same.
  void warm_up();
  // Fills in the modules, and lets the bytes go.
  void hash(CodeLoad& load);

 private:
  struct Known {
    std::vector<CodeModule> modules;
    std::string problem;
  };
  Known identify(const std::string& name, std::span<const std::byte> bytes);

  identify::Identifier identifier_;
  // Programs load the same image again and again.
  std::unordered_map<std::string, Known> known_;
  std::deque<std::string> order_;
};

}  // namespace gpuwatch::pipeline
