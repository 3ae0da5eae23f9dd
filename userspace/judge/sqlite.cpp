// SPDX-License-Identifier: Apache-2.0
#include "judge/sqlite.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

namespace gpuwatch::judge {

using base::Code;
using base::Error;
using base::Result;
using base::Status;

namespace {

constexpr int kBusyMs = 10'000;      // another writer may merge a large baseline
constexpr int kValueMax = 64 << 20;  // bytes of one value
constexpr int kSqlMax = 64 << 10;

// Read-only directories cannot hold the files that WAL needs; a database whose
// log is empty can be read as it lies there.
bool can_write_beside(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash == 0 ? 1 : slash);
  return ::access(directory.c_str(), W_OK) == 0;
}

bool log_is_empty(const std::string& path) {
  struct stat st {};
  return ::stat((path + "-wal").c_str(), &st) != 0 || st.st_size == 0;
}

std::string uri_of(const std::string& path) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out = "file:";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 0x20 && byte < 0x7f && c != '%' && c != '?' && c != '#') {
      out += c;
    } else {
      out += '%';
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    }
  }
  return out + "?immutable=1";
}

}  // namespace

Result<std::unique_ptr<Database>> Database::open(const std::string& path, Mode mode) {
  struct stat st {};
  const bool there = ::stat(path.c_str(), &st) == 0;
  if (there && !S_ISREG(st.st_mode)) return Error(Code::kBadInput, path + ": not a plain file");
  if (!there && mode != Mode::kCreate) return Error::from_errno(path, ENOENT);
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  flags |= mode == Mode::kRead ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  if (mode == Mode::kCreate) flags |= SQLITE_OPEN_CREATE;
  const bool immutable = mode == Mode::kRead && !can_write_beside(path) && log_is_empty(path);
  if (immutable) flags |= SQLITE_OPEN_URI;
  sqlite3* handle = nullptr;
  const int code = ::sqlite3_open_v2(immutable ? uri_of(path).c_str() : path.c_str(), &handle, flags, nullptr);
  std::unique_ptr<Database> database(new Database(path, handle));
  if (handle == nullptr) return Error(Code::kIo, path + ": no memory for a database");
  if (code != SQLITE_OK) return database->error(code);
  ::sqlite3_busy_timeout(handle, kBusyMs);
  // The schema in the file could hold triggers and views of a stranger.
  ::sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  ::sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  ::sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  ::sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  ::sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, kValueMax);
  ::sqlite3_limit(handle, SQLITE_LIMIT_SQL_LENGTH, kSqlMax);
  ::sqlite3_limit(handle, SQLITE_LIMIT_ATTACHED, 0);
  // Without this a damaged page can be read as if it were sound.
  // Normal: a power cut may take back the last commits, but not damage the file.
  if (Status status = database->execute("PRAGMA cell_size_check = ON; PRAGMA synchronous = NORMAL"); !status.ok())
    return std::move(status.error());
  return database;
}

Database::~Database() {
  ::sqlite3_close_v2(handle_);
}

Status Database::execute(const char* sql) {
  const int code = ::sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? Status() : Status(error(code));
}

Result<Statement> Database::prepare(std::string_view sql) {
  Statement statement;
  statement.database_ = this;
  const int code = ::sqlite3_prepare_v3(handle_, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                                        &statement.statement_, nullptr);
  if (code != SQLITE_OK) return error(code);
  return statement;
}

std::int64_t Database::last_row_id() const {
  return ::sqlite3_last_insert_rowid(handle_);
}

Error Database::error(int code) const {
  const std::string text = handle_ == nullptr ? "no memory" : ::sqlite3_errmsg(handle_);
  switch (code & 0xff) {
    case SQLITE_NOTADB:
      return Error(Code::kBadInput, path_ + ": not a baseline (no SQLite database)");
    case SQLITE_CORRUPT:
      return Error(Code::kBadInput,
                   path_ + ": the file is damaged (" + text + "); restore it from a copy, or import an export");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Error(Code::kIo, path_ + ": another program keeps it locked; try again when that is done");
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return Error(Code::kPermission, path_ + ": may not be written (" + text + ")");
    case SQLITE_CANTOPEN:
      return Error(Code::kIo, path_ + ": cannot be opened (" + text + ")");
    case SQLITE_FULL:
      return Error(Code::kIo, path_ + ": no space left on the disk; nothing was changed");
    case SQLITE_TOOBIG:
      return Error(Code::kLimit, path_ + ": a value is over the limit of " + std::to_string(kValueMax) + " bytes");
    default:
      return Error(Code::kIo, path_ + ": " + text);
  }
}

Statement::Statement(Statement&& other) noexcept
    : database_(other.database_), statement_(std::exchange(other.statement_, nullptr)) {}

Statement& Statement::operator=(Statement&& other) noexcept {
  if (this != &other) {
    ::sqlite3_finalize(statement_);
    database_ = other.database_;
    statement_ = std::exchange(other.statement_, nullptr);
  }
  return *this;
}

Statement::~Statement() {
  ::sqlite3_finalize(statement_);
}

Statement& Statement::bind(int at, std::int64_t value) {
  ::sqlite3_bind_int64(statement_, at, value);
  return *this;
}

Statement& Statement::bind(int at, std::string_view text) {
  ::sqlite3_bind_text(statement_, at, text.data() == nullptr ? "" : text.data(), static_cast<int>(text.size()),
                      SQLITE_TRANSIENT);
  return *this;
}

Statement& Statement::bind(int at, const model::Digest& digest) {
  ::sqlite3_bind_blob(statement_, at, digest.data(), static_cast<int>(digest.size()), SQLITE_TRANSIENT);
  return *this;
}

Statement& Statement::bind(int at, const std::optional<model::Digest>& digest) {
  if (digest) return bind(at, *digest);
  ::sqlite3_bind_null(statement_, at);
  return *this;
}

Result<bool> Statement::step() {
  const int code = ::sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  ::sqlite3_reset(statement_);
  if (code == SQLITE_DONE) return false;
  return database_->error(code);
}

Status Statement::run() {
  auto row = step();
  if (!row) return std::move(row.error());
  reset();
  return {};
}

void Statement::reset() {
  ::sqlite3_reset(statement_);
}

std::int64_t Statement::integer(int column) const {
  return ::sqlite3_column_int64(statement_, column);
}

std::string Statement::text(int column) const {
  const auto* bytes = static_cast<const char*>(::sqlite3_column_blob(statement_, column));
  const int size = ::sqlite3_column_bytes(statement_, column);
  return bytes == nullptr ? std::string() : std::string(bytes, static_cast<std::size_t>(size));
}

bool Statement::is_null(int column) const {
  return ::sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

std::optional<model::Digest> Statement::digest(int column) const {
  model::Digest out{};
  if (::sqlite3_column_type(statement_, column) != SQLITE_BLOB ||
      ::sqlite3_column_bytes(statement_, column) != static_cast<int>(out.size()))
    return std::nullopt;
  std::memcpy(out.data(), ::sqlite3_column_blob(statement_, column), out.size());
  return out;
}

Result<Transaction> Transaction::begin(Database& database) {
  // Immediate: two writers wait for each other here instead of failing later.
  if (Status status = database.execute("BEGIN IMMEDIATE"); !status.ok()) return std::move(status.error());
  return Transaction(&database);
}

Transaction::~Transaction() {
  if (database_ != nullptr) (void)database_->execute("ROLLBACK").ok();
}

Status Transaction::commit() {
  if (Status status = database_->execute("COMMIT"); !status.ok()) return status;
  database_ = nullptr;
  return {};
}

}  // namespace gpuwatch::judge
