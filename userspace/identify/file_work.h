// SPDX-License-Identifier: Apache-2.0
// One file from descriptor to entries: scan, stored hashes, cache, modules, in
// that order, each spread over the pool. What suits the wanted SM comes first.
#pragma once

#include <sys/stat.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "identify/cache.h"
#include "identify/identify.h"
#include "identify/pool.h"
#include "identify/scan.h"

namespace gpuwatch::identify {

class FileWork {
 public:
  // `scans` and `modules` are the same cache or null: members of archives have
  // no identity of their own, and their scans are not kept.
  FileWork(const Options& options, Pool& pool, Cache* scans, Cache* modules, std::string name, int fd,
           const struct stat& info, Sink& sink);
  void run();

 private:
  struct Slot {
    Entry entry;
    bool ready = false;
  };

  bool find_images();
  void hash_stored();
  void take_known();
  void hash_modules(const std::vector<std::size_t>& wanted);
  void add_group(std::vector<std::size_t> group);
  void complete(std::size_t index, Module module);
  void report_ready();
  bool tick();

  const Options& options_;
  Pool& pool_;
  Cache* scans_;
  Cache* modules_;
  std::string name_;
  int fd_;
  FileKey key_;
  Sink& sink_;
  Scan scan_;
  std::vector<Digest> stored_;
  std::vector<Slot> slots_;
  std::vector<std::size_t> order_;  // indexes of slots as they are to be reported
  std::size_t reported_ = 0;
  // The first image with these stored bytes computes for all.
  std::unordered_map<Digest, std::vector<std::size_t>, DigestHash> twins_;
  std::uint64_t bytes_done_ = 0;
  std::uint64_t bytes_total_ = 0;
};

}  // namespace gpuwatch::identify
