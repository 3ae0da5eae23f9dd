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
#include <limits>

#include "base/fd.h"
#include "cli/output.h"
#include "cli/signals.h"
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

// Signals that end this program come in `here()` only: none is lost between a
// look at it and a wait.
class SignalsInWaits {
 public:
  explicit SignalsInWaits(bool wanted) {
    sigset_t ending;
    ::sigemptyset(&ending);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&ending, number);
    ::sigprocmask(SIG_BLOCK, wanted ? &ending : nullptr, &before_);
  }
  SignalsInWaits(const SignalsInWaits&) = delete;
  SignalsInWaits& operator=(const SignalsInWaits&) = delete;
  ~SignalsInWaits() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  const sigset_t* here() const { return &before_; }

 private:
  sigset_t before_{};
};

struct Child {
  pid_t pid;
  int out, said;
  const TakeAnswer& take;
  const Enough& enough;
};

// Until there is nothing more to come from `out`, or from `said` where there is
// no `take`. `stays`: it said that it gives up, and did not end.
Status read_answers(const Child& child, const sigset_t* signals, bool& stays) {
  probe::AnswerLines lines(child.enough ? std::numeric_limits<std::uint64_t>::max() : kOutputMax);
  std::vector<char> bytes(1 << 16);
  // Of our own output it is told when the reader has gone.
  const bool passes_on = child.take && child.enough;
  bool told = false;
  pollfd wait[3] = {{child.out, POLLIN, 0}, {child.said, POLLIN, 0}, {passes_on ? STDOUT_FILENO : -1, 0, 0}};
  while (wait[0].fd >= 0 || (!child.take && wait[1].fd >= 0)) {
    if (!told && child.enough && (stop_wanted() || child.enough())) told = ::kill(child.pid, SIGTERM) == 0;
    if (::ppoll(wait, 3, nullptr, signals) < 0) {
      if (errno == EINTR) continue;
      return Error::from_errno("waiting for gpuwatch-probe");
    }
    if (wait[2].fd >= 0 && wait[2].revents != 0) {
      if ((wait[2].revents & POLLNVAL) == 0 && !told) told = ::kill(child.pid, SIGTERM) == 0;
      wait[2].fd = -1;
    }
    if (wait[1].fd >= 0 && wait[1].revents != 0) {
      const ssize_t got = ::read(child.said, bytes.data(), 1);
      if (got < 0 && errno == EINTR) continue;
      if (got == 1 && !ends_now(child.pid)) {
        stays = true;
        return {};
      }
      wait[1].fd = -1;
    }
    if (wait[0].fd < 0 || wait[0].revents == 0) continue;
    const ssize_t got = ::read(child.out, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error::from_errno("reading what gpuwatch-probe prints");
    if (got == 0) return lines.end();
    if (Status status = lines.feed({bytes.data(), static_cast<std::size_t>(got)}, child.take); !status.ok())
      return status;
  }
  return {};
}

}  // namespace

Result<int> run_probe_program(const std::vector<std::string>& arguments, const TakeAnswer& take, const Enough& enough) {
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
  // Before the fork: the child begins with them blocked, and a signal that comes
  // before it is ready ends it in order, too.
  const SignalsInWaits signals(static_cast<bool>(enough));
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
  Status read = read_answers({child, out.get(), said.get(), take, enough}, signals.here(), stays);
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
