// SPDX-License-Identifier: Apache-2.0
#include "daemon/log.h"

#include <unistd.h>

#include <cstdlib>

#include "base/io.h"

namespace gpuwatch::daemon {

void say(Level level, const std::string& text) {
  // Under systemd a number in front is the priority, for people a name is.
  static const bool kJournal = std::getenv("JOURNAL_STREAM") != nullptr;
  std::string line = kJournal ? "<" + std::to_string(static_cast<int>(level)) + ">" : "gpuwatchd: ";
  if (!kJournal && level == Level::kError) line += "error: ";
  if (!kJournal && level == Level::kWarning) line += "warning: ";
  line += text + "\n";
  (void)base::write_all(STDERR_FILENO, line).ok();
}

}  // namespace gpuwatch::daemon
