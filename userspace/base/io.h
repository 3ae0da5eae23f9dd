// SPDX-License-Identifier: Apache-2.0
// Whole reads and writes on descriptors, and small files as strings. Signals
// that interrupt a call are not errors here.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace gpuwatch::base {

// Writes everything or fails with errno.
Status write_all(int fd, std::span<const std::byte> bytes);
Status write_all(int fd, std::string_view text);

enum class OnSignal { kRetry, kFail };

// Fills `out` as far as the file goes; fewer bytes mean its end. With kFail a
// signal ends it with EINTR, and what was read is lost: for readers that a
// person must be able to end while a pipe keeps them waiting.
Result<std::size_t> read_full(int fd, std::span<std::byte> out, OnSignal on_signal = OnSignal::kRetry);

// An error where `path` is there and no regular file: opening a pipe may wait
// for ever. What is not there is left to whoever opens it.
Status must_be_plain(const std::string& path);

enum class Links { kFollow, kRefuse };

// Opens a regular file for reading, whoever may have chosen what lies there: what
// turns out to be something else, a pipe or a device, is never opened, and
// nothing is waited for. `folder`: where a relative path begins, -1: here. Of a
// link that is refused and of what is no regular file the error is kBadInput.
Result<Fd> open_plain(const std::string& path, Links links = Links::kFollow, int folder = -1);

// A file of /proc or /sys as text without trailing newlines; longer ones than
// `max_bytes` are an error.
Result<std::string> read_text_file(const std::string& path, std::size_t max_bytes = 1 << 20);

}  // namespace gpuwatch::base
