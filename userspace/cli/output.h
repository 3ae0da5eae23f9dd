// SPDX-License-Identifier: Apache-2.0
// Output: standard output, buffered by us so that one batch of records is one
// write. A reader that went away is no error: see closed().
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace gpuwatch::cli {

class Output {
 public:
  explicit Output(int fd = 1) : fd_(fd) {}

  std::string& buffer() { return buffer_; }

  // Writes when the buffer is large; to be called after every line or so.
  base::Status flush_if_full() { return buffer_.size() >= kFlushBytes ? flush() : base::Status(); }
  base::Status flush();

  // The reader closed its end (EPIPE): time to stop, quietly.
  bool closed() const { return closed_; }

 private:
  static constexpr std::size_t kFlushBytes = 64 << 10;
  int fd_;
  std::string buffer_;
  bool closed_ = false;
};

// Colour and the like: standard output is a terminal, NO_COLOR is not set or
// empty, TERM is not "dumb".
bool wants_colour();

// One line on standard error, with the program's name before it and every
// control byte escaped.
void say(const std::string& message);

}  // namespace gpuwatch::cli
