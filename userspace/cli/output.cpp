// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "base/escape.h"
#include "base/io.h"

namespace gpuwatch::cli {

base::Status Output::flush() {
  if (buffer_.empty()) return {};
  base::Status status = closed_ ? base::Status() : base::write_all(fd_, buffer_);
  buffer_.clear();
  if (!status.ok() && status.error().sys_errno() == EPIPE) {
    closed_ = true;
    return {};
  }
  if (!status.ok()) return std::move(status.error()).with_context("standard output");
  return status;
}

bool wants_colour() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) == 1 && (no_color == nullptr || *no_color == '\0') && term != nullptr &&
         std::string_view(term) != "dumb";
}

void say(const std::string& message) {
  std::string line = "gpuwatch: ";
  base::append_escaped(line, message);
  line += '\n';
  (void)base::write_all(STDERR_FILENO, line).ok();
}

}  // namespace gpuwatch::cli
