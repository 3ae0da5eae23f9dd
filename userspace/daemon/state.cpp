// SPDX-License-Identifier: Apache-2.0
#include "daemon/state.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "base/io.h"

namespace gpuwatch::daemon {

using base::Code;
using base::Error;
using base::Result;
using base::Status;

namespace {

constexpr const char* kSchema = R"(
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = NORMAL;
  CREATE TABLE IF NOT EXISTS state (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS alerts (id TEXT PRIMARY KEY, rule TEXT NOT NULL, time INTEGER NOT NULL,
                                     text TEXT NOT NULL);
)";
constexpr const char* kVersion = "1";

std::uint64_t number_of(const std::string& text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

std::string boot_id() {
  auto text = base::read_text_file("/proc/sys/kernel/random/boot_id", 64);
  return text ? *text : std::string();
}

Result<State> State::open(const std::string& path, const std::string& boot_id, std::string& trouble) {
  for (int attempt = 0;; ++attempt) {
    auto database = judge::Database::open(path, judge::Database::Mode::kCreate);
    Status status;
    if (database) {
      State state(std::move(*database));
      status = state.begin(boot_id);
      if (status.ok()) return state;
    } else {
      status = std::move(database.error());
    }
    // Only what is no database of ours is put aside; a full disk is not cured by it.
    if (attempt > 0 || (status.error().code() != Code::kBadInput && status.error().code() != Code::kUnsupported))
      return std::move(status.error());
    trouble = status.error().message() + "; put aside as " + path + ".damaged, beginning anew";
    for (const char* end : {"-wal", "-shm"}) std::remove((path + end).c_str());
    if (std::rename(path.c_str(), (path + ".damaged").c_str()) != 0) return Error::from_errno(path);
  }
}

Status State::begin(const std::string& boot_id) {
  if (Status status = database_->execute(kSchema); !status.ok())
    return Error(Code::kBadInput, status.error().message());
  auto version = get("version");
  if (!version) return Error(Code::kBadInput, version.error().message());
  if (!version->empty() && *version != kVersion)
    return Error(Code::kUnsupported, database_->path() + ": of another release (version " + *version + ")");
  if (!version->empty()) {
    LastRun last;
    std::string values[4];
    const char* keys[4] = {"clean", "boot_id", "alive_unix_ns", "records"};
    for (int i = 0; i < 4; ++i) {
      auto value = get(keys[i]);
      if (!value) return std::move(value.error());
      values[i] = std::move(*value);
    }
    last.clean = values[0] == "1";
    last.same_boot = !boot_id.empty() && values[1] == boot_id;
    last.alive_unix_ns = number_of(values[2]);
    last.records = number_of(values[3]);
    last_ = last;
  }
  if (Status status = set("version", kVersion); !status.ok()) return status;
  if (Status status = set("boot_id", boot_id); !status.ok()) return status;
  return set("clean", "0");
}

Result<std::string> State::get(std::string_view key) {
  auto statement = database_->prepare("SELECT value FROM state WHERE key = ?1");
  if (!statement) return std::move(statement.error());
  auto row = statement->bind(1, key).step();
  if (!row) return std::move(row.error());
  return *row ? statement->text(0) : std::string();
}

Status State::set(std::string_view key, std::string_view value) {
  auto statement = database_->prepare("INSERT OR REPLACE INTO state (key, value) VALUES (?1, ?2)");
  if (!statement) return std::move(statement.error());
  return statement->bind(1, key).bind(2, value).run();
}

Status State::alive(std::uint64_t now_unix_ns, std::uint64_t records) {
  if (Status status = set("alive_unix_ns", std::to_string(now_unix_ns)); !status.ok()) return status;
  return set("records", std::to_string(records));
}

Status State::stopped(std::uint64_t now_unix_ns, std::uint64_t records) {
  if (Status status = alive(now_unix_ns, records); !status.ok()) return status;
  return set("clean", "1");
}

Result<std::uint64_t> State::reserve_alerts(std::uint64_t count) {
  auto next = get("next_alert");
  if (!next) return std::move(next.error());
  const std::uint64_t first = std::max<std::uint64_t>(number_of(*next), 1);
  if (Status status = set("next_alert", std::to_string(first + count)); !status.ok()) return std::move(status.error());
  return first;
}

Status State::keep_alert(const StoredAlert& alert) {
  auto statement = database_->prepare("INSERT OR REPLACE INTO alerts (id, rule, time, text) VALUES (?1, ?2, ?3, ?4)");
  if (!statement) return std::move(statement.error());
  if (Status status = statement->bind(1, std::string_view(alert.id))
                          .bind(2, std::string_view(alert.rule))
                          .bind(3, static_cast<std::int64_t>(alert.time_unix_ns))
                          .bind(4, std::string_view(alert.text))
                          .run();
      !status.ok())
    return status;
  return database_->execute("DELETE FROM alerts WHERE rowid <= (SELECT max(rowid) FROM alerts) - 1000");
}

Result<std::vector<StoredAlert>> State::alerts(std::size_t most) {
  auto statement = database_->prepare("SELECT id, rule, time, text FROM alerts ORDER BY rowid DESC LIMIT ?1");
  if (!statement) return std::move(statement.error());
  statement->bind(1, static_cast<std::int64_t>(most));
  std::vector<StoredAlert> alerts;
  for (;;) {
    auto row = statement->step();
    if (!row) return std::move(row.error());
    if (!*row) return alerts;
    alerts.push_back({statement->text(0), statement->text(1), static_cast<std::uint64_t>(statement->integer(2)),
                      statement->text(3)});
  }
}

}  // namespace gpuwatch::daemon
