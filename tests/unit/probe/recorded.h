// SPDX-License-Identifier: Apache-2.0
// Calls of a recorded CUDA program, up to the end of its context, as a recorder
// that goes on would have them; also made over to another process.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "decode/decoder.h"
#include "preload/shard_format.h"
#include "probe/outside/records.h"
#include "source/gwcap.h"

namespace gpuwatch::test {

using RecordedProcess = std::pair<std::uint32_t, std::uint64_t>;  // number and start
using RecordBytes = std::vector<std::byte>;

inline std::uint64_t tick_ns() {
  return 1'000'000'000u / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
}

// Would this call end one of the contexts that are known?
inline bool ends_context(const model::Call& call, const std::vector<probe::outside::Device>& devices) {
  using model::Field;
  if (call.tag != model::Tag::kFree) return false;
  const probe::outside::Handle object = call.get32(Field::kObject);
  for (const probe::outside::Device& device : devices) {
    if (call.get32(Field::kClient) != device.client) continue;
    if (object == device.client || object == device.object) return true;
    for (const probe::outside::Handle debugger : device.debuggers)
      if (object == debugger) return true;
  }
  return false;
}

inline std::vector<RecordBytes> unfinished(const std::string& from, probe::outside::Identity& process) {
  std::vector<RecordBytes> out;
  auto reader = source::GwcapReader::open(from);
  EXPECT_TRUE(reader.ok());
  if (!reader.ok()) return out;
  const decode::Decoder decoder(model::parse_driver_version(reader->header().driver_version).value());
  std::map<RecordedProcess, probe::outside::DriverFacts> facts;
  for (;;) {
    auto record = reader->next();
    EXPECT_TRUE(record.ok());
    if (!record.ok() || !record->has_value()) break;
    const model::Call call = decoder.decode(**record);
    const gpuwatch_rec& head = call.record.head;
    probe::outside::DriverFacts& mine = facts[{head.tgid, head.start_ns}];
    if (call.tag == model::Tag::kFree && ends_context(call, mine.devices())) break;
    mine.call(call);
    if (call.category == model::Category::kDebugger && call.tag == model::Tag::kAlloc)
      process = {{head.tgid}, head.start_ns / tick_ns()};
    RecordBytes& bytes = out.emplace_back(sizeof head);
    std::memcpy(bytes.data(), &head, sizeof head);
    bytes.insert(bytes.end(), (*record)->payload.begin(), (*record)->payload.end());
  }
  return out;
}

// As if `to` had made what `from` made.
inline void make_over(std::vector<RecordBytes>& records, const probe::outside::Identity& from,
                      const probe::outside::Identity& to) {
  for (RecordBytes& bytes : records) {
    gpuwatch_rec head;
    std::memcpy(&head, bytes.data(), sizeof head);
    if (head.tgid != from.numbers.front()) continue;
    head.tgid = to.numbers.front();
    head.start_ns = to.start_ticks * tick_ns();
    std::memcpy(bytes.data(), &head, sizeof head);
  }
}

inline void write_gwcap(const std::vector<RecordBytes>& records, const std::string& path) {
  source::GwcapHeader header;
  header.driver_version = "580.159.04";
  header.source = "kmod";
  auto writer = source::GwcapWriter::create(path, header, {});
  ASSERT_TRUE(writer.ok());
  for (const RecordBytes& bytes : records) ASSERT_TRUE(writer->append(bytes).ok());
}

// As libgpuwatch-record.so leaves it.
inline void write_shard(const std::vector<RecordBytes>& records, const std::string& path) {
  constexpr std::uint64_t kCookie = 0x1122334455667788;
  gw_shard_head head{};
  head.magic = GW_SHARD_MAGIC;
  head.version = GW_SHARD_VERSION;
  head.head_bytes = GW_SHARD_HEAD_BYTES;
  head.cookie = kCookie;
  std::string text(GW_SHARD_HEAD_BYTES, '\0');
  for (const RecordBytes& bytes : records) {
    gw_shard_entry entry{};
    entry.cookie = kCookie;
    entry.bytes = static_cast<__u32>(sizeof entry + bytes.size());
    entry.kind = GW_ENTRY_RECORD;
    entry.state = GW_ENTRY_COMMITTED;
    text.append(reinterpret_cast<const char*>(&entry), sizeof entry);
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  head.tail = head.max = head.limit = text.size();
  std::memcpy(text.data(), &head, sizeof head);
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace gpuwatch::test
