// SPDX-License-Identifier: Apache-2.0
#include "identify/cache.h"

#include <sqlite3.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>

#include "base/crc32c.h"
#include "identify/wire.h"

namespace gpuwatch::identify {

namespace {

constexpr int kApplicationId = 0x67777368;  // "gwsh"
constexpr char kSchema[] =
    "CREATE TABLE module(stored BLOB NOT NULL, how INTEGER NOT NULL, day INTEGER NOT NULL, crc INTEGER NOT NULL,"
    " data BLOB NOT NULL, PRIMARY KEY(stored, how)) WITHOUT ROWID;"
    "CREATE TABLE file(device INTEGER NOT NULL, inode INTEGER NOT NULL, size INTEGER NOT NULL, mtime INTEGER NOT NULL,"
    " ctime INTEGER NOT NULL, day INTEGER NOT NULL, crc INTEGER NOT NULL, data BLOB NOT NULL,"
    " PRIMARY KEY(device, inode)) WITHOUT ROWID;";

std::int64_t today() {
  return static_cast<std::int64_t>(::time(nullptr)) / 86400;
}

std::uint32_t checksum(std::string_view data) {
  return base::crc32c(std::as_bytes(std::span(data)));
}

// How the stored bytes are to be read: the same bytes may be PTX in one file
// and an opaque payload in another.
std::int64_t how_of(const Image& image) {
  return static_cast<std::int64_t>(image.kind) | static_cast<std::int64_t>(image.compression) << 4 |
         (image.opaque ? 1 << 8 : 0) | (image.error.empty() ? 0 : 1 << 9) |
         static_cast<std::int64_t>(image.sm & 0xffff) << 16 |
         static_cast<std::int64_t>(image.compressed_bytes ^ (image.bytes << 32 | image.bytes >> 32)) << 20;
}

base::Error error_of(sqlite3* db, const std::string& what) {
  return base::Error(base::Code::kIo, what + ": " + (db != nullptr ? ::sqlite3_errmsg(db) : "out of memory"));
}

// A cache is believed; so nobody else may be able to write it.
base::Status check_owner(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0)
    return errno == ENOENT ? base::Status() : base::Status(base::Error::from_errno(path));
  if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))
    return base::Error(base::Code::kPermission, path + ": neither a file nor a directory");
  if (info.st_uid != ::geteuid() || (info.st_mode & 022) != 0)
    return base::Error(base::Code::kPermission, path + ": others can write it; remove it or use --no-cache");
  return {};
}

base::Status make_directories(const std::string& path) {
  for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1))
    if (::mkdir(path.substr(0, at).c_str(), 0700) != 0 && errno != EEXIST)
      return base::Error::from_errno(path.substr(0, at));
  return {};
}

}  // namespace

FileKey key_of(const struct stat& info) {
  return {info.st_dev, info.st_ino, static_cast<std::uint64_t>(info.st_size),
          info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec,
          info.st_ctim.tv_sec * 1'000'000'000 + info.st_ctim.tv_nsec};
}

std::string default_cache_path() {
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  std::string base;
  if (xdg != nullptr && *xdg == '/')
    base = xdg;
  else if (::geteuid() == 0)
    base = "/var/cache";
  else if (home != nullptr && *home == '/')
    base = std::string(home) + "/.cache";
  return base.empty() ? base : base + "/gpuwatch/hashes.sqlite";
}

void Cache::Close::operator()(sqlite3* db) const {
  ::sqlite3_close_v2(db);
}
void Cache::Finalize::operator()(sqlite3_stmt* statement) const {
  ::sqlite3_finalize(statement);
}
Cache::Cache() = default;
Cache::Cache(Cache&&) noexcept = default;
Cache& Cache::operator=(Cache&&) noexcept = default;
Cache::~Cache() {
  if (db_) flush();
}

base::Result<Cache> Cache::open(const std::string& path, std::uint64_t max_bytes, std::string& warning) {
  if (base::Status status = make_directories(path); !status.ok())
    return std::move(status.error()).with_context("cache");
  const std::string directory = path.substr(0, path.rfind('/'));
  for (const std::string& part : {directory, path})
    if (base::Status status = check_owner(part); !status.ok()) return std::move(status.error()).with_context("cache");
  for (int attempt = 0;; ++attempt) {
    Cache cache;
    cache.max_bytes_ = max_bytes;
    sqlite3* db = nullptr;
    const int opened = ::sqlite3_open_v2(
        path.c_str(), &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW,
        nullptr);
    cache.db_.reset(db);
    base::Status status = opened == SQLITE_OK ? cache.prepare() : base::Status(error_of(db, path));
    if (status.ok()) return cache;
    const int code = db != nullptr ? ::sqlite3_errcode(db) : SQLITE_NOMEM;
    const bool busy =
        code == SQLITE_BUSY || code == SQLITE_LOCKED || code == SQLITE_READONLY || code == SQLITE_CANTOPEN;
    if (attempt > 0 || busy) return std::move(status.error()).with_context("cache");
    // Nothing in it is worth keeping: all of it can be computed again.
    warning = "cache " + path + ": " + status.error().message() + "; replaced by an empty one";
    cache.db_.reset();
    for (const char* suffix : {"", "-wal", "-shm", "-journal"}) (void)::unlink((path + suffix).c_str());
  }
}

base::Status Cache::prepare() {
  sqlite3* db = db_.get();
  ::sqlite3_busy_timeout(db, 2000);
  ::sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  ::sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  ::sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 1 << 29);
  const auto number = [&](const char* sql, std::int64_t& out) {
    sqlite3_stmt* statement = nullptr;
    const int prepared = ::sqlite3_prepare_v2(db, sql, -1, &statement, nullptr);
    const Statement owner(statement);
    if (prepared != SQLITE_OK || ::sqlite3_step(statement) != SQLITE_ROW) return false;
    out = ::sqlite3_column_int64(statement, 0);
    return true;
  };
  const auto run = [&](const std::string& sql) {
    return ::sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
  };
  std::int64_t id = 0;
  std::int64_t version = 0;
  std::int64_t tables = 0;
  if (!run("PRAGMA cell_size_check=ON; PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; PRAGMA mmap_size=0") ||
      !number("PRAGMA application_id", id) || !number("PRAGMA user_version", version) ||
      !number("SELECT count(*) FROM sqlite_schema", tables))
    return error_of(db, "not a database that can be read");
  if (tables == 0) {
    if (!run("BEGIN IMMEDIATE") || !run(kSchema) || !run("PRAGMA application_id=" + std::to_string(kApplicationId)) ||
        !run("PRAGMA user_version=" + std::to_string(kWireVersion)) || !run("COMMIT"))
      return error_of(db, "schema");
  } else if (id != kApplicationId || version != kWireVersion || tables != 2) {
    return base::Error(base::Code::kUnsupported, "made by another version or another program");
  }
  const auto prepared = [&](const char* sql, Statement& out) {
    sqlite3_stmt* statement = nullptr;
    const int code = ::sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
    out.reset(statement);
    return code == SQLITE_OK;
  };
  if (!prepared("SELECT crc, data FROM module WHERE stored=?1 AND how=?2", get_module_) ||
      !prepared("INSERT OR REPLACE INTO module VALUES(?1, ?2, ?3, ?4, ?5)", put_module_) ||
      !prepared("SELECT crc, data FROM file WHERE device=?1 AND inode=?2 AND size=?3 AND mtime=?4 AND ctime=?5",
                get_file_) ||
      !prepared("INSERT OR REPLACE INTO file VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)", put_file_))
    return error_of(db, "schema");
  return {};
}

void Cache::note(const std::string& what) {
  if (trouble_.empty()) trouble_ = what;
}

void Cache::begin() {
  if (in_transaction_ || dead_) return;
  in_transaction_ = ::sqlite3_exec(db_.get(), "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) == SQLITE_OK;
}

std::optional<std::string> Cache::get(sqlite3_stmt* statement) {
  std::optional<std::string> out;
  const int code = ::sqlite3_step(statement);
  if (code == SQLITE_ROW) {
    const auto crc = static_cast<std::uint32_t>(::sqlite3_column_int64(statement, 0));
    const auto* data = static_cast<const char*>(::sqlite3_column_blob(statement, 1));
    const int size = ::sqlite3_column_bytes(statement, 1);
    if (data != nullptr) out.emplace(data, static_cast<std::size_t>(size));
    if (!out || checksum(*out) != crc) {
      note("a damaged row was ignored");
      out.reset();
    }
  } else if (code != SQLITE_DONE) {
    note(std::string("not readable: ") + ::sqlite3_errmsg(db_.get()));
    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB) dead_ = true;
  }
  ::sqlite3_reset(statement);
  return out;
}

void Cache::put(sqlite3_stmt* statement) {
  const int code = ::sqlite3_step(statement);
  if (code != SQLITE_DONE) {
    note(std::string("not writable: ") + ::sqlite3_errmsg(db_.get()));
    dead_ = true;
  }
  ::sqlite3_reset(statement);
  ::sqlite3_clear_bindings(statement);
}

std::optional<Module> Cache::module(const Digest& stored, const Image& image) {
  if (dead_) return std::nullopt;
  sqlite3_stmt* statement = get_module_.get();
  ::sqlite3_bind_blob(statement, 1, stored.data(), static_cast<int>(stored.size()), SQLITE_STATIC);
  ::sqlite3_bind_int64(statement, 2, how_of(image));
  const auto data = get(statement);
  if (!data) return std::nullopt;
  WireReader in(as_bytes(*data));
  Module module;
  read(in, module);
  if (in.done()) return module;
  note("a damaged row was ignored");
  return std::nullopt;
}

void Cache::store(const Digest& stored, const Image& image, const Module& module) {
  if (dead_) return;
  WireWriter out;
  write(out, module);
  if (out.str().size() > max_bytes_ / 4) return;
  begin();
  sqlite3_stmt* statement = put_module_.get();
  ::sqlite3_bind_blob(statement, 1, stored.data(), static_cast<int>(stored.size()), SQLITE_STATIC);
  ::sqlite3_bind_int64(statement, 2, how_of(image));
  ::sqlite3_bind_int64(statement, 3, today());
  ::sqlite3_bind_int64(statement, 4, checksum(out.str()));
  ::sqlite3_bind_blob64(statement, 5, out.str().data(), out.str().size(), SQLITE_STATIC);
  put(statement);
}

std::optional<CachedScan> Cache::file(const FileKey& key) {
  if (dead_) return std::nullopt;
  sqlite3_stmt* statement = get_file_.get();
  ::sqlite3_bind_int64(statement, 1, static_cast<std::int64_t>(key.device));
  ::sqlite3_bind_int64(statement, 2, static_cast<std::int64_t>(key.inode));
  ::sqlite3_bind_int64(statement, 3, static_cast<std::int64_t>(key.size));
  ::sqlite3_bind_int64(statement, 4, key.mtime_ns);
  ::sqlite3_bind_int64(statement, 5, key.ctime_ns);
  const auto data = get(statement);
  if (!data) return std::nullopt;
  WireReader in(as_bytes(*data));
  CachedScan cached;
  read(in, cached.scan);
  for (std::size_t i = 0; i < cached.scan.images.size() && in.ok(); ++i) cached.stored.push_back(in.digest());
  if (in.done()) return cached;
  note("a damaged row was ignored");
  return std::nullopt;
}

void Cache::store(const FileKey& key, const CachedScan& cached) {
  if (dead_) return;
  WireWriter out;
  write(out, cached.scan);
  for (const Digest& digest : cached.stored) out.digest(digest);
  if (out.str().size() > max_bytes_ / 4) return;
  begin();
  sqlite3_stmt* statement = put_file_.get();
  ::sqlite3_bind_int64(statement, 1, static_cast<std::int64_t>(key.device));
  ::sqlite3_bind_int64(statement, 2, static_cast<std::int64_t>(key.inode));
  ::sqlite3_bind_int64(statement, 3, static_cast<std::int64_t>(key.size));
  ::sqlite3_bind_int64(statement, 4, key.mtime_ns);
  ::sqlite3_bind_int64(statement, 5, key.ctime_ns);
  ::sqlite3_bind_int64(statement, 6, today());
  ::sqlite3_bind_int64(statement, 7, checksum(out.str()));
  ::sqlite3_bind_blob64(statement, 8, out.str().data(), out.str().size(), SQLITE_STATIC);
  put(statement);
}

void Cache::flush() {
  if (in_transaction_) {
    // Whole days go, oldest first, until what is left fits.
    sqlite3_stmt* raw = nullptr;
    (void)::sqlite3_prepare_v2(db_.get(),
                               "SELECT (SELECT total(length(data) + 100) FROM module) + (SELECT total(length(data) + "
                               "100) FROM file), (SELECT min(day) FROM (SELECT day FROM module UNION ALL SELECT day "
                               "FROM file)), (SELECT count(*) FROM module)",
                               -1, &raw, nullptr);
    const Statement size(raw);
    while (raw != nullptr && ::sqlite3_step(raw) == SQLITE_ROW &&
           ::sqlite3_column_double(raw, 0) > static_cast<double>(max_bytes_)) {
      const std::string day = std::to_string(::sqlite3_column_int64(raw, 1));
      ::sqlite3_reset(raw);
      std::string sql = "DELETE FROM file WHERE day<=" + day + "; DELETE FROM module WHERE day<=" + day;
      if (day == std::to_string(today()))
        sql =
            "DELETE FROM file; "
            "DELETE FROM module WHERE (stored, how) IN (SELECT stored, how FROM module ORDER BY day, stored LIMIT "
            "(SELECT 1 + count(*) / 2 FROM module))";
      if (::sqlite3_exec(db_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) break;
    }
    if (::sqlite3_exec(db_.get(), "COMMIT", nullptr, nullptr, nullptr) != SQLITE_OK)
      note(std::string("not writable: ") + ::sqlite3_errmsg(db_.get()));
    in_transaction_ = false;
  }
}

}  // namespace gpuwatch::identify
