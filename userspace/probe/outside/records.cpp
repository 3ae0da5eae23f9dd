// SPDX-License-Identifier: Apache-2.0
#include "probe/outside/records.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "base/escape.h"
#include "base/io.h"
#include "decode/decoder.h"
#include "probe/agent/sources.h"
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

Failure read_directory(const RecordFiles& files, const Identity& process, Records& out) {
  preload::ShardLimits limits;
  limits.bytes = kShardsMax;
  auto recording = preload::read_shards(files.files, limits);
  if (!recording.ok()) return {Outcome::kTrouble, base::escaped(recording.error().message())};
  out.recorder = "preload";
  Reader reader(process, files.driver, out);
  for (model::Bytes rest(recording->bytes); !rest.empty();) {
    const auto record = model::parse_record(rest);
    if (!record) break;
    rest = rest.subspan(record->head.len);
    // It takes a process that lives on for one that was killed, and its files for released.
    if (record->head.type != GPUWATCH_REC_RELEASE) reader.take(*record);
  }
  out.lost = recording->lost();
  return reader.end(files.path);
}

Failure read_file(const RecordFiles& files, const Identity& process, Records& out) {
  // The place in it is shared by all who have it.
  base::Fd fd(::fcntl(files.files.at(0).fd.get(), F_DUPFD_CLOEXEC, 0));
  struct stat info {};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0 || ::lseek(fd.get(), 0, SEEK_SET) != 0)
    return {Outcome::kTrouble, base::Error::from_errno(files.path).message()};
  const int place = fd.get();
  auto file = source::GwcapReader::adopt(std::move(fd), files.path);
  if (!file.ok()) return {Outcome::kTrouble, base::escaped(file.error().message())};
  out.recorder = base::to_utf8(file->header().source);
  Reader reader(process, file->header().driver_version, out);
  std::vector<model::RawRecord> batch;
  do {
    if (const base::Status status = file->next_batch(batch); !status.ok()) {
      // It is still being written, or was cut: what is whole was given.
      out.end = status.error().message();
      break;
    }
    for (const model::RawRecord& record : batch) reader.take(record);
    // Whoever writes it may be faster than this.
    if (::lseek(place, 0, SEEK_CUR) > info.st_size) {
      out.end = files.path + ": it grows while it is read";
      break;
    }
  } while (!batch.empty());
  if (const auto& footer = file->footer()) out.lost = footer->lost.total();
  return reader.end(files.path);
}

}  // namespace

Failure open_records(const std::string& path, RecordFiles& out) {
  out.path = path;
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return {Outcome::kTrouble, base::Error::from_errno(path).message()};
  out.directory = S_ISDIR(info.st_mode);
  if (out.directory) {
    agent::allow_many_files();  // all shards are open together
    out.driver = driver_release();
    auto shards = preload::open_shards(path);
    if (!shards.ok()) return {Outcome::kTrouble, base::escaped(shards.error().message())};
    out.files = std::move(*shards);
    return {};
  }
  auto fd = base::open_plain(path);
  if (!fd.ok() && fd.error().code() == base::Code::kBadInput)
    return {Outcome::kTrouble, base::escaped(path) + ": neither a recording (.gwcap) nor a recorder's directory"};
  if (!fd.ok()) return {Outcome::kTrouble, fd.error().message()};
  out.files.push_back({path, std::move(*fd)});
  return {};
}

Failure read_records(const RecordFiles& files, const Identity& process, Records& out) {
  if (files.directory) return read_directory(files, process, out);
  if (files.files.empty()) return {Outcome::kTrouble, files.path + ": is not open"};
  return read_file(files, process, out);
}

}  // namespace gpuwatch::probe::outside
