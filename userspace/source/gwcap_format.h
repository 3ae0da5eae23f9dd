// SPDX-License-Identifier: Apache-2.0
// Bytes of a .gwcap file, and nothing but bytes: layout, limits, and the JSON
// of header and footer. Reader and writer share it.
//
//   FilePreamble (24 bytes)
//   header: JSON, header_bytes long
//   block*:  BlockHeader (32 bytes), stored_bytes bytes
//     kRecords: one zstd frame of raw_bytes bytes, which are `records` whole
//               records (struct gpuwatch_rec and payload) in a row
//     kDelta:   one zstd frame of packed_bytes bytes, which record_delta.h
//               turns into the raw_bytes bytes of kRecords
//     kImage:   ImagePieceHead, then one zstd frame of raw_bytes bytes: a piece
//               of a module image. Pieces come in order, the last one before
//               the block of the record that names the image
//     kFooter:  JSON, not compressed; the last block of a file that was ended
//               in order
//
// All integers are little-endian. A file without footer was cut, or its writer
// was killed: every whole block before the cut is good.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/loss.h"

namespace gpuwatch::source {

inline constexpr std::array<char, 8> kGwcapMagic = {'G', 'W', 'C', 'A', 'P', '\r', '\n', '\x1a'};
inline constexpr std::uint16_t kGwcapVersion = 1;
inline constexpr std::uint32_t kGwcapBlockMagic = 0x4b4c4257;  // "WBLK"

// Bounds a reader insists on, so that a hostile file costs bounded memory.
inline constexpr std::uint32_t kGwcapHeaderMax = 1 << 20;
inline constexpr std::uint32_t kGwcapRawMax = 4 << 20;
inline constexpr std::uint32_t kGwcapStoredMax = 3 * kGwcapRawMax;
inline constexpr int kGwcapWindowLogMax = 22;

struct FilePreamble {
  std::array<char, 8> magic;
  std::uint16_t version;
  std::uint16_t pad;
  std::uint32_t header_bytes;
  std::uint32_t header_crc;    // CRC-32C of the JSON
  std::uint32_t preamble_crc;  // CRC-32C of the 20 bytes before
};
static_assert(sizeof(FilePreamble) == 24);

enum class BlockKind : std::uint32_t { kRecords = 1, kFooter = 2, kDelta = 3, kImage = 4 };

struct BlockHeader {
  std::uint32_t magic;
  std::uint32_t kind;          // BlockKind
  std::uint32_t stored_bytes;  // bytes that follow in the file
  std::uint32_t raw_bytes;     // bytes of the records, or of the JSON
  std::uint32_t records;
  std::uint32_t packed_bytes;  // of kDelta, else 0
  std::uint32_t stored_crc;    // CRC-32C of the stored bytes
  std::uint32_t header_crc;    // CRC-32C of the 28 bytes before
};
static_assert(sizeof(BlockHeader) == 32);

// Bytes of one image, and of one piece before compression.
inline constexpr std::uint64_t kGwcapImageMax = 512ull << 20;
inline constexpr std::uint32_t kGwcapPieceMax = kGwcapRawMax;

struct ImagePieceHead {
  std::uint64_t id;     // gpuwatch_rec_image.id
  std::uint64_t bytes;  // of the whole image
  std::uint64_t at;     // where in it this piece begins
};
static_assert(sizeof(ImagePieceHead) == 24);

struct GwcapGpu {
  std::uint32_t minor = 0;
  std::string pci;     // 0000:41:00.0
  std::string name;    // as the driver calls it
  std::string uuid{};  // "GPU-..."
  bool operator==(const GwcapGpu&) const = default;
};

// Says under which conditions records were made. The host's name is not in it:
// `label` is what the user chose to call the machine, empty by default.
struct GwcapHeader {
  std::uint32_t schema = GPUWATCH_SCHEMA;
  std::uint16_t abi_major = GPUWATCH_ABI_MAJOR;
  std::uint16_t abi_minor = GPUWATCH_ABI_MINOR;
  std::string source;  // "kmod", "preload" or "synth"
  std::string label;
  std::string kernel_release;
  std::string driver_version;  // empty: no driver was there
  std::vector<GwcapGpu> gpus;
  std::int64_t realtime_minus_monotonic_ns = 0;
  std::int64_t boottime_minus_monotonic_ns = 0;
  std::uint64_t started_realtime_ns = 0;
  bool operator==(const GwcapHeader&) const = default;
};

struct GwcapFooter {
  std::uint64_t records = 0;  // filled in by the writer
  std::uint64_t bytes = 0;    // raw bytes of records; filled in by the writer
  model::LossCounts lost;
  bool clean_end = true;           // false: the writer had to stop early
  std::vector<std::string> notes;  // what the recorder could not follow
  bool operator==(const GwcapFooter&) const = default;
};

std::string header_to_json(const GwcapHeader& header);
base::Result<GwcapHeader> header_from_json(std::string_view json);
std::string footer_to_json(const GwcapFooter& footer);
base::Result<GwcapFooter> footer_from_json(std::string_view json);

}  // namespace gpuwatch::source
