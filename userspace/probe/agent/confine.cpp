// SPDX-License-Identifier: Apache-2.0
#include "probe/agent/confine.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>

namespace gpuwatch::probe::agent {

namespace {

constexpr uid_t kNobody = 65534;

bool drop_rights() {
  // Root without the right to become somebody else keeps its name and no capability: gpuwatchd starts the probe so.
  if (::geteuid() == 0 &&
      (::setgroups(0, nullptr) != 0 || ::setresgid(kNobody, kNobody, kNobody) != 0 ||
       ::setresuid(kNobody, kNobody, kNobody) != 0) &&
      errno != EPERM)
    return false;
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[2] = {};
  return ::syscall(SYS_capset, &head, none) == 0 && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

// Who stays the same user could still open that user's files and trace the user's processes, the watched one among
// them: by name or number nothing is reached any more. A call that is not listed does not exist (ENOSYS), for which C
// libraries have another way; nothing is killed for one.
bool filter_calls() {
  scmp_filter_ctx context = ::seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
  if (context == nullptr) return false;
  int error = 0;
  const auto allow = [&](std::initializer_list<int> calls) {
    for (const int call : calls)
      if (error == 0) error = ::seccomp_rule_add(context, SCMP_ACT_ALLOW, call, 0);
  };
  // The library's macros for conditions are C that clang refuses.
  const auto allow_if = [&](int call, const scmp_arg_cmp& condition) {
    if (error == 0) error = ::seccomp_rule_add_array(context, SCMP_ACT_ALLOW, call, 1, &condition);
  };
  // What is open.
  allow({SCMP_SYS(read), SCMP_SYS(readv), SCMP_SYS(pread64), SCMP_SYS(write), SCMP_SYS(writev), SCMP_SYS(lseek),
         SCMP_SYS(fstat), SCMP_SYS(newfstatat), SCMP_SYS(close), SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(sendto),
         SCMP_SYS(sendmsg), SCMP_SYS(recvfrom), SCMP_SYS(recvmsg)});
  for (const int command : {F_DUPFD_CLOEXEC, F_GETFD, F_GETFL})
    allow_if(SCMP_SYS(fcntl), {1, SCMP_CMP_EQ, static_cast<scmp_datum_t>(command), 0});
  // Is the output a terminal?
  allow_if(SCMP_SYS(ioctl), {1, SCMP_CMP_EQ, static_cast<scmp_datum_t>(TCGETS), 0});
  // Has the watched process ended?
  allow({SCMP_SYS(pidfd_open)});
  // Memory, none of which can be executed; threads, and no other process.
  for (const int call : {SCMP_SYS(mmap), SCMP_SYS(mprotect)}) allow_if(call, {2, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0});
  allow({SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise), SCMP_SYS(brk), SCMP_SYS(futex),
         SCMP_SYS(set_robust_list), SCMP_SYS(rseq), SCMP_SYS(sched_yield), SCMP_SYS(sched_getaffinity), SCMP_SYS(exit),
         SCMP_SYS(exit_group), SCMP_SYS(restart_syscall)});
  allow_if(SCMP_SYS(clone), {0, SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD});
  // Time, random numbers, who am I.
  allow({SCMP_SYS(clock_gettime), SCMP_SYS(clock_nanosleep), SCMP_SYS(nanosleep), SCMP_SYS(gettimeofday),
         SCMP_SYS(getrandom), SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(getuid), SCMP_SYS(geteuid), SCMP_SYS(getgid),
         SCMP_SYS(getegid), SCMP_SYS(sysinfo), SCMP_SYS(uname)});
  // What abort() needs to end this process by its own signal.
  allow({SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigreturn), SCMP_SYS(sigaltstack)});
  allow_if(SCMP_SYS(tgkill), {0, SCMP_CMP_EQ, static_cast<scmp_datum_t>(::getpid()), 0});
  for (const int call : {SCMP_SYS(open), SCMP_SYS(openat), SCMP_SYS(execve), SCMP_SYS(socket), SCMP_SYS(prlimit64)})
    if (error == 0) error = ::seccomp_rule_add(context, SCMP_ACT_ERRNO(EPERM), call, 0);
  if (error == 0) error = ::seccomp_load(context);
  ::seccomp_release(context);
  errno = -error;
  return error == 0;
}

}  // namespace

bool confine() {
  const rlimit none{0, 0};
  if (::setrlimit(RLIMIT_CORE, &none) != 0 || !drop_rights()) return false;
  // A change of identity clears the wish to end with the parent, so it comes after; a parent that ended before is
  // told by the socket.
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  (void)::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  return kUnderSanitizer || filter_calls();
}

}  // namespace gpuwatch::probe::agent
