// SPDX-License-Identifier: Apache-2.0
#include "probe/outside/records.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "base/escape.h"
#include "base/io.h"
#include "decode/decoder.h"
#include "preload/shards.h"
#include "source/gwcap.h"

namespace gpuwatch::probe::outside {

namespace {

constexpr std::uint64_t kShardsMax = 2ull << 30;

std::string driver_release() {
  auto text = base::read_text_file("/sys/module/nvidia/version", 256);
  return text.ok() ? *text : std::string();
}

class Reader {
 public:
  Reader(const Identity& process, std::string driver, Records& out) : process_(process), out_(out) {
    out_.driver = std::move(driver);
    if (const auto version = model::parse_driver_version(out_.driver)) decoder_.use(*version);
    const long hz = ::sysconf(_SC_CLK_TCK);
    tick_ns_ = 1'000'000'000u / static_cast<std::uint64_t>(hz > 0 ? hz : 100);
  }

  void take(const model::RawRecord& record) {
    const gpuwatch_rec& head = record.head;
    const auto next = next_.try_emplace(head.cpu, head.seq);
    if (head.seq > next.first->second) out_.lost += head.seq - next.first->second;
    next.first->second = head.seq + 1;
    if (std::find(process_.numbers.begin(), process_.numbers.end(), head.tgid) == process_.numbers.end()) return;
    if (head.start_ns / tick_ns_ != process_.start_ticks) {
      other_ = true;
      return;
    }
    ++out_.calls;
    out_.facts.call(decoder_.decode(record));
  }

  Failure end(const std::string& path) const {
    if (out_.calls != 0) return {};
    return {Outcome::kTrouble, base::escaped(path) + (other_ ? ": its calls are of an earlier process of that number"
                                                             : ": it holds no call of this process")};
  }

 private:
  const Identity& process_;
  Records& out_;
  decode::Decoder decoder_;
  std::uint64_t tick_ns_;
  std::map<std::uint32_t, std::uint64_t> next_;  // sequence number, by processor
  bool other_ = false;
};

Failure read_directory(const std::string& path, const Identity& process, Records& out) {
  preload::ShardLimits limits;
  limits.bytes = kShardsMax;
  auto recording = preload::read_shards(path, limits);
  if (!recording.ok()) return {Outcome::kTrouble, recording.error().message()};
  out.recorder = "preload";
  Reader reader(process, driver_release(), out);
  for (model::Bytes rest(recording->bytes); !rest.empty();) {
    const auto record = model::parse_record(rest);
    if (!record) break;
    rest = rest.subspan(record->head.len);
    // It takes a process that lives on for one that was killed, and its files for released.
    if (record->head.type != GPUWATCH_REC_RELEASE) reader.take(*record);
  }
  out.lost = recording->lost();
  return reader.end(path);
}

Failure read_file(const std::string& path, const Identity& process, Records& out) {
  auto file = source::GwcapReader::open(path);
  if (!file.ok()) return {Outcome::kTrouble, file.error().message()};
  out.recorder = file->header().source;
  Reader reader(process, file->header().driver_version, out);
  std::vector<model::RawRecord> batch;
  do {
    if (const base::Status status = file->next_batch(batch); !status.ok()) {
      // It is still being written, or was cut: what is whole was given.
      out.end = status.error().message();
      break;
    }
    for (const model::RawRecord& record : batch) reader.take(record);
  } while (!batch.empty());
  if (const auto& footer = file->footer()) out.lost = footer->lost.total();
  return reader.end(path);
}

}  // namespace

Failure read_records(const std::string& path, const Identity& process, Records& out) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return {Outcome::kTrouble, base::Error::from_errno(path).message()};
  if (S_ISDIR(info.st_mode)) return read_directory(path, process, out);
  if (!S_ISREG(info.st_mode))
    return {Outcome::kTrouble, base::escaped(path) + ": neither a recording (.gwcap) nor a recorder's directory"};
  return read_file(path, process, out);
}

}  // namespace gpuwatch::probe::outside
