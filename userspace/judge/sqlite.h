// SPDX-License-Identifier: Apache-2.0
// The little of SQLite that a baseline needs, with our errors. Database files
// come from outside: what a column holds is checked when it is read.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/fingerprint.h"

struct sqlite3;
struct sqlite3_stmt;

namespace gpuwatch::judge {

class Database;

// A prepared statement; bind from 1, read columns from 0, as SQLite counts.
class Statement {
 public:
  Statement() = default;
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&& other) noexcept;
  ~Statement();

  Statement& bind(int at, std::int64_t value);
  Statement& bind(int at, std::string_view text);
  Statement& bind(int at, const model::Digest& digest);
  Statement& bind(int at, const std::optional<model::Digest>& digest);

  // True: a row is there. False: done, and ready to be bound anew.
  base::Result<bool> step();
  // For statements that give no rows.
  base::Status run();
  void reset();

  std::int64_t integer(int column) const;
  std::string text(int column) const;
  bool is_null(int column) const;
  // Nothing where the column is no blob of that size.
  std::optional<model::Digest> digest(int column) const;

 private:
  friend class Database;
  Database* database_ = nullptr;
  sqlite3_stmt* statement_ = nullptr;
};

class Database {
 public:
  enum class Mode { kRead, kWrite, kCreate };

  // Nothing of the file is believed yet: see schema.h.
  static base::Result<std::unique_ptr<Database>> open(const std::string& path, Mode mode);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  base::Status execute(const char* sql);
  base::Result<Statement> prepare(std::string_view sql);
  std::int64_t last_row_id() const;

  // What SQLite says now, as our error.
  base::Error error(int code) const;
  const std::string& path() const { return path_; }

 private:
  Database(std::string path, sqlite3* handle) : path_(std::move(path)), handle_(handle) {}
  std::string path_;
  sqlite3* handle_;
};

// Rolls back what is not committed.
class Transaction {
 public:
  static base::Result<Transaction> begin(Database& database);
  Transaction(Transaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  base::Status commit();

 private:
  explicit Transaction(Database* database) : database_(database) {}
  Database* database_;
};

}  // namespace gpuwatch::judge
