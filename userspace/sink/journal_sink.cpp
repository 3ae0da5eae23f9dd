// SPDX-License-Identifier: Apache-2.0
// See journal_sink.h. The library sends nothing, and says that all is well, when
// no journal listens: so its socket is looked for first.
#include "sink/journal_sink.h"

// The fields that the library adds would name this file for every entry.
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>
#include <unistd.h>

#include <array>
#include <vector>

namespace gpuwatch::sink {

namespace {

constexpr const char* kSocket = "/run/systemd/journal/socket";

constexpr MessageInfo kMessages[] = {
#define MESSAGE(enumerator, name, id, meaning) {name, id, meaning},
#include "sink/message_ids.def"
#undef MESSAGE
};

struct FieldInfo {
  std::string_view name;
  std::string_view meaning;
};

constexpr FieldInfo kFields[] = {
    {"MESSAGE", "The line for people."},
    {"MESSAGE_ID", "Kind of entry, see above."},
    {"PRIORITY", "6 info, 5 notice, 4 warning, 3 error, 2 critical."},
    {"SYSLOG_IDENTIFIER", "gpuwatchd."},
    {"GPUWATCH_KIND", "event, alert or loss."},
    {"GPUWATCH_EVENT", "Kind of event, as in gpuwatch-json(5)."},
    {"GPUWATCH_RULE", "Of an alert: id of its rule."},
    {"GPUWATCH_SEVERITY", "info, notice, warning, error, critical."},
    {"GPUWATCH_VERDICT", "Verdict on the code, where there is one."},
    {"GPUWATCH_ATTACK", "Of an alert: ATT&CK techniques, with blanks between."},
    {"GPUWATCH_ALERT_ID", "Names the alert."},
    {"GPUWATCH_REASON", "Of a loss: why."},
    {"GPUWATCH_LOST", "Of a loss: how many."},
    {"GPUWATCH_SINK", "Of sink-failing: the output."},
    {"GPUWATCH_GPU", "Minor of the GPU's node."},
    {"GPUWATCH_CGROUP_ID", "Cgroup of the process."},
    {"GPUWATCH_CONTAINER_ID", "Its container."},
    {"GPUWATCH_PID", "Process id in the initial namespace."},
    {"GPUWATCH_UID", "Real user id."},
    {"GPUWATCH_JSON", "The whole line of gpuwatch-json(5), unless turned off."},
};

class Entry {
 public:
  void add(std::string_view name, std::string_view value) {
    if (value.empty()) return;
    std::string& field = fields_.emplace_back();
    field.reserve(name.size() + 1 + value.size());
    field += name;
    field += '=';
    field += value;
  }
  int send() {
    std::vector<iovec> parts;
    for (std::string& field : fields_) parts.push_back({field.data(), field.size()});
    return ::sd_journal_sendv(parts.data(), static_cast<int>(parts.size()));
  }

 private:
  std::vector<std::string> fields_;
};

MessageId id_of(ItemKind kind) {
  switch (kind) {
    case ItemKind::kAlert:
      return MessageId::kAlertMessage;
    case ItemKind::kLoss:
      return MessageId::kLossMessage;
    case ItemKind::kEvent:
      break;
  }
  return MessageId::kEventMessage;
}

base::Status listening() {
  if (::access(kSocket, F_OK) == 0) return {};
  return base::Error::from_errno(std::string("no journal listens at ") + kSocket + "; use another sink");
}

}  // namespace

const MessageInfo& message_info(MessageId id) {
  return kMessages[static_cast<std::size_t>(id)];
}

int priority_of(Severity severity) {
  return 6 - static_cast<int>(severity);
}

base::Status journal_note(MessageId id, int priority, std::string_view text, std::string_view sink) {
  if (base::Status status = listening(); !status) return status;
  Entry entry;
  entry.add("MESSAGE", text);
  entry.add("MESSAGE_ID", message_info(id).id);
  entry.add("PRIORITY", std::to_string(priority));
  entry.add("SYSLOG_IDENTIFIER", "gpuwatchd");
  entry.add("GPUWATCH_SINK", sink);
  if (const int sent = entry.send(); sent < 0) return base::Error::from_errno("journal", -sent);
  return {};
}

base::Result<std::unique_ptr<Sink>> JournalSink::open(const JournalOptions& options) {
  if (base::Status status = listening(); !status) return std::move(status.error());
  return std::unique_ptr<Sink>(new JournalSink(options));
}

Outcome JournalSink::write(std::span<const ItemPtr> items) {
  if (base::Status status = listening(); !status) return Outcome::again(std::move(status.error()));
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Item& item = *items[i];
    Entry entry;
    entry.add("MESSAGE", item.text.empty() ? item.json : item.text);
    entry.add("MESSAGE_ID", message_info(id_of(item.kind)).id);
    entry.add("PRIORITY", std::to_string(priority_of(item.severity)));
    entry.add("SYSLOG_IDENTIFIER", options_.identifier);
    entry.add("GPUWATCH_KIND", item_kind_name(item.kind));
    entry.add("GPUWATCH_EVENT", item.event);
    entry.add("GPUWATCH_RULE", item.rule);
    entry.add("GPUWATCH_SEVERITY", severity_name(item.severity));
    entry.add("GPUWATCH_VERDICT", item.verdict);
    entry.add("GPUWATCH_ATTACK", item.attack);
    entry.add("GPUWATCH_ALERT_ID", item.alert_id);
    entry.add("GPUWATCH_REASON", item.reason);
    if (item.lost != 0) entry.add("GPUWATCH_LOST", std::to_string(item.lost));
    if (item.gpu_minor >= 0) entry.add("GPUWATCH_GPU", std::to_string(item.gpu_minor));
    if (item.cgroup_id != 0) entry.add("GPUWATCH_CGROUP_ID", std::to_string(item.cgroup_id));
    entry.add("GPUWATCH_CONTAINER_ID", item.container_id);
    if (item.pid != 0) entry.add("GPUWATCH_PID", std::to_string(item.pid));
    if (item.uid >= 0) entry.add("GPUWATCH_UID", std::to_string(item.uid));
    if (options_.json) entry.add("GPUWATCH_JSON", item.json);
    if (const int sent = entry.send(); sent < 0) return Outcome::again(base::Error::from_errno("journal", -sent), i);
  }
  return Outcome::all();
}

std::string journal_page() {
  std::string out =
      "<!-- SPDX-License-Identifier: Apache-2.0 -->\n# Entries in the journal\n\n"
      "Made from message_ids.def and journal_sink.cpp; change those, then `GPUWATCH_REGEN=1 "
      "build/user/tests/unit-sink\n"
      "--gtest_filter=JournalPage.*`.\n\n"
      "`journalctl MESSAGE_ID=...` shows one kind, `journalctl GPUWATCH_RULE=... -o json` the alerts of a rule.\n\n"
      "| MESSAGE_ID | name | meaning |\n|---|---|---|\n";
  for (const MessageInfo& message : kMessages) {
    out += "| `" + std::string(message.id) + "` | ";
    out += std::string(message.name) + " | " + std::string(message.meaning) + " |\n";
  }
  out += "\n| field | meaning |\n|---|---|\n";
  for (const FieldInfo& field : kFields)
    out += "| `" + std::string(field.name) + "` | " + std::string(field.meaning) + " |\n";
  out += "\nA field whose value is not known is left out.\n";
  return out;
}

}  // namespace gpuwatch::sink
