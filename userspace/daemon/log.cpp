// SPDX-License-Identifier: Apache-2.0
#include "daemon/log.h"

#include <unistd.h>

#include <cstdlib>

#include "base/io.h"

namespace gpuwatch::daemon {

namespace {

bool to_journal() {
  static const bool kJournal = std::getenv("JOURNAL_STREAM") != nullptr;
  return kJournal;
}

}  // namespace

void note(Level level, sink::MessageId id, const std::string& text, std::string_view sink) {
  if (to_journal() && sink::journal_note(id, static_cast<int>(level), text, sink).ok()) return;
  say(level, text);
}

void say(Level level, const std::string& text) {
  // Under systemd a number in front is the priority, for people a name is.
  const bool journal = to_journal();
  std::string line = journal ? "<" + std::to_string(static_cast<int>(level)) + ">" : "gpuwatchd: ";
  if (!journal && level == Level::kError) line += "error: ";
  if (!journal && level == Level::kWarning) line += "warning: ";
  line += text + "\n";
  (void)base::write_all(STDERR_FILENO, line).ok();
}

}  // namespace gpuwatch::daemon
