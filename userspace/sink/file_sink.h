// SPDX-License-Identifier: Apache-2.0
// FileSink: JSON lines (or lines for people) appended to a regular file, or
// written to a descriptor that is open already, as standard output. Lines are
// whole or not there: what a full disk cut off is taken back.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <string>

#include "base/fd.h"
#include "sink/sink.h"

namespace gpuwatch::sink {

enum class LineForm : std::uint8_t { kJson, kText };

struct FileOptions {
  std::string path{};
  LineForm form = LineForm::kJson;
  std::uint64_t rotate_bytes = 0;  // 0: never; the file becomes PATH.1, that one PATH.2, ...
  unsigned keep = 4;               // rotated files; older ones are removed
  unsigned mode = 0640;            // of a new file
  bool events = true;              // false: alerts and losses only
};

class FileSink : public Sink {
 public:
  // Fails where the path is no regular file, a symbolic link, or cannot be made.
  static base::Result<std::unique_ptr<Sink>> open(const FileOptions& options);
  // Does not close `fd`. A pipe's reader that goes away is an error, not a signal.
  static std::unique_ptr<Sink> on_descriptor(int fd, LineForm form, bool events = true);

  std::string_view name() const override { return path_is_set() ? "file" : "stdout"; }
  bool wants(const Item& item) const override { return options_.events || item.kind != ItemKind::kEvent; }
  Outcome write(std::span<const ItemPtr> items) override;
  base::Status flush() override;
  base::Status reopen() override;

 private:
  explicit FileSink(FileOptions options) : options_(std::move(options)) {}
  bool path_is_set() const { return !options_.path.empty(); }
  base::Status rotate();
  base::Status claim(int fd, const struct stat& info, std::uint64_t& size);
  Outcome write_file(std::span<const ItemPtr> items);
  Outcome write_stream(std::span<const ItemPtr> items);
  const std::string& line_of(const Item& item) const {
    return options_.form == LineForm::kJson ? item.json : item.text;
  }

  FileOptions options_;
  std::shared_ptr<const void> claim_;  // outlives file_
  base::Fd file_;
  int stream_ = -1;
  std::uint64_t size_ = 0;  // of the file, whole lines only
  std::string buffer_;
  std::string unfinished_;  // rest of a line that the stream took in part
};

}  // namespace gpuwatch::sink
