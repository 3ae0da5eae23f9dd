// SPDX-License-Identifier: Apache-2.0
#include "judge/schema.h"

#include <array>
#include <set>

namespace gpuwatch::judge {

using base::Code;
using base::Error;
using base::Result;
using base::Status;

namespace {

// As SQLite stores them: one space where it keeps ours, no trailing semicolon.
constexpr std::array<const char*, 12> kTables = {
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE module(id INTEGER PRIMARY KEY, r BLOB NOT NULL UNIQUE, m BLOB, d BLOB, p BLOB, kind INTEGER NOT "
    "NULL, "
    "origin INTEGER NOT NULL, sm INTEGER NOT NULL, suffix TEXT NOT NULL, bytes INTEGER NOT NULL)",
    "CREATE INDEX module_m ON module(m) WHERE m IS NOT NULL",
    "CREATE INDEX module_p ON module(p) WHERE p IS NOT NULL",
    "CREATE TABLE name(id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE)",
    "CREATE TABLE kernel(id INTEGER PRIMARY KEY, module INTEGER NOT NULL, name INTEGER NOT NULL, k BLOB NOT NULL, "
    "t BLOB NOT NULL, entry INTEGER NOT NULL, code_bytes INTEGER NOT NULL, shared_bytes INTEGER NOT NULL, "
    "registers INTEGER NOT NULL, barriers INTEGER NOT NULL)",
    "CREATE INDEX kernel_module ON kernel(module)",
    "CREATE INDEX kernel_k ON kernel(k)",
    "CREATE INDEX kernel_name ON kernel(name)",
    "CREATE TABLE file(id INTEGER PRIMARY KEY, path TEXT NOT NULL, manager TEXT NOT NULL, package TEXT NOT NULL, "
    "version TEXT NOT NULL, label TEXT NOT NULL, added INTEGER NOT NULL, UNIQUE(path, manager, package, version, "
    "label))",
    "CREATE TABLE source(module INTEGER NOT NULL, file INTEGER NOT NULL, container_offset INTEGER NOT NULL, entry "
    "INTEGER NOT NULL, PRIMARY KEY(module, file)) WITHOUT ROWID",
    "CREATE INDEX source_file ON source(file)",
};

// Since schema 2.
constexpr std::array<const char*, 4> kResidents = {
    "CREATE TABLE resident(module INTEGER NOT NULL, name INTEGER NOT NULL, driver TEXT NOT NULL, sm INTEGER NOT NULL, "
    "form BLOB NOT NULL, bytes INTEGER NOT NULL, k BLOB, t BLOB, PRIMARY KEY(module, name, driver, sm, form)) WITHOUT "
    "ROWID",
    "CREATE INDEX resident_form ON resident(form)",
    "CREATE INDEX resident_k ON resident(k) WHERE k IS NOT NULL",
    "CREATE INDEX resident_name ON resident(name)",
};

Status make_residents(Database& database) {
  for (const char* table : kResidents)
    if (Status status = database.execute(table); !status.ok()) return status;
  return database.execute(("PRAGMA user_version = " + std::to_string(kSchemaVersion)).c_str());
}

Result<std::int64_t> pragma(Database& database, const char* sql) {
  auto statement = database.prepare(sql);
  if (!statement) return std::move(statement.error());
  auto row = statement->step();
  if (!row) return std::move(row.error());
  return *row ? statement->integer(0) : 0;
}

}  // namespace

Status make_schema(Database& database, std::span<const MetaRow> rows) {
  {
    auto transaction = Transaction::begin(database);
    if (!transaction) return std::move(transaction.error());
    auto tables = pragma(database, "SELECT count(*) FROM sqlite_schema");
    if (!tables) return std::move(tables.error());
    if (*tables != 0) return check_schema(database);  // another program was faster
    for (const char* table : kTables)
      if (Status status = database.execute(table); !status.ok()) return status;
    auto insert = database.prepare("INSERT INTO meta(key, value) VALUES(?, ?)");
    if (!insert) return std::move(insert.error());
    for (const auto& [key, value] : rows)
      if (Status status = insert->bind(1, key).bind(2, value).run(); !status.ok()) return status;
    const std::string mark = "PRAGMA application_id = " + std::to_string(kApplicationId);
    if (Status status = database.execute(mark.c_str()); !status.ok()) return status;
    if (Status status = make_residents(database); !status.ok()) return status;
    if (Status status = transaction->commit(); !status.ok()) return status;
  }
  // WAL: readers go on while somebody writes. The mode stays in the file. Where
  // it can't be had now (somebody reads already, or the file system is a
  // network's) the baseline works, and readers wait for writers.
  (void)database.execute("PRAGMA journal_mode = WAL").ok();
  return {};
}

Status check_schema(Database& database) {
  auto application = pragma(database, "PRAGMA application_id");
  if (!application) return std::move(application.error());
  if (*application != kApplicationId)
    return Error(Code::kBadInput, database.path() + ": a database of another program, not a baseline");
  auto version = pragma(database, "PRAGMA user_version");
  if (!version) return std::move(version.error());
  if (*version < kOldestSchema || *version > kSchemaVersion)
    return Error(Code::kUnsupported, database.path() + ": baseline of schema " + std::to_string(*version) +
                                         ", this program reads schema " + std::to_string(kSchemaVersion) +
                                         "; export it with the gpuwatch that wrote it and import that here");
  std::set<std::string> expected(kTables.begin(), kTables.end());
  if (*version > kOldestSchema) expected.insert(kResidents.begin(), kResidents.end());
  auto statement = database.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL");
  if (!statement) return std::move(statement.error());
  for (;;) {
    auto row = statement->step();
    if (!row) return std::move(row.error());
    if (!*row) break;
    const std::string sql = statement->text(0);
    if (expected.erase(sql) == 0)
      return Error(Code::kBadInput, database.path() + ": has tables that are not a baseline's; not using it");
  }
  if (!expected.empty())
    return Error(Code::kBadInput, database.path() + ": tables of a baseline are missing; restore it from a copy");
  return {};
}

Result<std::int64_t> schema_version(Database& database) {
  return pragma(database, "PRAGMA user_version");
}

Status upgrade_schema(Database& database) {
  auto transaction = Transaction::begin(database);
  if (!transaction) return std::move(transaction.error());
  auto version = schema_version(database);
  if (!version) return std::move(version.error());
  if (*version == kSchemaVersion) return {};
  if (Status status = make_residents(database); !status.ok()) return status;
  return transaction->commit();
}

}  // namespace gpuwatch::judge
