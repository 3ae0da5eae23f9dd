// SPDX-License-Identifier: Apache-2.0
// Fuzz target: reading a process from outside. A shard of records, which that
// process can forge, becomes devices and ranges that hold together, and what is
// read by them stays within what was recorded; anything else is a row of requests
// from a side without rights that was taken over, of which none may lead further
// than the calls that read.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "preload/shard_format.h"
#include "probe/outside/access.h"
#include "probe/outside/asked_files.h"

namespace {

using namespace gpuwatch;
using namespace gpuwatch::probe;
using namespace gpuwatch::probe::outside;

constexpr std::size_t kWindow = 1 << 16;

void must(bool good) {
  if (!good) std::abort();
}

// Knows every other client, and sees to what is asked for.
class Driver : public TargetFiles {
 public:
  explicit Driver(std::span<const std::uint8_t> window = {}) : window_(window) {}
  std::vector<MappedMemory> mapped;

  Failure control_files(std::vector<int>& out) override {
    out = {3, 4};
    return {};
  }
  Failure knows(int file, Handle client, Answer& answer) override {
    answer = {0, client % 2 == 0 ? 0u : 0x23u};
    must(window_.empty() || file == 3 || file == 4);
    return {};
  }
  Failure read(int file, Handle client, Handle, Handle memory, std::uint64_t offset, std::span<std::uint8_t> out,
               Answer& answer) override {
    must(!out.empty() && offset + out.size() >= offset);
    if (!window_.empty()) {
      must(out.data() == window_.data() && out.size() <= window_.size() && client % 2 == 0 && (file == 3 || file == 4));
    } else {
      // From the page in which a mapping begins to its end.
      must(std::any_of(mapped.begin(), mapped.end(), [&](const MappedMemory& one) {
        return one.client == client && one.memory == memory && one.held && offset >= one.offset / 4096 * 4096 &&
               offset + out.size() <= one.offset + one.span.bytes;
      }));
    }
    std::memset(out.data(), static_cast<int>(offset / 4096), out.size());
    answer = {0, memory % 3 == 0 ? 0x1bu : 0u};
    return {};
  }

 private:
  std::span<const std::uint8_t> window_;
};

void records(std::span<const std::uint8_t> bytes) {
  base::Fd fd(::memfd_create("shard", MFD_CLOEXEC));
  must(fd.valid() && ::write(fd.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  RecordFiles files;
  files.path = "shards";
  files.driver = "580.159.04";
  files.directory = true;
  files.files.push_back({"shard", std::move(fd)});
  Records out;
  const Identity process{{4711, 1}, 100};
  const Failure failure = read_records(files, process, out);
  must(static_cast<bool>(failure) == (out.calls == 0));
  must(out.facts.ranges() <= DriverFacts::kRangesMax);
  const std::vector<Device> devices = out.facts.devices();
  must(devices.size() <= DriverFacts::kDebuggersMax);
  for (const Device& device : devices) {
    must(!device.debuggers.empty());
    std::uint64_t end = 0;
    for (const MappedMemory& one : device.memory) {
      must(one.span.bytes != 0 && one.span.address >= end && one.span.address + one.span.bytes > one.span.address);
      must(one.offset + one.span.bytes >= one.offset);
      end = one.span.address + one.span.bytes;
    }
    Driver driver;
    driver.mapped = device.memory;
    OutsideAccess access(driver, 4, device);
    const std::vector<Span> heap = heap_of(device);
    for (std::size_t i = 0; i < heap.size() && i < 4; ++i) {
      std::vector<std::uint8_t> read;
      std::string refused;
      const Span span{heap[i].address + heap[i].bytes / 2, std::min<std::uint64_t>(heap[i].bytes, 8192)};
      must(!access.read(span, read, refused));
      must(refused.empty() == (read.size() == span.bytes));
    }
  }
}

void requests(std::span<const std::uint8_t> bytes) {
  static const Window window(kWindow);
  Driver driver(window.bytes());
  ServedFiles served(driver, window.bytes());
  while (!bytes.empty()) {
    // Mostly of the size that they have.
    const std::size_t size = std::min<std::size_t>(bytes.size(), bytes[0] == 0xff ? 7 : 32);
    agent::Told told;
    const bool known = served.serve(bytes.first(size), told);
    must(told.bytes.size() <= agent::kToldMax && !told.fd.valid() && (known || told.bytes.empty()));
    bytes = bytes.subspan(size);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A copy of the exact size lets the address sanitizer see any overrun.
  const std::vector<std::uint8_t> copy(data, data + size);
  std::uint64_t magic = 0;
  if (size >= sizeof magic) std::memcpy(&magic, data, sizeof magic);
  if (magic == GW_SHARD_MAGIC)
    records(copy);
  else
    requests(copy);
  return 0;
}
