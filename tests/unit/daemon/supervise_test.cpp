// SPDX-License-Identifier: Apache-2.0
// Unit tests of the supervisor with a shell as its child: descriptors outlive
// the child, a child that ends in order is not started again.
#include "daemon/supervise.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace gpuwatch::daemon {
namespace {

// In a process of its own: it blocks signals.
int supervised(const std::string& script) {
  const pid_t child = ::fork();
  if (child == 0) {
    auto status = supervise({"/usr/bin/python3", {"-c", script}, 5});
    ::_exit(status.ok() ? *status : 99);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Supervise, DescriptorsOutliveTheChild) {
  if (::access("/usr/bin/python3", X_OK) != 0) GTEST_SKIP() << "no python3 to be the child";
  const std::string script = R"(
import array, os, socket, sys
names = os.environ.get('LISTEN_FDNAMES', '')
if names:
    ok = names == 'ring' and os.environ['LISTEN_FDS'] == '1' and int(os.environ['LISTEN_PID']) == os.getpid()
    sys.exit(0 if ok and os.pread(3, 5, 0) == b'still' else 7)
fd = os.memfd_create('x')
os.write(fd, b'still')
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.connect('\0' + os.environ['NOTIFY_SOCKET'][1:])
s.sendmsg([b'FDSTORE=1\nFDNAME=ring'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [fd]))])
s.send(b'READY=1')
os.kill(os.getpid(), 9)
)";
  EXPECT_EQ(supervised(script), 0);
}

TEST(Supervise, EndsWithItsChild) {
  if (::access("/usr/bin/python3", X_OK) != 0) GTEST_SKIP() << "no python3 to be the child";
  EXPECT_EQ(supervised("import sys; sys.exit(0)"), 0);
  EXPECT_EQ(supervised("import sys; sys.exit(2)"), 2) << "never ready: it would fail again";
}

}  // namespace
}  // namespace gpuwatch::daemon
