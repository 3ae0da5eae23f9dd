// SPDX-License-Identifier: Apache-2.0
// Start of the recorder in a process: reads its environment once, and gives
// each process its state and shard at the first NVIDIA call. What it cannot do
// it leaves out; the program must run as if it were not here.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "raw.h"
#include "recorder.h"

enum { kEnvBytes = GPUWATCH_PATH_MAX, kSavedEnv = 5, kLockTries = 1 << 18 };

bool gw_active;
char gw_dir[GPUWATCH_PATH_MAX];
char gw_library[GPUWATCH_PATH_MAX];
extern char gw_majors_file[GPUWATCH_PATH_MAX];
extern uint64_t gw_shard_max;

static struct gw_proc* page;
static char saved_env[kSavedEnv][kEnvBytes];
static size_t saved_env_count;

void gw_lock(struct gw_proc* p, uint64_t* mask) {
  // Signals are held off, so that a handler cannot wait for its own thread.
  uint64_t all = ~0ull;
  GW_SYS_4(SYS_rt_sigprocmask, SIG_SETMASK, &all, mask, sizeof all);
  // Bounded: the holder may be a killed child of vfork(). What the lock guards
  // is a path buffer and rare growth; a torn path only fails to open.
  for (int i = 0; i < kLockTries && __atomic_exchange_n(&p->lock, 1, __ATOMIC_ACQUIRE); i++) GW_SYS_0(SYS_sched_yield);
}

void gw_unlock(struct gw_proc* p, uint64_t mask) {
  __atomic_store_n(&p->lock, 0, __ATOMIC_RELEASE);
  GW_SYS_4(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof mask);
}

static void set_up(struct gw_proc* p, uint32_t pid) {
  uint64_t mask;
  gw_lock(p, &mask);
  bool mine = __atomic_load_n(&p->pid, __ATOMIC_RELAXED) == 0;
  if (mine) {
    // Others pass on seeing pid, so the shard must be there before it.
    struct gw_proc fresh = {.pid = pid};
    uint32_t parent;
    fresh.start_ns = gw_start_ns(pid, &parent);
    if (gw_shard_create(&fresh) != 0) fresh.broken = 1;
    p->shard = fresh.shard;
    p->start_ns = fresh.start_ns;
    p->cgroup_id = gw_first_cgroup(&p->cgroup_flags);
    p->image = fresh.image;
    p->broken = fresh.broken;
    __atomic_store_n(&p->pid, pid, __ATOMIC_RELEASE);
  }
  gw_unlock(p, mask);
  if (mine && !p->broken) {
    gw_refresh_cgroup(p);
    gw_write_task(p);
    gw_files_hold_all(p);
  }
}

// NULL when nothing is recorded. *foreign: the caller is not the process that
// the state belongs to (child of vfork()), so its descriptors are other ones.
struct gw_proc* gw_proc_get(bool* foreign) {
  struct gw_proc* p = page;
  if (!p) return NULL;
  uint32_t pid = (uint32_t)GW_SYS_0(SYS_getpid);
  uint32_t owner = __atomic_load_n(&p->pid, __ATOMIC_ACQUIRE);
  if (owner == 0) {
    set_up(p, pid);
    owner = __atomic_load_n(&p->pid, __ATOMIC_ACQUIRE);
  }
  if (foreign) *foreign = owner != pid;
  return p->broken || owner == 0 ? NULL : p;
}

// Whether this process has a shard already, without making one.
bool gw_started(void) {
  return page && __atomic_load_n(&page->pid, __ATOMIC_ACQUIRE) != 0;
}

// A child of fork() that inherits open NVIDIA files holds them from now on,
// whether or not it ever uses them.
static void in_forked_child(void) {
  int saved = errno;
  if (gw_files_any()) gw_proc_get(NULL);
  errno = saved;
}

size_t gw_saved_env(const char** out, size_t max) {
  size_t n = saved_env_count < max ? saved_env_count : max;
  for (size_t i = 0; i < n; i++) out[i] = saved_env[i];
  return n;
}

static const char* keep_env(const char* name) {
  const char* value = getenv(name);
  if (!value || !*value) return NULL;
  size_t name_len = strlen(name), value_len = strlen(value);
  if (name_len + value_len + 2 > kEnvBytes || saved_env_count == kSavedEnv) return NULL;
  char* at = saved_env[saved_env_count++];
  memcpy(at, name, name_len);
  at[name_len] = '=';
  memcpy(at + name_len + 1, value, value_len + 1);
  return at + name_len + 1;
}

static void find_library(void) {
  Dl_info info;
  if (dladdr(&gw_active, &info) == 0 || !info.dli_fname || strlen(info.dli_fname) >= sizeof gw_library) return;
  strcpy(gw_library, info.dli_fname);
}

__attribute__((constructor(101))) static void start(void) {
  gw_wrap_resolve();
  gw_exec_resolve();
  const char* dir = keep_env(GW_ENV_DIR);
  if (!dir || dir[0] != '/' || strlen(dir) > sizeof gw_dir - 64) return;
  strcpy(gw_dir, dir);
  find_library();
  const char* majors = keep_env(GW_ENV_MAJORS);
  if (majors && strlen(majors) < sizeof gw_majors_file) strcpy(gw_majors_file, majors);
  const char* max = keep_env(GW_ENV_MAX);
  if (max) {
    unsigned long mib = strtoul(max, NULL, 10);
    if (mib >= 1 && mib <= 1ul << 20) gw_shard_max = (uint64_t)mib << 20;
  }
  const char* images = keep_env(GW_ENV_IMAGES);
  if (images) {
    unsigned long mib = strtoul(images, NULL, 10);
    if (mib <= 1ul << 20) gw_images_max = (uint64_t)mib << 20;
  }
  const char* plan = keep_env(GW_ENV_PLAN);
  gw_plan_load(plan);

  void* map = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) return;
  if (madvise(map, (size_t)sysconf(_SC_PAGESIZE), MADV_WIPEONFORK) != 0) return;  // Linux before 4.14
  if (pthread_atfork(NULL, NULL, in_forked_child) != 0) return;
  page = map;
  gw_active = true;
  const char* inherited = getenv(GW_ENV_FDS);
  if (inherited) {
    gw_files_adopt(inherited);
    unsetenv(GW_ENV_FDS);
    if (gw_files_any()) gw_proc_get(NULL);
  }
}

// A lower bound of the end: after exit() other destructors may still call the
// driver. A process that is killed leaves no mark.
void gw_mark_end(void) {
  struct gw_proc* p = page;
  if (p && p->shard && __atomic_load_n(&p->pid, __ATOMIC_ACQUIRE) == (uint32_t)GW_SYS_0(SYS_getpid))
    __atomic_store_n(&p->shard->ended_ns, gw_now_ns(), __ATOMIC_RELAXED);
}

__attribute__((destructor)) static void end(void) {
  gw_mark_end();
}
