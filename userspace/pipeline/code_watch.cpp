// SPDX-License-Identifier: Apache-2.0
#include "pipeline/code_watch.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <cstring>

#include "base/fd.h"
#include "base/io.h"
#include "judge/sha256.h"
#include "model/definitions.h"
#include "pipeline/code_prints.h"
#include "preload/shard_format.h"

namespace gpuwatch::pipeline {

using model::ImagePlace;

namespace {

constexpr std::size_t kKnownMax = 512;
constexpr std::size_t kKnownModulesMax = 20'000;  // of one image worth keeping
constexpr std::uint64_t kFileMax = 512ull << 20;  // of a file given by path
// Smaller images are copied out of the kernel's store at once: that has a
// budget, and each one costs a descriptor.
constexpr std::size_t kCopiedMax = 1 << 20;

std::string missing_text(const gpuwatch_rec_image& image) {
  if (image.flags & GPUWATCH_IMAGEF_TOO_BIG) return "the image is over the size that is captured";
  if (image.flags & GPUWATCH_IMAGEF_OVER_BUDGET) return "the image was over the budget of all captures";
  if (image.flags & GPUWATCH_IMAGEF_MALFORMED) return "the image has no size that makes sense";
  if (image.flags & GPUWATCH_IMAGEF_FAULT) return "the image's memory could not be read to its end";
  if (image.flags & GPUWATCH_IMAGEF_NO_MEMORY) return "the kernel had no memory left for its bytes";
  if (image.flags & GPUWATCH_IMAGEF_DEADLINE) return "copying its bytes took too long";
  return "its bytes were not captured";
}

void miss(CodeLoad& load, LoadGap gap, std::string problem) {
  load.gap = gap;
  load.problem = std::move(problem);
  load.bytes = {};
}

// The file that a loader was told to open, as the process sees it. By now it
// may be another one.
source::ImageBytes read_path(const CodeLoad& load) {
  const std::string name = "/proc/" + std::to_string(load.head.tgid) + "/root/" + load.path;
  const base::Fd fd(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat st {};
  if (!fd.valid() || ::fstat(fd.get(), &st) != 0 || !S_ISREG(st.st_mode) || st.st_size <= 0 ||
      static_cast<std::uint64_t>(st.st_size) > kFileMax)
    return {};
  std::vector<std::byte> bytes(static_cast<std::size_t>(st.st_size));
  auto got = base::read_full(fd.get(), bytes);
  if (!got.ok()) return {};
  bytes.resize(*got);
  return source::ImageBytes(std::move(bytes));
}

}  // namespace

std::string_view load_gap_words(LoadGap gap) {
  static constexpr std::string_view kWords[kLoadGaps] = {"",
                                                         "not captured by the recorder",
                                                         "not kept, or gone before they could be fetched",
                                                         "of a file that could not be read any more",
                                                         "more at a time than can be hashed",
                                                         "damaged",
                                                         "not hashed before the end"};
  return kWords[static_cast<std::size_t>(gap)];
}

std::optional<CodeLoad> CodeWatch::read(const model::RawRecord& record) {
  const auto image = model::parse_image(record);
  if (!image || image->fixed.kind == GPUWATCH_IMAGE_CALL) return std::nullopt;
  CodeLoad load;
  load.head = record.head;
  load.image = image->fixed;
  load.symbol = image->symbol;
  if (image->fixed.kind == GPUWATCH_IMAGE_PATH) {
    load.path = load.file = image->path();
    load.place = ImagePlace::kFile;
    return load;
  }
  const std::size_t behind = sizeof image->fixed + ((image->fixed.head_len + 7u) & ~std::size_t{7});
  const auto file = model::read_at<gw_image_file>(record.payload, behind);
  if (!file) return load;
  load.place = file->ino == 0 ? ImagePlace::kMemory : ImagePlace::kFile;
  const model::Bytes rest = record.payload.subspan(behind + sizeof *file);
  if (file->path_len <= rest.size()) load.file.assign(reinterpret_cast<const char*>(rest.data()), file->path_len);
  return load;
}

void CodeWatch::fetch(CodeLoad& load, source::Source& source, bool live) {
  const bool is_path = load.image.kind == GPUWATCH_IMAGE_PATH;
  if (load.image.id == 0 && is_path) {
    load.read_file = live;
    if (!live) miss(load, LoadGap::kNotKept, "the file was not kept");
    return;
  }
  if (load.image.id == 0) return miss(load, LoadGap::kNotCaptured, missing_text(load.image));
  auto taken = source.take_image(load.image);
  if (!taken) return miss(load, LoadGap::kNotKept, taken.error().message());
  // Part of an image has another R than the whole.
  if (load.image.copied_bytes < load.image.bytes) return miss(load, LoadGap::kNotCaptured, missing_text(load.image));
  const auto bytes = taken->bytes();
  if (taken->fd() >= 0 && bytes.size() <= kCopiedMax)
    load.bytes = source::ImageBytes(std::vector<std::byte>(bytes.begin(), bytes.end()));
  else
    load.bytes = std::move(*taken);
}

CodeWatch::Known CodeWatch::identify(const std::string& name, std::span<const std::byte> bytes) {
  Known found;
  // Never stopped half way: a part of an image's modules would be told as all.
  PrintSink sink([&](const std::string&, const identify::Entry& entry) {
    CodeModule module;
    module.print = print_of(entry);
    module.identifier = entry.image.identifier;
    module.container_offset = entry.image.container_offset;
    module.entry = entry.image.entry;
    module.error = entry.image.error;
    if (module.error.empty() && !entry.module.errors.empty()) module.error = entry.module.errors.front();
    found.modules.push_back(std::move(module));
  });
  const identify::Bytes raw(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  const base::Status status = identifier_.bytes(name, raw, sink);
  if (!status.ok())
    found.problem = status.error().message();
  else if (sink.error_count() != 0)
    found.problem = sink.errors().front();
  else if (found.modules.empty())
    found.problem = "no GPU code in it";
  return found;
}

void CodeWatch::warm_up() {
  // As many bytes as a file of code has at least: with fewer no process is asked.
  const std::array<std::byte, 64> nothing{};
  (void)identify("", nothing);
}

void CodeWatch::hash(CodeLoad& load) {
  if (load.gap != LoadGap::kNone) return;
  if (load.read_file) {
    load.bytes = read_path(load);
    if (load.bytes.bytes().empty()) return miss(load, LoadGap::kFileGone, "the file cannot be read any more");
  }
  const auto bytes = load.bytes.bytes();
  judge::Sha256 sha;
  sha.add({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const model::Digest digest = sha.finish();
  const std::string key(reinterpret_cast<const char*>(digest.data()), digest.size());
  auto at = known_.find(key);
  if (at == known_.end()) {
    Known found = identify(load.symbol, bytes);
    if (found.modules.size() > kKnownModulesMax || !found.problem.empty()) {
      load.modules = std::move(found.modules);
      if (!found.problem.empty()) miss(load, LoadGap::kDamaged, std::move(found.problem));
    } else {
      if (order_.size() >= kKnownMax) {
        known_.erase(order_.front());
        order_.pop_front();
      }
      order_.push_back(key);
      at = known_.emplace(key, std::move(found)).first;
    }
  }
  if (at != known_.end()) load.modules = at->second.modules;
  if (load.place == ImagePlace::kMemory)
    for (CodeModule& module : load.modules) module.print.origin = model::CodeOrigin::kMemory;
  load.bytes = {};
}

}  // namespace gpuwatch::pipeline
