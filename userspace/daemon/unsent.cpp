// SPDX-License-Identifier: Apache-2.0
#include "daemon/unsent.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <map>

namespace gpuwatch::daemon {

using base::Code;
using base::Error;
using base::Result;

namespace {

constexpr std::uint64_t kMagic = 0x31544e534e55'5747;  // also tells the form

}  // namespace

struct Unsent::Place {
  char name[24];  // not always with a NUL at its end
  sink::WaitingCount items;
};

struct Unsent::Shared {
  std::uint64_t magic;
  Place places[kPlaces];
};

static_assert(sink::WaitingCount::is_always_lock_free);

Unsent::Unsent(base::Fd fd, Shared* shared) : fd_(std::move(fd)), shared_(shared) {}

Unsent::~Unsent() {
  ::munmap(shared_, sizeof(Shared));
}

Result<std::shared_ptr<Unsent>> Unsent::open(const std::string& path) {
  base::Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600));
  struct stat info {};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0) return Error::from_errno(path);
  if (!S_ISREG(info.st_mode)) return Error(Code::kBadInput, path + ": is no regular file; remove it");
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0)
    return errno == EWOULDBLOCK ? Error(Code::kLimit, path + ": another gpuwatchd uses it; set another state.path")
                                : Error::from_errno(path);
  // Room for all of it: a write to a hole on a full disk would be a SIGBUS.
  if (const int failed = ::posix_fallocate(fd.get(), 0, sizeof(Shared)); failed != 0)
    return Error::from_errno(path, failed);
  void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) return Error::from_errno("mapping " + path);
  std::shared_ptr<Unsent> unsent(new Unsent(std::move(fd), static_cast<Shared*>(memory)));
  unsent->begin();
  return unsent;
}

void Unsent::begin() {
  if (shared_->magic == kMagic) {
    std::map<std::string, std::uint64_t> sums;
    for (const Place& place : shared_->places)
      if (const std::uint64_t items = place.items; items != 0)
        sums[std::string(place.name, ::strnlen(place.name, sizeof place.name))] += items;
    for (const auto& [name, items] : sums) left_.push_back({name, items});
  }
  for (Place& place : shared_->places) {
    place.items = 0;
    std::memset(place.name, 0, sizeof place.name);
  }
  shared_->magic = kMagic;
}

std::shared_ptr<sink::WaitingCount> Unsent::count_for(std::string_view sink) {
  const std::lock_guard hold(lock_);
  const auto free = std::find(std::begin(taken_), std::end(taken_), false);
  if (free == std::end(taken_)) return nullptr;
  *free = true;
  Place& place = shared_->places[free - std::begin(taken_)];
  place.items = 0;
  std::memset(place.name, 0, sizeof place.name);
  std::memcpy(place.name, sink.data(), std::min(sink.size(), sizeof place.name));
  // Whoever counts keeps the memory, also a sink that was left behind.
  return {&place.items, [self = shared_from_this(), free](sink::WaitingCount* items) {
            *items = 0;
            const std::lock_guard hold_again(self->lock_);
            *free = false;
          }};
}

}  // namespace gpuwatch::daemon
