// SPDX-License-Identifier: Apache-2.0
// What the recorder is tried on: one scenario per name, on plain memory
// devices that the test declares to be NVIDIA nodes. Exits 0 when the program
// itself saw nothing unusual, so that the recorder's silence is tested too.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/random.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what)                                                                     \
  do {                                                                                  \
    if (!(what)) {                                                                      \
      fprintf(stderr, "subject: line %d: %s (%s)\n", __LINE__, #what, strerror(errno)); \
      _exit(1);                                                                         \
    }                                                                                   \
  } while (0)

#define RM_CONTROL 0xc020462a

extern char** environ;
static const char* self;

struct control {
  uint32_t client, object, cmd, flags;
  uint64_t params;
  uint32_t params_size, status;
};

// One recognisable call: `value` arrives in the record's argument bytes.
static void call(int fd, uint32_t value) {
  struct control c = {.client = (uint32_t)getpid(), .object = value};
  errno = 0;
  CHECK(ioctl(fd, RM_CONTROL, &c) == -1 && errno == ENOTTY);
}

static int node(void) {
  int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  CHECK(fd >= 0);
  return fd;
}

static void wait_ok(pid_t pid) {
  int status;
  CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static int basic(void) {
  int random = open("/dev/urandom", O_RDWR), bits = -1;
  CHECK(random >= 0 && ioctl(random, RNDGETENTCNT, &bits) == 0 && bits >= 0);
  char params[24] = "parameters of a control";
  struct control c = {.client = 1, .object = 2, .cmd = 3, .params = (uintptr_t)params, .params_size = sizeof params};
  CHECK(ioctl(random, RM_CONTROL, &c) == -1);
  int zero = open("/dev/zero", O_RDWR);
  void* map = mmap(NULL, 5000, PROT_READ | PROT_WRITE, MAP_PRIVATE, zero, 8192);
  CHECK(map != MAP_FAILED && ((char*)map)[4999] == 0);
  int ordinary = open("/proc/self/status", O_RDONLY);  // must leave no record
  CHECK(ordinary >= 0 && ioctl(ordinary, RM_CONTROL, &c) == -1);
  int copy = dup(random);
  close(random);
  CHECK(ioctl(copy, RM_CONTROL, &c) == -1 && errno == EINVAL);
  close(copy);
  close(zero);
  return 0;
}

// A call wrapped in NV_ESC_IOCTL_XFER_CMD.
static int xfer(void) {
  struct control c = {.client = 1, .object = 99};
  struct {
    uint32_t cmd, size;
    uint64_t ptr;
  } wrapper = {0x2a, sizeof c, (uintptr_t)&c};
  int fd = node();
  CHECK(ioctl(fd, 0xc01046d3, &wrapper) == -1);
  wrapper.ptr = 8;  // inner argument faults
  CHECK(ioctl(fd, 0xc01046d3, &wrapper) == -1);
  CHECK(ioctl(fd, 0xc01046d3, (void*)8) == -1);
  return 0;
}

static int bad_pointers(void) {
  int fd = node();
  struct control c = {.client = 1, .object = 5, .params = 8, .params_size = 64};
  errno = 0;
  CHECK(ioctl(fd, RM_CONTROL, (void*)8) == -1 && errno == ENOTTY);  // not EFAULT: the driver's own answer
  CHECK(ioctl(fd, RM_CONTROL, NULL) == -1 && errno == ENOTTY);
  CHECK(ioctl(fd, RM_CONTROL, &c) == -1 && errno == ENOTTY);
  c.params = (uintptr_t)&c;
  c.params_size = 0xffffffff;  // capped, and longer than the stack is deep
  CHECK(ioctl(fd, RM_CONTROL, &c) == -1 && errno == ENOTTY);
  char* page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(page != MAP_FAILED && munmap(page + 4096, 4096) == 0);
  CHECK(ioctl(fd, RM_CONTROL, page + 4096 - 16) == -1 && errno == ENOTTY);  // half of it readable
  return 0;
}

static int forks(void) {
  int fd = node();
  call(fd, 1);
  pid_t pid = fork();
  if (pid == 0) {
    call(fd, 2);
    usleep(1000);
    _exit(0);
  }
  close(fd);  // the child's reference is the last one
  wait_ok(pid);
  return 0;
}

static int exec_child(int argc, char** argv) {
  int fd = argc > 2 ? atoi(argv[2]) : node();
  call(fd, 100);
  return 0;
}

static int exec_keeps_fd(void) {
  int fd = open("/dev/null", O_RDWR);
  char number[16];
  call(fd, 1);
  snprintf(number, sizeof number, "%d", fd);
  char *argv[] = {(char*)self, "exec-child", number, NULL}, *none[] = {NULL};
  execve(self, argv, none);
  return 1;
}

// Every way into another program, each with an environment of its own or none.
static int exec_forms(void) {
  char *argv[] = {(char*)self, "exec-child", NULL}, *none[] = {NULL};
  for (int form = 0; form < 8; form++) {
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
      clearenv();
      switch (form) {
        case 0:
          execve(self, argv, none);
          break;
        case 1:
          execv(self, argv);
          break;
        case 2:
          execvp(self, argv);
          break;
        case 3:
          execl(self, self, "exec-child", NULL);
          break;
        case 4:
          execlp(self, self, "exec-child", NULL);
          break;
        case 5:
          execle(self, self, "exec-child", NULL, none);
          break;
        case 6:
          fexecve(open(self, O_RDONLY), argv, none);
          break;
        case 7:
          syscall(SYS_execve, self, argv, none);
          break;
      }
      _exit(2);
    }
    wait_ok(pid);
  }
  return 0;
}

static int spawns(void) {
  int fd = node();
  call(fd, 1);
  char *argv[] = {(char*)self, "exec-child", NULL}, *none[] = {NULL};
  pid_t pid;
  CHECK(posix_spawn(&pid, self, NULL, NULL, argv, none) == 0);
  wait_ok(pid);
  CHECK(posix_spawnp(&pid, self, NULL, NULL, argv, none) == 0);
  wait_ok(pid);
  pid = vfork();
  if (pid == 0) {
    close(fd);  // the child's own descriptor: the parent's stays open
    execve(self, argv, none);
    _exit(2);
  }
  wait_ok(pid);
  call(fd, 2);
  return 0;
}

static int static_children(char** argv) {
  pid_t pid;
  char *args[] = {argv[2], NULL}, *none[] = {NULL};
  CHECK(posix_spawn(&pid, argv[2], NULL, NULL, args, none) == 0);
  wait_ok(pid);
  args[0] = argv[3];
  CHECK(posix_spawn(&pid, argv[3], NULL, NULL, args, none) == 0);
  wait_ok(pid);
  return 0;
}

enum { kThreads = 8, kCalls = 12500 };

static void* calls(void* arg) {
  int fd = node();
  for (uint32_t i = 0; i < kCalls; i++) call(fd, i);
  close(fd);
  return arg;
}

static int threads(void) {
  pthread_t ids[kThreads];
  for (int i = 0; i < kThreads; i++) CHECK(pthread_create(&ids[i], NULL, calls, NULL) == 0);
  for (int i = 0; i < kThreads; i++) CHECK(pthread_join(ids[i], NULL) == 0);
  return 0;
}

static int killed(void) {
  int fd = node();
  for (uint32_t i = 0; i < 1000; i++) call(fd, i);
  kill(getpid(), SIGKILL);
  return 1;
}

static int crashed(void) {
  call(node(), 1);
  abort();
}

static int signal_fd, signal_calls;
static void on_signal(int number) {
  (void)number;
  int saved = errno;
  call(signal_fd, 0x80000000u + (uint32_t)signal_calls++);
  errno = saved;
}

static int signals(void) {
  signal_fd = node();
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  struct itimerval timer = {{0, 200}, {0, 200}};
  CHECK(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &timer, NULL) == 0);
  for (uint32_t i = 0; signal_calls < 200; i++) call(signal_fd, i);
  timer = (struct itimerval){{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &timer, NULL);
  printf("%d\n", signal_calls);
  return 0;
}

static int close_ranges(void) {
  int a = node(), b = node();
  call(a, 1);
  CHECK(close_range((unsigned)b, (unsigned)b, 0) == 0);
  call(a, 2);
  closefrom(3);
  int c = node();  // the recorder's own files were closed with the rest
  call(c, 3);
  return 0;
}

static int raw_syscalls(void) {
  long fd = syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR, 0);
  struct control c = {.client = 1, .object = 11};
  CHECK(fd >= 0);
  errno = 0;
  CHECK(syscall(SYS_ioctl, fd, RM_CONTROL, &c) == -1 && errno == ENOTTY);
  CHECK(syscall(SYS_close, fd) == 0);
  CHECK(syscall(SYS_gettid) == getpid() && syscall(SYS_close, 999) == -1 && errno == EBADF);
  return 0;
}

static int dlopened(char** argv) {
  void* library = dlopen(argv[2], RTLD_NOW);
  if (!library) fprintf(stderr, "%s\n", dlerror());
  CHECK(library);
  int (*entry)(uint32_t) = (int (*)(uint32_t))dlsym(library, "subject_library_call");
  CHECK(entry && entry(42) == 0);
  return 0;
}

static int received(void) {
  int pair[2], fd = node();
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  pid_t pid = fork();
  char byte = 'x', control[CMSG_SPACE(sizeof(int))] = {0};
  struct iovec iov = {&byte, 1};
  struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  if (pid == 0) {
    close(fd);
    CHECK(recvmsg(pair[1], &message, 0) == 1);
    call(*(int*)CMSG_DATA(CMSG_FIRSTHDR(&message)), 77);
    _exit(0);
  }
  struct cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(head), &fd, sizeof fd);
  CHECK(sendmsg(pair[0], &message, 0) == 1);
  wait_ok(pid);
  return 0;
}

// More than one shard may hold, with the limit the test sets.
static int flood(void) {
  int fd = node();
  for (uint32_t i = 0; i < 20000; i++) call(fd, i);
  return 0;
}

// A sandbox that forbids process_vm_readv: another way of reading is found.
static int sandboxed(void) {
  struct sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof rules / sizeof rules[0], rules};
  CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
  int fd = node();
  call(fd, 1);
  CHECK(ioctl(fd, RM_CONTROL, (void*)8) == -1 && errno == ENOTTY);
  call(fd, 2);
  return 0;
}

// More calls than fit where files may not grow: SIGXFSZ would end it.
static int file_limit(void) {
  struct rlimit limit = {1500000, 1500000};
  CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  return flood();
}

int main(int argc, char** argv) {
  self = "/proc/self/exe";
  char path[4096];
  ssize_t len = readlink("/proc/self/exe", path, sizeof path - 1);
  CHECK(len > 0 && argc > 1);
  path[len] = 0;
  self = path;
  const char* name = argv[1];
#define SCENARIO(text, expression) \
  if (strcmp(name, text) == 0) return expression
  SCENARIO("basic", basic());
  SCENARIO("xfer", xfer());
  SCENARIO("bad-pointers", bad_pointers());
  SCENARIO("forks", forks());
  SCENARIO("exec-child", exec_child(argc, argv));
  SCENARIO("exec-keeps-fd", exec_keeps_fd());
  SCENARIO("exec-forms", exec_forms());
  SCENARIO("spawns", spawns());
  SCENARIO("static-children", static_children(argv));
  SCENARIO("threads", threads());
  SCENARIO("killed", killed());
  SCENARIO("crashed", crashed());
  SCENARIO("signals", signals());
  SCENARIO("close-ranges", close_ranges());
  SCENARIO("raw-syscalls", raw_syscalls());
  SCENARIO("dlopened", dlopened(argv));
  SCENARIO("received", received());
  SCENARIO("flood", flood());
  SCENARIO("file-limit", file_limit());
  SCENARIO("sandboxed", sandboxed());
  fprintf(stderr, "subject: no scenario %s\n", name);
  return 2;
}
