// SPDX-License-Identifier: Apache-2.0
#include "daemon/recorder.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "source/gwcap.h"

namespace gpuwatch::daemon {

using base::Error;
using base::Result;
using base::Status;

namespace {

constexpr std::size_t kDefinitionsMax = 16'384;
constexpr std::size_t kDefinitionBytesMax = 8 << 20;

}  // namespace

void Recorder::add(const Intake::Batch& batch) {
  const std::lock_guard hold(lock_);
  if (limit_ == 0) return;
  for (std::size_t i = 0; i < batch.chunks.size(); ++i) {
    if (!pieces_.empty() && pieces_.back().chunk == batch.chunks[i]) {
      pieces_.back().end = std::max(pieces_.back().end, batch.ends[i]);
      continue;
    }
    // Whole chunks count: that is what they cost.
    pieces_.push_back({batch.chunks[i], 0, batch.ends[i]});
    bytes_ += batch.chunks[i]->bytes.size();
  }
  for (const model::RawRecord& record : batch.records) {
    const gpuwatch_rec& head = record.head;
    if (head.type != GPUWATCH_REC_TASK && head.type != GPUWATCH_REC_CGROUP) continue;
    const DefinitionKey key = head.type == GPUWATCH_REC_TASK ? DefinitionKey{head.type, {head.tgid, head.start_ns}}
                                                             : DefinitionKey{head.type, {head.cgroup_id, 0}};
    std::vector<std::byte> bytes(sizeof head + record.payload.size());
    std::memcpy(bytes.data(), &head, sizeof head);
    if (!record.payload.empty()) std::memcpy(bytes.data() + sizeof head, record.payload.data(), record.payload.size());
    definition_bytes_ += bytes.size();
    const auto [at, fresh] = definitions_.try_emplace(key);
    definition_bytes_ -= at->second.size();
    at->second = std::move(bytes);
    if (fresh) order_.push_back(key);
    while (definitions_.size() > kDefinitionsMax || definition_bytes_ > kDefinitionBytesMax) {
      const auto oldest = definitions_.find(order_.front());
      definition_bytes_ -= oldest->second.size();
      definitions_.erase(oldest);
      order_.pop_front();
    }
  }
  trim();
}

void Recorder::trim() {
  while (!pieces_.empty() && bytes_ > limit_) {
    bytes_ -= pieces_.front().chunk->bytes.size();
    pieces_.pop_front();
  }
}

void Recorder::set_limit(std::size_t bytes) {
  const std::lock_guard hold(lock_);
  limit_ = bytes;
  trim();
}

std::size_t Recorder::bytes() const {
  const std::lock_guard hold(lock_);
  return bytes_;
}

Result<Dump> Recorder::dump(const std::string& path, const source::GwcapHeader& header) const {
  std::deque<Piece> pieces;
  std::vector<std::vector<std::byte>> definitions;
  {
    const std::lock_guard hold(lock_);
    if (limit_ == 0)
      return Error(base::Code::kUnsupported, "the flight recorder is off; set recorder.bytes in the configuration");
    pieces = pieces_;
    for (const DefinitionKey& key : order_) definitions.push_back(definitions_.at(key));
  }
  // Beside its place first, so that nobody sees half a dump.
  const std::string partial = path + ".part";
  source::GwcapOptions options;
  options.force = true;
  auto writer = source::GwcapWriter::create(partial, header, options);
  if (!writer) return std::move(writer.error());
  Status status;
  for (const auto& bytes : definitions)
    if (status.ok()) status = writer->append(model::Bytes(bytes));
  for (const Piece& piece : pieces) {
    for (std::size_t at = piece.begin; status.ok() && at < piece.end;) {
      const auto record = model::parse_record(model::Bytes(piece.chunk->bytes).subspan(at, piece.end - at));
      if (!record) break;
      status = writer->append(model::Bytes(piece.chunk->bytes).subspan(at, record->head.len));
      at += record->head.len;
    }
  }
  source::GwcapFooter footer;
  footer.notes.emplace_back("the newest records of gpuwatchd's flight recorder; earlier ones are not in it");
  if (status.ok()) status = writer->finish(footer);
  if (status.ok() && ::rename(partial.c_str(), path.c_str()) != 0) status = Error::from_errno(path);
  if (!status.ok()) {
    ::unlink(partial.c_str());
    return std::move(status.error());
  }
  return Dump{path, writer->records(), writer->file_bytes()};
}

void keep_newest(const std::string& directory, std::size_t keep) {
  namespace fs = std::filesystem;
  std::error_code trouble;
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  fs::directory_iterator entry(directory, trouble);  // a loop over the range would throw
  for (const fs::directory_iterator end; !trouble && entry != end; entry.increment(trouble))
    if (std::error_code gone; entry->path().extension() == ".gwcap" && entry->is_regular_file(gone))
      files.emplace_back(entry->last_write_time(gone), entry->path());
  std::sort(files.begin(), files.end());
  for (std::size_t i = 0; i + keep < files.size(); ++i) fs::remove(files[i].second, trouble);
}

}  // namespace gpuwatch::daemon
