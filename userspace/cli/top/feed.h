// SPDX-License-Identifier: Apache-2.0
// Feed: where `gpuwatch top` has its holdings from: the running daemon, the
// kernel module's rings, or a recording. What follows works on either. It draws
// nothing.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/flags.h"
#include "report/holdings.h"

namespace gpuwatch::cli::top {

class Feed {
 public:
  virtual ~Feed() = default;

  // Takes in what there is, and never waits long.
  virtual base::Status pump() = 0;
  virtual base::Result<report::HoldingsSnapshot> look() = 0;
  // Every look will be the same.
  virtual bool still() const { return false; }
  // Began with nothing: what was there before is seen only bit by bit.
  virtual bool fresh() const { return false; }
};

// At which moment of a recording to look.
struct Moment {
  enum class Kind { kEnd, kPeak, kSeconds };  // at the end, when most memory was held, after the first record
  Kind kind = Kind::kEnd;
  std::uint64_t after_ns = 0;
};
// "end", "peak" or seconds.
base::Result<Moment> moment_from(const std::string& text);

base::Result<std::unique_ptr<Feed>> open_recording(const std::string& file, const Moment& moment, const Flags& flags);
base::Result<std::unique_ptr<Feed>> open_rings(const Flags& flags);
// Asks once at the start: an error kNotFound where no daemon runs.
base::Result<std::unique_ptr<Feed>> open_daemon(const std::string& socket);

}  // namespace gpuwatch::cli::top
