// SPDX-License-Identifier: Apache-2.0
// Shared memory with one lock and one condition for all files: a replay makes
// thousands of calls, not millions.
#include "shared.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <new>

namespace gpuwatch::replay {

namespace {

constexpr int kWaitSeconds = 60;

class Lock {
 public:
  explicit Lock(pthread_mutex_t& mutex) : mutex_(mutex) { pthread_mutex_lock(&mutex_); }
  ~Lock() { pthread_mutex_unlock(&mutex_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  pthread_mutex_t& mutex_;
};

}  // namespace

std::size_t Shared::bytes_for(std::size_t files) {
  return sizeof(Shared) + files * sizeof(FileState);
}

base::Result<Shared*> Shared::create(std::size_t files) {
  const std::size_t bytes = bytes_for(files);
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return base::Error::from_errno("shared memory of the replay");
  auto* shared = new (memory) Shared{};
  shared->files_ = new (shared + 1) FileState[files]{};
  pthread_mutexattr_t mutex;
  pthread_mutexattr_init(&mutex);
  pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&shared->lock_, &mutex);
  pthread_condattr_t cond;
  pthread_condattr_init(&cond);
  pthread_condattr_setclock(&cond, CLOCK_MONOTONIC);
  pthread_condattr_setpshared(&cond, PTHREAD_PROCESS_SHARED);
  pthread_cond_init(&shared->changed_, &cond);
  return shared;
}

void Shared::destroy(Shared* shared, std::size_t files) {
  ::munmap(shared, bytes_for(files));
}

// Bounded, so that a process that died cannot hang the others.
template <typename Done>
bool Shared::wait_until(Done done) {
  timespec end{};
  clock_gettime(CLOCK_MONOTONIC, &end);
  end.tv_sec += kWaitSeconds;
  while (!done()) {
    if (pthread_cond_timedwait(&changed_, &lock_, &end) != ETIMEDOUT) continue;
    counts_.errors.fetch_add(1);
    std::fprintf(stderr, "gw-replay: process %d gave up waiting for a call of another one\n", ::getpid());
    return false;
  }
  return true;
}

void Shared::opened(std::size_t file, int fd) {
  const Lock lock(lock_);
  files_[file].known = true;
  files_[file].pid = ::getpid();
  files_[file].fd = fd;
  pthread_cond_broadcast(&changed_);
}

void Shared::used(std::size_t file) {
  const Lock lock(lock_);
  ++files_[file].uses;
  pthread_cond_broadcast(&changed_);
}

Shared::Holder Shared::wait_open(std::size_t file) {
  const Lock lock(lock_);
  if (!wait_until([&] { return files_[file].known; })) return {0, -1};
  return {files_[file].pid, files_[file].fd};
}

void Shared::wait_uses(std::size_t file, std::uint32_t uses) {
  const Lock lock(lock_);
  wait_until([&] { return files_[file].uses >= uses; });
}

}  // namespace gpuwatch::replay
