// SPDX-License-Identifier: Apache-2.0
// Processes and threads of a replay. Children are forked before any file is
// open, so a descriptor has one holder unless the recording says otherwise.
#include "runner.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "caller.h"
#include "script.h"

namespace gpuwatch::replay {

namespace {

using Clock = std::chrono::steady_clock;

struct Context {
  const Recording& recording;
  Shared& shared;
  const RunOptions& options;
  Clock::time_point start;
};

void complain(Shared& shared, const std::string& text) {
  shared.counts().errors.fetch_add(1);
  std::fprintf(stderr, "gw-replay: %s\n", text.c_str());
}

// Recorded names are bytes of strangers; the kernel takes any.
void take_name(const std::string& comm, std::string& current) {
  if (comm.empty() || comm == current) return;
  ::prctl(PR_SET_NAME, comm.c_str());
  current = comm;
}

void run_thread(const Context& context, const Thread& thread, int control, Descriptors& descriptors) {
  auto session = Session::bind(control, make_script(thread, context.options.delay_us));
  if (!session) return complain(context.shared, session.error().message());
  Caller caller(descriptors, context.shared, context.options.spoil);
  std::string name;
  for (const Step& step : thread.steps) {
    if (context.options.pace > 0)
      std::this_thread::sleep_until(
          context.start + std::chrono::nanoseconds(static_cast<std::int64_t>(
                              static_cast<double>(step.time_ns - context.recording.first_ns) / context.options.pace)));
    take_name(step.comm, name);
    caller.make(step);
  }
  const auto stat = session->unbind();
  if (!stat) return complain(context.shared, stat.error().message());
  // Bytes and values are compared by the caller already: here only a script
  // that was not used up counts anew.
  if (stat.value().answered + stat.value().mismatches != stat.value().calls)
    complain(context.shared, "the driver answered " + std::to_string(stat.value().answered) + " of " +
                                 std::to_string(stat.value().calls) + " calls");
}

bool fork_children(const Context& context, std::optional<std::size_t> parent);

void run_process(const Context& context, std::size_t index) {
  const Process& process = context.recording.processes[index];
  if (!fork_children(context, index)) return;
  const base::Fd control(::open("/dev/gwsim", O_RDWR | O_CLOEXEC));
  if (!control.valid())
    return complain(context.shared, base::Error::from_errno("/dev/gwsim (load gwsim.ko first)").message());
  Descriptors descriptors(context.recording, index, context.shared);
  std::vector<std::thread> threads;
  const Thread* main_thread = nullptr;
  for (const Thread& thread : process.threads) {
    if (thread.tid == process.tgid) {
      main_thread = &thread;
      continue;
    }
    threads.emplace_back([&] { run_thread(context, thread, control.get(), descriptors); });
  }
  if (main_thread != nullptr) run_thread(context, *main_thread, control.get(), descriptors);
  for (std::thread& thread : threads) thread.join();
  descriptors.release_all();
}

// Reaps every child; one that did not end well is an error of the replay.
void wait_children(Shared& shared) {
  int status = 0;
  for (pid_t pid = ::wait(&status); pid > 0; pid = ::wait(&status))
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
      complain(shared, "process " + std::to_string(pid) + " ended with status " + std::to_string(status));
}

bool fork_children(const Context& context, std::optional<std::size_t> parent) {
  for (std::size_t i = 0; i < context.recording.processes.size(); ++i) {
    if (context.recording.processes[i].parent != parent) continue;
    const pid_t pid = ::fork();
    if (pid < 0) {
      complain(context.shared, base::Error::from_errno("fork").message());
      return false;
    }
    if (pid > 0) continue;
    run_process(context, i);
    wait_children(context.shared);
    ::_exit(0);
  }
  return true;
}

}  // namespace

base::Status run(const Recording& recording, Shared& shared, const RunOptions& options) {
  const Context context{recording, shared, options, Clock::now()};
  std::fflush(nullptr);  // children must not write it again
  const bool forked = fork_children(context, std::nullopt);
  wait_children(shared);
  if (!forked) return base::Error(base::Code::kIo, "could not start all processes of the recording");
  return {};
}

}  // namespace gpuwatch::replay
