// SPDX-License-Identifier: Apache-2.0
// repeat IN OUT N [PID START_NS COUNT]: the records of a recording, N times one
// after the other, as if programs had done the same again later; with PID the first
// COUNT, as if that process had done it all. For load and tests; it changes nothing else.
#include <cstdio>
#include <cstdlib>

#include "source/gwcap.h"

int main(int argc, char** argv) {
  using namespace gpuwatch;
  if (argc != 4 && argc != 7) return 2;
  auto first = source::GwcapReader::open(argv[1]);
  if (!first) return 1;
  auto writer = source::GwcapWriter::create(argv[2], first->header(), {.force = true});
  const int times = std::atoi(argv[3]);
  std::uint64_t left = argc == 7 ? std::strtoull(argv[6], nullptr, 10) : ~std::uint64_t{0};
  for (int i = 0; writer.ok() && i < times; ++i) {
    auto reader = source::GwcapReader::open(argv[1]);
    for (;;) {
      auto record = reader->next();
      if (!record) return 1;
      if (!*record || left-- == 0) break;
      model::RawRecord later = **record;
      later.head.time_ns += static_cast<std::uint64_t>(i) * 100'000'000'000u;
      later.head.file_id += static_cast<std::uint64_t>(i) * 1'000'000u;
      if (argc == 7) {
        later.head.tgid = later.head.tid = static_cast<std::uint32_t>(std::strtoul(argv[4], nullptr, 10));
        later.head.start_ns = std::strtoull(argv[5], nullptr, 10);
      }
      if (!writer->append(later).ok()) return 1;
    }
  }
  return writer.ok() && writer->finish({}).ok() ? 0 : 1;
}
