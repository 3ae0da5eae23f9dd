// SPDX-License-Identifier: Apache-2.0
// `gpuwatch`: chooses the command, prints its error once, gives the exit code:
// 0 in order, 1 a finding (records were lost, a check failed), 2 trouble.
#include <cstdio>
#include <exception>

#include "base/io.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/signals.h"
#include "identify/worker.h"

namespace gpuwatch::cli {
namespace {

using Command = base::Result<int> (*)(const Flags&);

struct Entry {
  std::string_view name;
  Command run;
};

constexpr Entry kEntries[] = {{"tail", run_tail},     {"record", run_record}, {"decode", run_decode},
                              {"top", run_top},       {"status", run_status}, {"attach", run_attach},
                              {"detach", run_detach}, {"doctor", run_doctor}, {"baseline", run_baseline},
                              {"cgroup", run_cgroup}, {"hash", run_hash},     {"probe", run_probe},
                              {"listen", run_listen}};

int run(int argc, char** argv) {
  ParseOutcome outcome = parse_flags({argv + 1, argv + argc});
  if (!outcome.flags) {
    (void)base::write_all(outcome.exit_code == 0 ? 1 : 2, outcome.text).ok();
    return outcome.exit_code;
  }
  install_signals();
  for (const Entry& entry : kEntries) {
    if (entry.name != outcome.flags->command()) continue;
    auto code = entry.run(*outcome.flags);
    if (code.ok()) return *code;
    say(code.error().message());
    return kExitTrouble;
  }
  say("defect: command " + outcome.flags->command() + " is in flags.def and has no code");
  return kExitTrouble;
}

}  // namespace
}  // namespace gpuwatch::cli

int main(int argc, char** argv) {
  if (gpuwatch::identify::is_worker(argc, argv)) return gpuwatch::identify::worker_main();
  try {
    return gpuwatch::cli::run(argc, argv);
  } catch (const std::exception& error) {
    // Out of memory, mostly; rooms throw nothing on purpose.
    std::fprintf(stderr, "gpuwatch: %s\n", error.what());
    return gpuwatch::cli::kExitTrouble;
  }
}
