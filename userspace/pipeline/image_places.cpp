// SPDX-License-Identifier: Apache-2.0
#include "pipeline/image_places.h"

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/io.h"
#include "preload/shard_format.h"
#include "scan/process_scan.h"

namespace gpuwatch::pipeline {

namespace {

constexpr std::size_t kProcessesMax = 256;
constexpr std::size_t kMapsMax = 16 << 20;
constexpr std::size_t kPathMax = 4096;
// Programs load hundreds of images in a row: their mappings are read once for so
// long, or for less where the image lies in none of them.
constexpr std::uint64_t kFreshNs = 50'000'000;
constexpr std::uint64_t kRetryNs = 5'000'000;

const scan::Mapping* mapping_of(const std::vector<scan::Mapping>& mappings, std::uint64_t address) {
  const auto at = std::upper_bound(mappings.begin(), mappings.end(), address,
                                   [](std::uint64_t value, const scan::Mapping& one) { return value < one.end; });
  return at != mappings.end() && at->begin <= address ? &*at : nullptr;
}

}  // namespace

void ImagePlaces::read(const gpuwatch_rec& head, Maps& maps) const {
  maps.mappings.clear();
  maps.read_ns = base::monotonic_ns();
  // Another process may have the number by now.
  if (!scan::is_process(proc_, head.tgid, head.start_ns)) return;
  auto text = base::read_text_file(proc_ + "/" + std::to_string(head.tgid) + "/maps", kMapsMax);
  if (text) maps.mappings = scan::parse_maps(*text);
}

PlaceOfImage ImagePlaces::find(const gpuwatch_rec& head, const gpuwatch_rec_image& image) {
  PlaceOfImage place;
  if (image.kind == GPUWATCH_IMAGE_PATH || image.kind == GPUWATCH_IMAGE_CALL || image.image_address == 0) return place;
  if (known_.size() >= kProcessesMax) known_.clear();
  const auto [at, fresh] = known_.try_emplace({head.start_ns, head.tgid});
  Maps& maps = at->second;
  const std::uint64_t now = base::monotonic_ns();
  if (fresh || now - maps.read_ns >= kFreshNs) read(head, maps);
  const scan::Mapping* mapping = mapping_of(maps.mappings, image.image_address);
  if (mapping == nullptr && base::monotonic_ns() - maps.read_ns >= kRetryNs) {
    read(head, maps);
    mapping = mapping_of(maps.mappings, image.image_address);
  }
  if (mapping == nullptr) return place;
  if (mapping->inode == 0) {
    place.place = model::ImagePlace::kMemory;
    return place;
  }
  place.place = model::ImagePlace::kFile;
  place.path = mapping->path.substr(0, kPathMax);
  place.inode = mapping->inode;
  place.device = mapping->device;
  place.offset = mapping->offset + (image.image_address - mapping->begin);
  return place;
}

std::vector<std::byte> with_place(const model::RawRecord& record, const PlaceOfImage& place, std::uint32_t& length) {
  std::vector<std::byte> payload(record.payload.begin(), record.payload.end());
  gw_image_file file{};
  file.ino = place.inode;
  file.offset = place.offset;
  file.dev = place.device;
  const std::size_t room = GPUWATCH_REC_MAX - sizeof record.head - payload.size();
  if (room < sizeof file) return payload;
  const std::size_t path = std::min(place.path.size(), (room - sizeof file) & ~std::size_t{7});
  file.path_len = static_cast<__u32>(path);
  const std::size_t at = payload.size();
  payload.resize(at + sizeof file + ((path + 7) & ~std::size_t{7}));
  std::memcpy(payload.data() + at, &file, sizeof file);
  if (path != 0) std::memcpy(payload.data() + at + sizeof file, place.path.data(), path);
  length = static_cast<std::uint32_t>(sizeof record.head + payload.size());
  return payload;
}

}  // namespace gpuwatch::pipeline
