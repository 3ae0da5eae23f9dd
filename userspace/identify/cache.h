// SPDX-License-Identifier: Apache-2.0
// What was computed once, in SQLite: modules by the hash of their stored bytes,
// scans by the file's identity. Everything read back is checked: who owns the
// file, its schema, a checksum per row. A damaged file is replaced by an empty
// one; without a cache everything still works.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "identify/image.h"
#include "identify/scan.h"

struct sqlite3;
struct sqlite3_stmt;

namespace gpuwatch::identify {

struct FileKey {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  std::int64_t mtime_ns = 0;
  std::int64_t ctime_ns = 0;
  bool operator==(const FileKey&) const = default;
};
FileKey key_of(const struct stat& info);

struct CachedScan {
  Scan scan;
  std::vector<Digest> stored;  // one per image
};

class Cache {
 public:
  // Creates directory and file where they are missing. `warning` is set when a
  // damaged file had to be replaced.
  static base::Result<Cache> open(const std::string& path, std::uint64_t max_bytes, std::string& warning);
  Cache(Cache&&) noexcept;
  Cache& operator=(Cache&&) noexcept;
  ~Cache();

  std::optional<Module> module(const Digest& stored, const Image& image);
  void store(const Digest& stored, const Image& image, const Module& module);
  std::optional<CachedScan> file(const FileKey& key);
  void store(const FileKey& key, const CachedScan& scan);

  // Writes what is pending, and drops the oldest above the bound.
  void flush();
  // Set once a row or the file turned out damaged.
  const std::string& trouble() const { return trouble_; }

 private:
  struct Close {
    void operator()(sqlite3* db) const;
  };
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;
  Cache();
  base::Status prepare();
  std::optional<std::string> get(sqlite3_stmt* statement);
  void put(sqlite3_stmt* statement);
  void note(const std::string& what);
  void begin();

  std::unique_ptr<sqlite3, Close> db_;
  Statement get_module_;
  Statement put_module_;
  Statement get_file_;
  Statement put_file_;
  std::uint64_t max_bytes_ = 0;
  bool in_transaction_ = false;
  bool dead_ = false;
  std::string trouble_;
};

// $XDG_CACHE_HOME or ~/.cache, of root /var/cache, then gpuwatch/hashes.sqlite.
std::string default_cache_path();

}  // namespace gpuwatch::identify
