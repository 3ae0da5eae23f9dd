// SPDX-License-Identifier: Apache-2.0
// JournalSink: items as entries of the systemd journal, with fields to filter by
// and a MESSAGE_ID by kind (message_ids.def, JOURNAL.md). Values keep their
// bytes; the journal's protocol cannot be broken by them.
#pragma once

#include <sys/uio.h>

#include <functional>
#include <string_view>

#include "sink/sink.h"

namespace gpuwatch::sink {

enum class MessageId : std::uint8_t {
#define MESSAGE(enumerator, name, id, meaning) enumerator,
#include "sink/message_ids.def"
#undef MESSAGE
  kCount,
};

struct MessageInfo {
  std::string_view name;
  std::string_view id;
  std::string_view meaning;
};

const MessageInfo& message_info(MessageId id);

// syslog's numbers, as PRIORITY has them: 6 for info to 2 for critical.
int priority_of(Severity severity);

// An entry of the daemon's own; `sink` is the output that it is about, if any.
base::Status journal_note(MessageId id, int priority, std::string_view text, std::string_view sink = {});

struct JournalOptions {
  bool events = false;  // every event, not only alerts and losses
  bool json = true;     // the whole JSON line in GPUWATCH_JSON
  std::string identifier = "gpuwatchd";
};

class JournalSink : public Sink {
 public:
  // Fails where no journal listens.
  static base::Result<std::unique_ptr<Sink>> open(const JournalOptions& options);

  std::string_view name() const override { return "journal"; }
  bool wants(const Item& item) const override { return options_.events || item.kind != ItemKind::kEvent; }
  Outcome write(std::span<const ItemPtr> items) override;

 private:
  explicit JournalSink(JournalOptions options) : options_(std::move(options)) {}

  JournalOptions options_;
};

// JOURNAL.md, made from the table.
std::string journal_page();

}  // namespace gpuwatch::sink
