// SPDX-License-Identifier: Apache-2.0
#include "probe/outside/asked_files.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace gpuwatch::probe::outside {

namespace {

enum class What : std::uint32_t { kFiles = 1, kKnows = 2, kRead = 3 };

// What does not belong to a request is zero.
struct Request {
  What what = What::kFiles;
  std::int32_t file = 0;
  Handle client = 0, debugger = 0, memory = 0;
  std::uint32_t bytes = 0;
  std::uint64_t offset = 0;
};
static_assert(sizeof(Request) == 32 && sizeof(Request) <= agent::kAskMax);

struct Said {
  std::int32_t error = 0;
  std::uint32_t status = 0;
};

template <typename T>
std::vector<std::uint8_t> bytes_of(const T* values, std::size_t count) {
  std::vector<std::uint8_t> out(count * sizeof(T));
  if (count != 0) std::memcpy(out.data(), values, out.size());
  return out;
}

Failure ask(agent::Parent& parent, const Request& request, agent::Told& told) {
  return parent.ask(bytes_of(&request, 1), told);
}

Failure ask(agent::Parent& parent, const Request& request, Answer& answer) {
  agent::Told told;
  if (Failure failure = ask(parent, request, told)) return failure;
  Said said;
  if (told.bytes.size() != sizeof said) return {Outcome::kTrouble, "what the driver said did not arrive"};
  std::memcpy(&said, told.bytes.data(), sizeof said);
  answer = {said.error, said.status};
  return {};
}

}  // namespace

Window::Window(std::size_t bytes) {
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) bytes_ = {static_cast<std::uint8_t*>(memory), bytes};
}

Window::~Window() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

Failure AskedFiles::control_files(std::vector<int>& out) {
  agent::Told told;
  if (Failure failure = ask(parent_, {}, told)) return failure;
  out.resize(told.bytes.size() / sizeof(int));
  if (!out.empty()) std::memcpy(out.data(), told.bytes.data(), out.size() * sizeof(int));
  return {};
}

Failure AskedFiles::knows(int file, Handle client, Answer& answer) {
  return ask(parent_, {What::kKnows, file, client, 0, 0, 0, 0}, answer);
}

Failure AskedFiles::read(int file, Handle client, Handle debugger, Handle memory, std::uint64_t offset,
                         std::span<std::uint8_t> out, Answer& answer) {
  if (out.size() > window_.size()) return {Outcome::kTrouble, "more was to be read at once than there is room for"};
  const Request request{What::kRead, file, client, debugger, memory, static_cast<std::uint32_t>(out.size()), offset};
  if (Failure failure = ask(parent_, request, answer)) return failure;
  if (answer.good() && !out.empty()) std::memcpy(out.data(), window_.data(), out.size());
  return {};
}

bool ServedFiles::serve(std::span<const std::uint8_t> bytes, agent::Told& told) {
  Request request;
  if (bytes.size() != sizeof request) return false;
  std::memcpy(&request, bytes.data(), sizeof request);
  const bool to_memory = request.debugger != 0 || request.memory != 0 || request.bytes != 0 || request.offset != 0;
  Answer answer;
  switch (request.what) {
    case What::kFiles: {
      if (request.file != 0 || request.client != 0 || to_memory) return false;
      listed_.clear();
      told.failure = files_.control_files(listed_);
      listed_.resize(std::min(listed_.size(), agent::kToldMax / sizeof(int)));
      told.bytes = bytes_of(listed_.data(), listed_.size());
      return true;
    }
    case What::kKnows:
      if (request.file < 0 || to_memory) return false;
      // Any other file of the process's is not even held for a moment.
      if (std::find(listed_.begin(), listed_.end(), request.file) == listed_.end())
        answer = {EBADF, 0};
      else
        told.failure = files_.knows(request.file, request.client, answer);
      if (told.failure || !answer.good())
        known_.erase({request.file, request.client});
      else if (known_.size() < kKnownMax)
        known_.insert({request.file, request.client});
      break;
    case What::kRead:
      if (request.bytes == 0 || request.bytes > window_.size() || request.offset > kOffsetMax) return false;
      if (!known_.contains({request.file, request.client}))
        answer = {EPERM, 0};
      else
        told.failure = files_.read(request.file, request.client, request.debugger, request.memory, request.offset,
                                   window_.first(request.bytes), answer);
      break;
    default:
      return false;
  }
  const Said said{answer.error, answer.status};
  told.bytes = bytes_of(&said, 1);
  return true;
}

}  // namespace gpuwatch::probe::outside
