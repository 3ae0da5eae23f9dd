// SPDX-License-Identifier: Apache-2.0
// State: what the daemon remembers over restarts, in SQLite: how it ended, when
// it was last alive, which numbers of alerts are used up, and the last alerts.
// Without the file the daemon works; it then says that it does not know.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "judge/sqlite.h"

namespace gpuwatch::daemon {

struct LastRun {
  bool clean = false;               // it ended in order
  bool same_boot = false;           // of the machine
  std::uint64_t alive_unix_ns = 0;  // last sign of life
  std::uint64_t records = 0;        // it had read by then
};

struct StoredAlert {
  std::string id;
  std::string rule;
  std::uint64_t time_unix_ns = 0;
  std::string text;
};

class State {
 public:
  // A damaged file is put aside as FILE.damaged, and said in `trouble`.
  static base::Result<State> open(const std::string& path, const std::string& boot_id, std::string& trouble);

  // Of the process before this one; nothing: this is the first.
  const std::optional<LastRun>& last_run() const { return last_; }

  base::Status alive(std::uint64_t now_unix_ns, std::uint64_t records);
  base::Status stopped(std::uint64_t now_unix_ns, std::uint64_t records);

  // The first of `count` numbers for alerts, that no other run ever gets, also
  // after a kill. Later calls of one run give the numbers that follow.
  base::Result<std::uint64_t> reserve_alerts(std::uint64_t count);
  base::Status keep_alert(const StoredAlert& alert);
  base::Result<std::vector<StoredAlert>> alerts(std::size_t most);

 private:
  explicit State(std::unique_ptr<judge::Database> database) : database_(std::move(database)) {}
  base::Status begin(const std::string& boot_id);
  base::Status set(std::string_view key, std::string_view value);
  base::Result<std::string> get(std::string_view key);

  std::unique_ptr<judge::Database> database_;
  std::optional<LastRun> last_;
};

// "/proc/sys/kernel/random/boot_id"; empty where there is none.
std::string boot_id();

}  // namespace gpuwatch::daemon
