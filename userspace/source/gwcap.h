// SPDX-License-Identifier: Apache-2.0
// Writer and reader of .gwcap files (layout in gwcap_format.h). They move
// records as bytes, in the order given, and give them no meaning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "model/raw_record.h"
#include "source/gwcap_format.h"

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace gpuwatch::source {

struct GwcapOptions {
  bool force = false;  // replace an existing file
  // Raw bytes per block, at most kGwcapRawMax. Larger blocks read faster, as
  // long as they stay in the processor's second cache.
  std::uint32_t block_bytes = 1 << 20;
  int level = 1;  // of zstd; after the deltas higher ones give a few percent
  std::uint64_t flush_after_ns = 1'000'000'000;
  std::uint64_t image_budget_bytes = 4ull << 30;  // that images may take in the file, together
};

// What a killed writer loses is what came after the last flush: at most one
// block, and at most flush_after_ns when flush_stale() is called as asked.
// Files are made with mode 0600: they hold what programs passed to the driver.
class GwcapWriter {
 public:
  static base::Result<GwcapWriter> create(const std::string& path, const GwcapHeader& header,
                                          const GwcapOptions& options = {});
  GwcapWriter(GwcapWriter&&) noexcept;
  GwcapWriter& operator=(GwcapWriter&&) noexcept;
  ~GwcapWriter();  // without finish(): flushes, leaves the footer out

  // `record` is exactly one record. After an error of the disk every later
  // call gives the same error, and the file ends with its last whole block.
  base::Status append(model::Bytes record);
  base::Status append(const model::RawRecord& record);

  // Bytes of a module image, to be called before its record is appended. False
  // where they would exceed `image_budget_bytes`: they are left out then.
  base::Result<bool> append_image(std::uint64_t id, std::span<const std::byte> bytes);

  // Writes out what append() holds back.
  base::Status flush();

  // The same, when the oldest record held back is older than flush_after_ns.
  // To be called about every flush_after_ns / 10 when records may stay away.
  base::Status flush_stale();

  // Flushes and writes the footer. `records` and `bytes` are counted here.
  base::Status finish(GwcapFooter footer);

  std::uint64_t records() const;
  std::uint64_t file_bytes() const;

 private:
  struct State;
  explicit GwcapWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

class GwcapReader {
 public:
  // "-" reads standard input. Fails where the header cannot be read.
  static base::Result<GwcapReader> open(const std::string& path);

  // Reads from a descriptor, from where it stands; `name` is for errors.
  static base::Result<GwcapReader> adopt(base::Fd fd, const std::string& name);
  GwcapReader(GwcapReader&&) noexcept;
  GwcapReader& operator=(GwcapReader&&) noexcept;
  ~GwcapReader();

  const GwcapHeader& header() const;

  // The next record, nothing at the end. Its payload points into the block in
  // memory and is valid until the call that follows. At a cut or at damage:
  // an error, once everything before it was given; then the same error again.
  base::Result<std::optional<model::RawRecord>> next();

  // The same by dozens: replaces `records` by the next ones, or leaves it
  // empty at the end. The fastest way, when each is looked at before the call
  // that follows; until then payloads are valid.
  base::Status next_batch(std::vector<model::RawRecord>& records);

  // Images are skipped unless asked for before the first record: they are kept
  // in memory, compressed, until taken; the oldest go beyond kGwcapKeptMax.
  void keep_images();

  // The bytes of an image whose record was given. Once. Another thread may ask
  // while next() or next_batch() wait for a pipe.
  base::Result<std::vector<std::byte>> take_image(std::uint64_t id);

  // As soon as `fd` is readable, a reader that waits for more of a pipe, and
  // every later one, gets an error with ECANCELED. `fd` outlives this.
  void end_when(int fd);

  // There once the end was reached in order.
  const std::optional<GwcapFooter>& footer() const;

  std::uint64_t records() const;    // given out so far
  std::uint64_t raw_bytes() const;  // of the records given out so far

 private:
  struct State;
  explicit GwcapReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gpuwatch::source
