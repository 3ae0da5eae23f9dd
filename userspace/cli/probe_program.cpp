// SPDX-License-Identifier: Apache-2.0
#include "cli/probe_program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "base/fd.h"
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

Status read_answers(int fd, const TakeAnswer& take) {
  probe::AnswerLines lines(kOutputMax);
  std::vector<char> bytes(1 << 16);
  for (;;) {
    const ssize_t got = ::read(fd, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error::from_errno("reading what gpuwatch-probe prints");
    if (got == 0) return lines.end();
    if (Status status = lines.feed({bytes.data(), static_cast<std::size_t>(got)}, take); !status.ok()) return status;
  }
}

}  // namespace

Result<int> run_probe_program(const std::vector<std::string>& arguments, const TakeAnswer& take) {
  auto program = path_of_program();
  if (!program) return std::move(program.error());
  std::vector<std::string> words{*program};
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
    if (take && ::dup2(in.get(), STDOUT_FILENO) < 0) ::_exit(127);
    ::execv(program->c_str(), argv.data());
    ::_exit(127);
  }
  in.reset();
  Status read;
  if (take) read = read_answers(out.get(), take);
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
