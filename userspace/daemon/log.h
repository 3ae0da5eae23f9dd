// SPDX-License-Identifier: Apache-2.0
// The daemon's own words, on standard error: one line each, with the level that
// systemd reads. What others said in it must be escaped by the caller.
#pragma once

#include <string>
#include <string_view>

#include "sink/journal_sink.h"

namespace gpuwatch::daemon {

enum class Level { kError = 3, kWarning = 4, kNotice = 5, kInfo = 6 };

void say(Level level, const std::string& text);
// The same as an entry of its own kind where standard error leads to the journal.
void note(Level level, sink::MessageId id, const std::string& text, std::string_view sink = {});

}  // namespace gpuwatch::daemon
