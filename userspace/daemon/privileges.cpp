// SPDX-License-Identifier: Apache-2.0
#include "daemon/privileges.h"

#include <cap-ng.h>
#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace gpuwatch::daemon {

using base::Code;
using base::Error;
using base::Status;

namespace {

// SYS_ADMIN: new copies of libcuda are probed as they come. PERFMON: the module.
// SYS_PTRACE, DAC_READ_SEARCH: /proc of other users, files that they mapped.
// NET_ADMIN: verdicts by netlink.
constexpr capng_act_t kAdd = CAPNG_ADD;
constexpr unsigned kKept[] = {CAP_SYS_ADMIN, CAP_PERFMON, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_NET_ADMIN};

}  // namespace

Status drop_privileges(const std::string& user, std::string& notes) {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Error::from_errno("no_new_privs");
  if (::geteuid() != 0) {
    notes = "not root: it keeps what it has";
    return {};
  }
  capng_clear(CAPNG_SELECT_BOTH);
  for (const unsigned capability : kKept)
    if (capng_update(kAdd, static_cast<capng_type_t>(CAPNG_EFFECTIVE | CAPNG_PERMITTED), capability) != 0)
      return Error(Code::kPermission, "capabilities: cannot choose them");
  const passwd* entry = user.empty() ? nullptr : ::getpwnam(user.c_str());
  if (entry == nullptr) {
    // Of the bounding set nothing is needed: no program gains capabilities here.
    if (capng_apply(CAPNG_SELECT_BOTH) != 0)
      return Error(Code::kPermission, "capabilities: the kernel refused to drop some; run as root");
    notes = "as root with 5 capabilities: there is no user " + user;
    return {};
  }
  const int failed = capng_change_id(static_cast<int>(entry->pw_uid), static_cast<int>(entry->pw_gid),
                                     static_cast<capng_flags_t>(CAPNG_DROP_SUPP_GRP | CAPNG_CLEAR_BOUNDING));
  if (failed != 0)
    return Error(Code::kPermission, "cannot become user " + user + " (step " + std::to_string(-failed) + ")");
  // Changing the user hides /proc/self from us, where the hash worker begins.
  (void)::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
  notes = "as user " + user + " with 5 capabilities";
  return {};
}

}  // namespace gpuwatch::daemon
