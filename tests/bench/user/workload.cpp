// SPDX-License-Identifier: Apache-2.0
#include "workload.h"

#include <cstring>
#include <fstream>
#include <iterator>

namespace gpuwatch::bench {

base::Result<Workload> make_workload(const std::vector<std::string>& recordings, std::uint64_t records) {
  std::vector<std::byte> once;
  for (const std::string& path : recordings) {
    auto reader = source::GwcapReader::open(path);
    if (!reader) return std::move(reader.error());
    for (;;) {
      auto record = reader->next();
      if (!record) return std::move(record.error());
      if (!record->has_value()) break;
      const auto* head = reinterpret_cast<const std::byte*>(&(*record)->head);
      once.insert(once.end(), head, head + sizeof(gpuwatch_rec));
      once.insert(once.end(), (*record)->payload.begin(), (*record)->payload.end());
    }
  }
  if (once.empty()) return base::Error(base::Code::kBadInput, "the recordings hold no records");
  Workload workload;
  std::uint64_t time_ns = 0;
  while (workload.records < records) {
    for (std::size_t at = 0; at < once.size() && workload.records < records;) {
      const auto parsed = model::parse_record(model::Bytes(once).subspan(at));
      gpuwatch_rec head = parsed->head;
      // A call every few microseconds, unlike any before: what makes the
      // header's fields hard to compress in real life stays so here.
      time_ns += 2000 + (workload.records * 2654435761u) % 5000;
      head.time_ns = time_ns;
      head.seq = workload.records++;
      const auto* bytes = reinterpret_cast<const std::byte*>(&head);
      workload.raw.insert(workload.raw.end(), bytes, bytes + sizeof head);
      workload.raw.insert(workload.raw.end(), parsed->payload.begin(), parsed->payload.end());
      at += head.len;
    }
  }
  return workload;
}

base::Status write_file(const Workload& workload, const std::string& path, const source::GwcapOptions& options) {
  source::GwcapHeader header;
  header.source = "synth";
  header.driver_version = "580.159.04";
  auto writer = source::GwcapWriter::create(path, header, options);
  if (!writer) return std::move(writer.error());
  for (std::size_t at = 0; at < workload.raw.size();) {
    const auto record = model::parse_record(model::Bytes(workload.raw).subspan(at));
    if (base::Status status = writer->append(*record); !status.ok()) return status;
    at += record->head.len;
  }
  return writer->finish({});
}

std::vector<Frame> frames_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string file{std::istreambuf_iterator<char>(in), {}};
  std::vector<Frame> frames;
  source::FilePreamble preamble;
  std::memcpy(&preamble, file.data(), sizeof preamble);
  std::size_t at = sizeof preamble + preamble.header_bytes;
  while (file.size() - at >= sizeof(source::BlockHeader)) {
    source::BlockHeader head;
    std::memcpy(&head, file.data() + at, sizeof head);
    at += sizeof head;
    if (head.kind == static_cast<std::uint32_t>(source::BlockKind::kDelta)) {
      const auto* from = reinterpret_cast<const std::byte*>(file.data() + at);
      frames.push_back({{from, from + head.stored_bytes}, head.packed_bytes});
    }
    at += head.stored_bytes;
  }
  return frames;
}

}  // namespace gpuwatch::bench
