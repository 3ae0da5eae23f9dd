// SPDX-License-Identifier: Apache-2.0
// Workload: records of real recordings, repeated with times and sequence
// numbers that go on, as one .gwcap file and as plain bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "source/gwcap.h"

namespace gpuwatch::bench {

struct Workload {
  std::vector<std::byte> raw;  // all records, back to back
  std::uint64_t records = 0;
};

// Reads the recordings and repeats them until `records` are reached.
base::Result<Workload> make_workload(const std::vector<std::string>& recordings, std::uint64_t records);

base::Status write_file(const Workload& workload, const std::string& path, const source::GwcapOptions& options);

// The compressed blocks of a file, without their headers.
struct Frame {
  std::vector<std::byte> stored;
  std::uint32_t packed_bytes = 0;
};
std::vector<Frame> frames_of(const std::string& path);

}  // namespace gpuwatch::bench
