// SPDX-License-Identifier: Apache-2.0
// How the agent comes to life in a process, and how it leaves: as what libcuda
// loads by CUDA_INJECTION64_PATH, or by LD_PRELOAD with the first mapping of GPU
// memory. One thread with all signals blocked, on a socket that only the
// process's own user and root may use. It never writes to the process's output,
// and what fails here fails in silence: the process must not notice.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "probe/agent/names.h"
#include "probe/agent/worker.h"

namespace gpuwatch::probe::agent {
namespace {

constexpr std::size_t kStackBytes = 4u << 20;  // libcuda may compile on it; untouched pages cost nothing

std::atomic<bool> started{false};
std::atomic<bool> running{false};
int listener = -1;
int wake = -1;
pthread_t thread;
char socket_path[sizeof(sockaddr_un::sun_path)];

bool bind_in(int fd, const char* directory) {
  std::uint32_t random = 0;
  if (::getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random) return false;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const int length = std::snprintf(address.sun_path, sizeof address.sun_path, "%s/%s%d.%08x.sock", directory,
                                   kSocketPrefix, static_cast<int>(::getpid()), random);
  if (directory[0] != '/' || length < 0 || static_cast<std::size_t>(length) >= sizeof address.sun_path) return false;
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return false;
  std::memcpy(socket_path, address.sun_path, sizeof socket_path);
  return true;
}

bool listen_somewhere() {
  listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener < 0) return false;
  // The inode gets this mode when it is made: there is no moment with another.
  (void)::fchmod(listener, 0600);
  const char* wanted = std::getenv(kDirectoryVariable);
  bool bound = wanted != nullptr && bind_in(listener, wanted);
  if (wanted == nullptr)
    for (const char* directory : kDirectories) bound = bound || bind_in(listener, directory);
  return bound && ::listen(listener, 8) == 0;
}

void* serve(void*) {
  try {
    Worker worker(mapped_memory());
    Server server(listener, wake, worker);
    server.run();
  } catch (...) {
    // Out of memory: the process has other worries; the socket goes silent.
  }
  running = false;
  return nullptr;
}

void start() {
  if (started.exchange(true)) return;
  wake = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake < 0 || !listen_somewhere()) return;
  pthread_attr_t attributes;
  if (::pthread_attr_init(&attributes) != 0) return;
  (void)::pthread_attr_setstacksize(&attributes, kStackBytes);
  // The process's signals are for its own threads.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  (void)::pthread_sigmask(SIG_SETMASK, &all, &before);
  running = true;
  if (::pthread_create(&thread, &attributes, serve, nullptr) == 0)
    (void)::pthread_setname_np(thread, "gpuwatch-agent");
  else
    running = false;
  (void)::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  (void)::pthread_attr_destroy(&attributes);
}

void before_fork() {
  mapped_memory().lock();
}
void after_fork_parent() {
  mapped_memory().unlock();
}
// The child has no thread, no context and nothing mapped. Should it set up CUDA
// of its own, the agent starts anew.
void after_fork_child() {
  mapped_memory().abandon();
  mapped_memory().unlock();
  if (listener >= 0) ::close(listener);
  if (wake >= 0) ::close(wake);
  listener = wake = -1;
  socket_path[0] = 0;
  running = false;
  started = false;
  on_first_mapping(start);
}

__attribute__((constructor)) void load() {
  resolve_next();
  (void)::pthread_atfork(before_fork, after_fork_parent, after_fork_child);
  on_first_mapping(start);
}

// An answer under way is waited for: it uses what goes away with the process.
__attribute__((destructor)) void unload() {
  if (socket_path[0] != 0) ::unlink(socket_path);
  if (!running) return;
  const std::uint64_t one = 1;
  (void)!::write(wake, &one, sizeof one);
  timespec limit{};
  ::clock_gettime(CLOCK_REALTIME, &limit);
  limit.tv_sec += 1;
  (void)::pthread_timedjoin_np(thread, nullptr, &limit);
}

}  // namespace
}  // namespace gpuwatch::probe::agent

// Called by libcuda in cuInit; not 0 says that all is well.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  using namespace gpuwatch::probe::agent;
  (void)see_calls();
  start();
  return 1;
}
