// SPDX-License-Identifier: Apache-2.0
// `gpuwatch probe`: starts gpuwatch-probe, which lies beside this program, and
// says what ended it. With --pid that one asks another process's agent. It never touches a GPU itself.
#include <sys/wait.h>
#include <unistd.h>

#include <climits>

#include "cli/commands.h"
#include "cli/output.h"

namespace gpuwatch::cli {

base::Result<int> run_probe(const Flags& flags) {
  char self[PATH_MAX];
  const ssize_t length = ::readlink("/proc/self/exe", self, sizeof self - 1);
  if (length <= 0) return base::Error::from_errno("/proc/self/exe");
  std::string program(self, static_cast<std::size_t>(length));
  program = program.substr(0, program.rfind('/') + 1) + "gpuwatch-probe";
  const auto pid = flags.number("pid");
  if (flags.has("kernel") && !flags.has("image") && !pid)
    return base::Error(base::Code::kBadInput, "--kernel wants --image or --pid");
  std::vector<std::string> words{program};
  for (const char* name : {"json", "selftest"})
    if (flags.has(name)) words.push_back(std::string("--") + name);
  for (const char* name : {"image", "kernel"})
    if (flags.has(name)) words.push_back(std::string("--") + name + "=" + flags.text(name));
  if (pid) words.push_back("--pid=" + std::to_string(*pid));
  if (const auto gpu = flags.number("gpu")) words.push_back("--gpu=" + std::to_string(*gpu));
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return base::Error::from_errno("fork");
  if (child == 0) {
    ::execv(program.c_str(), arguments.data());
    ::_exit(127);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return base::Error::from_errno("waiting for gpuwatch-probe");
  if (WIFSIGNALED(status))
    return base::Error(base::Code::kIo, "gpuwatch-probe was ended by signal " + std::to_string(WTERMSIG(status)) +
                                            " before it had a result; running it again does no harm");
  if (WEXITSTATUS(status) == 127)
    return base::Error(base::Code::kNotFound, program + " cannot be started; it is installed beside gpuwatch");
  return WEXITSTATUS(status);
}

}  // namespace gpuwatch::cli
