// SPDX-License-Identifier: Apache-2.0
// ImagePlaces: in which file of a process the image that it loads lies, asked
// live, a moment after the call. A hint: the process may change its mappings
// at any time. It reads /proc/PID/maps and nothing else.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/code_story.h"
#include "model/raw_record.h"
#include "scan/maps.h"

namespace gpuwatch::pipeline {

struct PlaceOfImage {
  model::ImagePlace place = model::ImagePlace::kUnknown;
  std::string path;  // as the process has it
  std::uint64_t inode = 0;
  std::uint64_t offset = 0;  // of the image in the file
  std::uint32_t device = 0;  // (major << 20) | minor
};

class ImagePlaces {
 public:
  explicit ImagePlaces(std::string proc = "/proc") : proc_(std::move(proc)) {}

  // Of a record about an image with bytes; of others, and of a process that is
  // gone, not known.
  PlaceOfImage find(const gpuwatch_rec& head, const gpuwatch_rec_image& image);

 private:
  struct Maps {
    std::vector<scan::Mapping> mappings;
    std::uint64_t read_ns = 0;
  };
  void read(const gpuwatch_rec& head, Maps& maps) const;

  std::string proc_;
  std::map<std::pair<std::uint64_t, std::uint32_t>, Maps> known_;  // by start and process id
};

// The record's payload with the place behind it, as the LD_PRELOAD recorder
// writes it, and the length for its head.
std::vector<std::byte> with_place(const model::RawRecord& record, const PlaceOfImage& place, std::uint32_t& length);

}  // namespace gpuwatch::pipeline
