// SPDX-License-Identifier: Apache-2.0
// exec and posix_spawn: carries the recorder into the new program even when
// the caller gives it an environment of its own, and notes programs that no
// preloaded library can follow. Everything lives on the caller's stack: the
// caller may be the child of vfork().
#define _GNU_SOURCE
#include <alloca.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "raw.h"
#include "recorder.h"

enum { kEnvMax = 16384, kSaved = 5, kPreload = GPUWATCH_PATH_MAX, kFds = 1024 };

extern char** environ;

static int (*next_execve)(const char*, char* const[], char* const[]);
static int (*next_execvpe)(const char*, char* const[], char* const[]);
static int (*next_fexecve)(int, char* const[], char* const[]);
static int (*next_execveat)(int, const char*, char* const[], char* const[], int);
static int (*next_spawn)(pid_t*, const char*, const posix_spawn_file_actions_t*, const posix_spawnattr_t*,
                         char* const[], char* const[]);
static int (*next_spawnp)(pid_t*, const char*, const posix_spawn_file_actions_t*, const posix_spawnattr_t*,
                          char* const[], char* const[]);

void gw_exec_resolve(void) {
  GW_RESOLVE(next_execve, "execve");
  GW_RESOLVE(next_execvpe, "execvpe");
  GW_RESOLVE(next_fexecve, "fexecve");
  GW_RESOLVE(next_execveat, "execveat");
  GW_RESOLVE(next_spawn, "posix_spawn");
  GW_RESOLVE(next_spawnp, "posix_spawnp");
}

static bool is_variable(const char* item, const char* name, size_t len) {
  return strncmp(item, name, len) == 0 && item[len] == '=';
}

// Backing of the variables that are made anew; lives in the frame of the call.
struct new_env {
  char preload[kPreload + 16], fds[kFds];
  char** list;
};

// Ours first, then what the caller gave, without older values of ours.
static void build_env(struct new_env* env, char* const given[], size_t count) {
  static const char preload_name[] = "LD_PRELOAD";
  static const char fds_name[] = GW_ENV_FDS "=";
  const char *saved[kSaved], *theirs = "";
  size_t n = 0, nr_saved = gw_saved_env(saved, kSaved);
  for (size_t i = 0; i < count; i++)
    if (is_variable(given[i], preload_name, sizeof preload_name - 1)) theirs = given[i] + sizeof preload_name;
  bool loaded = strstr(theirs, GW_RECORDER_NAME) != NULL;
  size_t ours = strlen(gw_library), rest = strlen(theirs);
  if (sizeof preload_name + ours + 1 + rest + 1 > sizeof env->preload) rest = 0;
  char* at = env->preload;
  memcpy(at, preload_name, sizeof preload_name - 1);
  at += sizeof preload_name - 1;
  *at++ = '=';
  if (!loaded) {
    memcpy(at, gw_library, ours);
    at += ours;
    if (rest) *at++ = ':';
  }
  memcpy(at, theirs, rest);
  at[rest] = 0;
  env->list[n++] = env->preload;
  for (size_t i = 0; i < nr_saved; i++) env->list[n++] = (char*)saved[i];
  memcpy(env->fds, fds_name, sizeof fds_name);
  if (gw_files_env(env->fds + sizeof fds_name - 1, sizeof env->fds - sizeof fds_name)) env->list[n++] = env->fds;
  for (size_t i = 0; i < count; i++) {
    if (strncmp(given[i], "GPUWATCH_RECORD_", 16) == 0 || is_variable(given[i], preload_name, sizeof preload_name - 1))
      continue;
    env->list[n++] = given[i];
  }
  env->list[n] = NULL;
}

static size_t count_of(char* const list[]) {
  size_t n = 0;
  while (list && list[n]) n++;
  return n;
}

// Declares `fixed`, the environment for the new program, in the caller's frame.
#define FIX_ENV(given)                                         \
  char* const* fixed = (given);                                \
  struct new_env env_;                                         \
  size_t count_ = count_of(given);                             \
  if (gw_active && count_ <= kEnvMax && gw_library[0]) {       \
    env_.list = alloca((count_ + kSaved + 3) * sizeof(char*)); \
    build_env(&env_, given, count_);                           \
    fixed = env_.list;                                         \
  }

// Makes a shard if need be: that something was not followed must be told even
// when nothing else was seen.
static void note(const char* path, uint32_t reason) {
  struct gw_proc* p = gw_proc_get(NULL);
  size_t len = strlen(path);
  if (!p || len > GPUWATCH_PATH_MAX) return;
  struct gw_shard_entry* entry =
      gw_reserve(p, GW_ENTRY_NOT_FOLLOWED, (uint32_t)(sizeof(struct gw_shard_not_followed) + len));
  if (!entry) return;
  struct gw_shard_not_followed* what = (struct gw_shard_not_followed*)(entry + 1);
  what->time_ns = gw_now_ns();
  what->reason = reason;
  what->tgid = (uint32_t)GW_SYS_0(SYS_getpid);
  what->path_len = (uint32_t)len;
  what->pad = 0;
  memcpy(what + 1, path, len);
  gw_commit(entry);
}

// Reason why a preloaded library is not loaded into this ELF file; 0 if it is.
static uint32_t elf_reason(long fd, const Elf64_Ehdr* head) {
  Elf64_Phdr segment;
#if defined(__x86_64__)
  const unsigned machine = EM_X86_64;
#else
  const unsigned machine = EM_AARCH64;
#endif
  if (head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_machine != machine) return GW_NOT_WRONG_CLASS;
  for (unsigned i = 0; i < head->e_phnum && i < 64; i++) {
    if (GW_SYS_4(SYS_pread64, fd, &segment, sizeof segment, head->e_phoff + i * sizeof segment) != sizeof segment)
      return 0;
    if (segment.p_type == PT_INTERP) return 0;
  }
  return GW_NOT_STATIC;
}

// For such programs the loader ignores LD_PRELOAD paths that have a slash.
static bool gains_privileges(long fd) {
  struct stat st;
  char value[64];
  if (GW_SYS_2(SYS_fstat, fd, &st) != 0) return false;
  long uid = GW_SYS_0(SYS_getuid);
  if ((st.st_mode & S_ISUID) && st.st_uid != (uid_t)uid) return true;
  if ((st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && st.st_gid != (gid_t)GW_SYS_0(SYS_getgid))
    return true;
  return uid != 0 && GW_SYS_4(SYS_fgetxattr, fd, "security.capability", value, sizeof value) > 0;
}

void gw_note_program(int dirfd, const char* path, int flags) {
  union {
    Elf64_Ehdr elf;
    char text[256];
  } head;
  if (!path) return;
  for (int depth = 0; depth < 4; depth++) {
    long fd = (flags & AT_EMPTY_PATH) && !*path ? GW_SYS_3(SYS_fcntl, dirfd, F_DUPFD_CLOEXEC, 0)
                                                : GW_SYS_4(SYS_openat, dirfd, path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0) return;  // the exec fails too, or is not ours to read
    memset(&head, 0, sizeof head);
    long got = GW_SYS_4(SYS_pread64, fd, &head, sizeof head - 1, 0);
    uint32_t reason = 0;
    if (got >= (long)sizeof head.elf && memcmp(head.elf.e_ident, ELFMAG, SELFMAG) == 0) {
      reason = gains_privileges(fd) ? GW_NOT_SETUID : elf_reason(fd, &head.elf);
      got = 0;
    }
    GW_SYS_1(SYS_close, fd);
    if (reason) note(*path ? path : "(descriptor)", reason);
    if (got < 3 || head.text[0] != '#' || head.text[1] != '!') return;
    // A script: what counts is its interpreter.
    char* at = head.text + 2;
    at += strspn(at, " \t");
    at[strcspn(at, " \t\n")] = 0;
    char next[sizeof head.text];
    strcpy(next, at);
    path = strcpy(alloca(sizeof next), next);
    dirfd = AT_FDCWD;
    flags = 0;
  }
}

// As execvp() searches, but only to look at the program.
static void note_in_path(const char* file) {
  char candidate[1024];
  if (!gw_active || !file) return;
  if (strchr(file, '/')) {
    gw_note_program(AT_FDCWD, file, 0);
    return;
  }
  const char* dirs = "/bin:/usr/bin";
  for (char** item = environ; item && *item; item++)
    if (is_variable(*item, "PATH", 4)) dirs = *item + 5;
  size_t file_len = strlen(file);
  while (*dirs) {
    size_t len = strcspn(dirs, ":");
    if (len + file_len + 2 <= sizeof candidate) {
      memcpy(candidate, dirs, len);
      size_t at = len;
      if (len) candidate[at++] = '/';
      memcpy(candidate + at, file, file_len + 1);
      if (GW_SYS_3(SYS_faccessat, AT_FDCWD, candidate, X_OK) == 0) {
        gw_note_program(AT_FDCWD, candidate, 0);
        return;
      }
    }
    dirs += len + (dirs[len] == ':');
  }
}

// This image ends when the exec succeeds; a failed one returns and takes it back.
static void mark_end(uint64_t time_ns) {
  bool foreign = true;
  if (!gw_active || !gw_started()) return;
  struct gw_proc* p = gw_proc_get(&foreign);
  if (p && !foreign) __atomic_store_n(&p->shard->ended_ns, time_ns, __ATOMIC_RELAXED);
}

// What an exec that came back returns.
static int failed(int ret) {
  int saved = errno;
  mark_end(0);
  errno = saved;
  return ret;
}

static int do_execve(const char* path, char* const argv[], char* const envp[]) {
  FIX_ENV(envp)
  if (gw_active) gw_note_program(AT_FDCWD, path, 0);
  mark_end(gw_now_ns());
  if (next_execve) return failed(next_execve(path, argv, fixed));
  errno = (int)-GW_SYS_3(SYS_execve, path, argv, fixed);
  return failed(-1);
}

// The search itself is left to libc: its rules for unreadable and script files
// are not ours to repeat.
static int do_execvpe(const char* file, char* const argv[], char* const envp[]) {
  FIX_ENV(envp)
  note_in_path(file);
  mark_end(gw_now_ns());
  if (next_execvpe) return failed(next_execvpe(file, argv, fixed));
  errno = ENOSYS;
  return -1;
}

GW_EXPORT int execve(const char* path, char* const argv[], char* const envp[]) {
  return do_execve(path, argv, envp);
}
GW_EXPORT int execv(const char* path, char* const argv[]) {
  return do_execve(path, argv, environ);
}
GW_EXPORT int execvp(const char* file, char* const argv[]) {
  return do_execvpe(file, argv, environ);
}
GW_EXPORT int execvpe(const char* file, char* const argv[], char* const envp[]) {
  return do_execvpe(file, argv, envp);
}

GW_EXPORT int fexecve(int fd, char* const argv[], char* const envp[]) {
  FIX_ENV(envp)
  if (gw_active) gw_note_program(fd, "", AT_EMPTY_PATH);
  mark_end(gw_now_ns());
  if (next_fexecve) return failed(next_fexecve(fd, argv, fixed));
  errno = ENOSYS;
  return -1;
}

GW_EXPORT int execveat(int dirfd, const char* path, char* const argv[], char* const envp[], int flags) {
  FIX_ENV(envp)
  if (gw_active) gw_note_program(dirfd, path, flags);
  mark_end(gw_now_ns());
  if (next_execveat) return failed(next_execveat(dirfd, path, argv, fixed, flags));
  errno = (int)-GW_SYS_6(SYS_execveat, dirfd, path, argv, fixed, flags, 0);
  return failed(-1);
}

// The list forms: the arguments up to NULL become an array on the stack.
#define COLLECT_ARGS(first)                     \
  va_list args;                                 \
  size_t n = 1;                                 \
  va_start(args, first);                        \
  while (va_arg(args, char*)) n++;              \
  va_end(args);                                 \
  char** argv = alloca((n + 1) * sizeof *argv); \
  argv[0] = (char*)first;                       \
  va_start(args, first);                        \
  for (size_t i = 1; i <= n; i++) argv[i] = va_arg(args, char*)

GW_EXPORT int execl(const char* path, const char* arg, ...) {
  COLLECT_ARGS(arg);
  va_end(args);
  return do_execve(path, argv, environ);
}
GW_EXPORT int execlp(const char* file, const char* arg, ...) {
  COLLECT_ARGS(arg);
  va_end(args);
  return do_execvpe(file, argv, environ);
}
GW_EXPORT int execle(const char* path, const char* arg, ...) {
  COLLECT_ARGS(arg);
  char* const* envp = va_arg(args, char* const*);
  va_end(args);
  return do_execve(path, argv, envp);
}

// libc's spawn does not call our execve(), so the environment is mended here.
GW_EXPORT int posix_spawn(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
                          const posix_spawnattr_t* attr, char* const argv[], char* const envp[]) {
  FIX_ENV(envp)
  if (!next_spawn) return ENOSYS;
  if (gw_active) gw_note_program(AT_FDCWD, path, 0);
  return next_spawn(pid, path, actions, attr, argv, fixed);
}

GW_EXPORT int posix_spawnp(pid_t* pid, const char* file, const posix_spawn_file_actions_t* actions,
                           const posix_spawnattr_t* attr, char* const argv[], char* const envp[]) {
  FIX_ENV(envp)
  if (!next_spawnp) return ENOSYS;
  note_in_path(file);
  return next_spawnp(pid, file, actions, attr, argv, fixed);
}
