// SPDX-License-Identifier: Apache-2.0
#include "cli/probe_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "base/fd.h"
#include "cli/output.h"
#include "probe/answer.h"

namespace gpuwatch::cli {

using base::Code;
using base::Error;
using base::Result;
using base::Status;

namespace {

// More than any machine's code makes: a million lines of a kilobyte.
constexpr std::uint64_t kOutputMax = 1ull << 30;

Result<std::string> path_of_program() {
  char self[PATH_MAX];
  const ssize_t length = ::readlink("/proc/self/exe", self, sizeof self - 1);
  if (length <= 0) return Error::from_errno("/proc/self/exe");
  const std::string program(self, static_cast<std::size_t>(length));
  return program.substr(0, program.rfind('/') + 1) + "gpuwatch-probe";
}

constexpr int kGaveUp = 14;  // of gpuwatch-probe, see its README
constexpr int kEndsWithinMs = 2000;

// After it said that it gives up and ends.
bool ends_now(pid_t child) {
  const base::Fd process(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  if (!process.valid()) return true;
  pollfd wait{process.get(), POLLIN, 0};
  int ready;
  while ((ready = ::poll(&wait, 1, kEndsWithinMs)) < 0 && errno == EINTR) {
  }
  return ready != 0;
}

// Until there is nothing more to come from `out`, or from `said` where there is
// no `take`. `stays`: it said that it gives up, and did not end.
Status read_answers(pid_t child, int out, int said, const TakeAnswer& take, bool& stays) {
  probe::AnswerLines lines(kOutputMax);
  std::vector<char> bytes(1 << 16);
  pollfd wait[2] = {{out, POLLIN, 0}, {said, POLLIN, 0}};
  while (wait[0].fd >= 0 || (!take && wait[1].fd >= 0)) {
    if (::poll(wait, 2, -1) < 0) {
      if (errno == EINTR) continue;
      return Error::from_errno("waiting for gpuwatch-probe");
    }
    if (wait[1].fd >= 0 && wait[1].revents != 0) {
      const ssize_t got = ::read(said, bytes.data(), 1);
      if (got < 0 && errno == EINTR) continue;
      if (got == 1 && !ends_now(child)) {
        stays = true;
        return {};
      }
      wait[1].fd = -1;
    }
    if (wait[0].fd < 0 || wait[0].revents == 0) continue;
    const ssize_t got = ::read(out, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error::from_errno("reading what gpuwatch-probe prints");
    if (got == 0) return lines.end();
    if (Status status = lines.feed({bytes.data(), static_cast<std::size_t>(got)}, take); !status.ok()) return status;
  }
  return {};
}

}  // namespace

Result<int> run_probe_program(const std::vector<std::string>& arguments, const TakeAnswer& take) {
  auto program = path_of_program();
  if (!program) return std::move(program.error());
  int gave_up[2];
  if (::pipe2(gave_up, O_CLOEXEC) != 0) return Error::from_errno("pipe");
  const base::Fd said(gave_up[0]);
  base::Fd says(gave_up[1]);
  std::vector<std::string> words{*program, "--gave-up-fd=" + std::to_string(says.get())};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int ends[2] = {-1, -1};
  if (take && ::pipe2(ends, O_CLOEXEC) != 0) return Error::from_errno("pipe");
  base::Fd out(ends[0]), in(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return Error::from_errno("fork");
  if (child == 0) {
    // When this program is killed, nobody is left to read what that one finds.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::fcntl(says.get(), F_SETFD, 0);
    if (take && ::dup2(in.get(), STDOUT_FILENO) < 0) ::_exit(127);
    ::execv(program->c_str(), argv.data());
    ::_exit(127);
  }
  in.reset();
  says.reset();
  bool stays = false;
  Status read = read_answers(child, out.get(), said.get(), take, stays);
  if (stays) {
    say("gpuwatch-probe (process " + std::to_string(child) +
        ") can't be ended: its call hangs in the kernel; it holds the GPU until that comes back or the GPU is reset");
    return kGaveUp;
  }
  out.reset();
  if (!read.ok()) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return Error::from_errno("waiting for gpuwatch-probe");
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
    return Error(Code::kNotFound, *program + " cannot be started; it is installed beside gpuwatch");
  if (WIFSIGNALED(status) && (read.ok() || WTERMSIG(status) != SIGKILL))
    return Error(Code::kIo, "gpuwatch-probe was ended by signal " + std::to_string(WTERMSIG(status)) +
                                " before it had a result; running it again does no harm");
  if (!read.ok()) return std::move(read.error());
  return WEXITSTATUS(status);
}

}  // namespace gpuwatch::cli
