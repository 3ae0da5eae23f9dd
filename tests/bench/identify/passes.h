// SPDX-License-Identifier: Apache-2.0
// The ways through one library that the bench compares. Times are processor
// time of this thread, so that other load on the machine does not count, except
// where a name says wall.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/fd.h"
#include "identify/scan.h"

namespace gpuwatch::bench {

class Library {
 public:
  explicit Library(const std::string& path);
  double plain() const;         // read, inflate by liblz4 and libzstd, SHA-256 by OpenSSL
  double first_pass() const;    // scan, stored payloads, modules with all hashes
  double plain_stored() const;  // SHA-256 of payloads by OpenSSL
  double stored_pass() const;   // the same by identify
  std::uint64_t inflated_bytes() const { return inflated_; }
  std::uint64_t largest_bytes() const { return largest_; }

 private:
  base::Fd fd_;
  std::uint64_t size_ = 0;
  identify::Scan scan_;
  std::uint64_t inflated_ = 0;
  std::uint64_t largest_ = 0;
};

// The whole room, workers and all, in a process of its own.
struct Whole {
  double wall_s = 1e9;
  double cpu_s = 1e9;
  std::uint64_t peak_bytes = ~std::uint64_t{0};
  void keep_best(const Whole& other);
};
Whole run_whole(const std::string& path, unsigned workers);
int whole_main(const std::string& path, const std::string& workers);

// Wall time of the vendor's tool; nothing where it is not installed.
std::optional<double> cuobjdump_seconds(const std::string& path);

struct Lookup {
  double microseconds = 0;
};
// Fills a cache with the modules of a library and asks for each.
Lookup measure_lookup(const std::string& cache, const std::string& library);

}  // namespace gpuwatch::bench
