// SPDX-License-Identifier: Apache-2.0
#include "identify/sandbox.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>

#include "identify/worker_name.h"

namespace gpuwatch::identify {

namespace {

constexpr unsigned kNobody = 65534;

base::Status limit(int what, rlim_t value) {
  const rlimit bound{value, value};
  if (::setrlimit(static_cast<__rlimit_resource_t>(what), &bound) != 0) return base::Error::from_errno("setrlimit");
  return {};
}

base::Status drop_privileges() {
  if (::geteuid() == 0) {
    // A user namespace with few ids may not have nobody: then seccomp must do.
    (void)::setgroups(0, nullptr);
    if (::setresgid(kNobody, kNobody, kNobody) != 0 && errno != EINVAL && errno != EPERM)
      return base::Error::from_errno("setresgid");
    if (::setresuid(kNobody, kNobody, kNobody) != 0 && errno != EINVAL && errno != EPERM)
      return base::Error::from_errno("setresuid");
  }
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  if (::syscall(SYS_capset, &head, none) != 0) return base::Error::from_errno("capset");
  return {};
}

base::Status filter_system_calls() {
  scmp_filter_ctx context = ::seccomp_init(SCMP_ACT_KILL_PROCESS);
  if (context == nullptr) return base::Error(base::Code::kLimit, "seccomp_init failed");
  int error = 0;
  const auto allow = [&](int call) {
    if (error == 0) error = ::seccomp_rule_add(context, SCMP_ACT_ALLOW, call, 0);
  };
  // The library's macros for conditions are C that clang refuses.
  const auto allow_if = [&](int call, const scmp_arg_cmp& condition) {
    if (error == 0) error = ::seccomp_rule_add_array(context, SCMP_ACT_ALLOW, call, 1, &condition);
  };
  for (const int call :
       {SCMP_SYS(read),           SCMP_SYS(write),        SCMP_SYS(pread64),      SCMP_SYS(recvmsg),
        SCMP_SYS(sendmsg),        SCMP_SYS(sendto),       SCMP_SYS(recvfrom),     SCMP_SYS(munmap),
        SCMP_SYS(mremap),         SCMP_SYS(madvise),      SCMP_SYS(brk),          SCMP_SYS(futex),
        SCMP_SYS(exit),           SCMP_SYS(exit_group),   SCMP_SYS(rt_sigreturn), SCMP_SYS(close),
        SCMP_SYS(clock_gettime),  SCMP_SYS(gettimeofday), SCMP_SYS(getrandom),    SCMP_SYS(sched_yield),
        SCMP_SYS(restart_syscall)})
    allow(call);
  // Memory, but none that can be executed.
  for (const int call : {SCMP_SYS(mmap), SCMP_SYS(mprotect)}) allow_if(call, {2, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0});
  // What abort() needs to end this process by its own signal.
  for (const int call : {SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigaction), SCMP_SYS(getpid), SCMP_SYS(gettid)})
    allow(call);
  allow_if(SCMP_SYS(tgkill), {0, SCMP_CMP_EQ, static_cast<scmp_datum_t>(::getpid()), 0});
  // Refused without killing: libraries ask and live with a no.
  for (const int call :
       {SCMP_SYS(newfstatat), SCMP_SYS(openat), SCMP_SYS(ioctl), SCMP_SYS(sysinfo), SCMP_SYS(sched_getaffinity),
        SCMP_SYS(prlimit64), SCMP_SYS(fstat), SCMP_SYS(lseek), SCMP_SYS(umask), SCMP_SYS(readlink)})
    if (error == 0) error = ::seccomp_rule_add(context, SCMP_ACT_ERRNO(EPERM), call, 0);
  if constexpr (kAddressSanitizer)
    for (const int call : {SCMP_SYS(sigaltstack), SCMP_SYS(prctl)}) allow(call);
  if (error == 0) error = ::seccomp_load(context);
  ::seccomp_release(context);
  if (error != 0) return base::Error::from_errno("seccomp", -error);
  return {};
}

}  // namespace

base::Status enter_sandbox(unsigned long address_space) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() == 1 && ::getpid() != 1) return base::Error(base::Code::kNotFound, "the parent is gone");
#if defined(SYS_close_range)
  ::syscall(SYS_close_range, kWorkerFd + 1, ~0u, 0);
#endif
  if (base::Status status = limit(RLIMIT_CORE, 0); !status.ok()) return status;
  if (base::Status status = limit(RLIMIT_NOFILE, 32); !status.ok()) return status;
  if (base::Status status = limit(RLIMIT_NPROC, 0); !status.ok()) return status;
  if (address_space != 0)
    if (base::Status status = limit(RLIMIT_AS, address_space); !status.ok()) return status;
  if (base::Status status = drop_privileges(); !status.ok()) return status;
  // Changing the user id clears it.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_DUMPABLE, 0);
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return base::Error::from_errno("no_new_privs");
  return filter_system_calls();
}

}  // namespace gpuwatch::identify
