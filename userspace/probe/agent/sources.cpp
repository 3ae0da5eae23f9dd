// SPDX-License-Identifier: Apache-2.0
#include "probe/agent/sources.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <numeric>
#include <thread>

#include "base/io.h"
#include "scan/process_scan.h"

namespace gpuwatch::probe::agent {

namespace {

constexpr std::uint64_t kScanMemory = 8ull << 30;
constexpr std::uint64_t kScanStep = 256ull << 20;
constexpr unsigned kThreadsMax = 16;

class Collect : public scan::ScanSink {
 public:
  void file(scan::MappedFile file) override {
    auto fd = std::make_shared<base::Fd>(std::move(file.fd));
    sources.push_back({file.path, file.size, [fd, size = file.size](std::uint32_t sm) {
                         return base::Result<std::vector<LoadableImage>>(
                             images_for(identify::FileSource(fd->get(), size), sm));
                       }});
  }
  void memory(scan::MemoryImage image) override {
    auto bytes = std::make_shared<std::vector<std::byte>>(std::move(image.bytes));
    char label[64];
    std::snprintf(label, sizeof label, "memory at 0x%llx", static_cast<unsigned long long>(image.address));
    sources.push_back({label, bytes->size(), [bytes](std::uint32_t sm) {
                         const identify::Bytes span(reinterpret_cast<const std::uint8_t*>(bytes->data()),
                                                    bytes->size());
                         return base::Result<std::vector<LoadableImage>>(images_for(identify::MemorySource(span), sm));
                       }});
  }
  std::vector<Source> sources;
};

Modules modules_of(const Source& source, std::uint32_t sm, const HeapIndex* index) {
  Modules out;
  const auto skip = [&](const std::string& reason) {
    ++out.skipped;
    out.reasons.assign(1, {source.label, reason});
  };
  auto images = source.images(sm);
  if (!images.ok()) {
    skip(images.error().message());
    return out;
  }
  for (LoadableImage& image : *images) {
    LiveModule module;
    module.label = source.label + ", " + image.label;
    std::string error = image.error;
    if (error.empty() && image.ptx) error = "PTX: what the driver makes of it when it is loaded is not known here";
    if (error.empty()) error = read_code(image.bytes, module.code);
    if (error.empty()) error = read_banks(image.bytes, module.banks);
    if (error.empty() && module.code.relocatable) error = "relocatable code, which the driver does not load by itself";
    // Kept with a module that may be in memory, for its hashes; else it ends here.
    const auto identity =
        std::make_shared<const ImageIdentity>(image.ptx, std::move(image.bytes), std::vector<std::uint8_t>());
    if (!error.empty()) {
      skip(error);
      continue;
    }
    module.identity = identity;
    ++out.looked_at;
    if (index != nullptr && !index->may_hold(module.code))
      out.elsewhere += module.code.functions.size();
    else
      out.modules.push_back(std::move(module));
  }
  return out;
}

}  // namespace

void allow_many_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

Failure source_of_file(const std::string& path, std::vector<Source>& out) {
  auto opened = base::open_plain(path);
  if (!opened.ok()) return {Outcome::kTrouble, opened.error().message()};
  auto fd = std::make_shared<base::Fd>(std::move(*opened));
  struct stat info {};
  if (::fstat(fd->get(), &info) != 0) return {Outcome::kTrouble, base::Error::from_errno(path).message()};
  out.push_back({path, static_cast<std::uint64_t>(info.st_size), [fd, size = info.st_size](std::uint32_t sm) {
                   return base::Result<std::vector<LoadableImage>>(
                       images_for(identify::FileSource(fd->get(), static_cast<std::uint64_t>(size)), sm));
                 }});
  return {};
}

Failure sources_of_process(int pid, std::vector<Source>& out) {
  allow_many_files();
  scan::ScanOptions limits;
  limits.memory_bytes = kScanMemory;
  scan::ProcessScan scan(limits);
  Collect sink;
  for (;;) {
    const auto done = scan.step(static_cast<std::uint32_t>(pid), kScanStep, sink);
    if (!done.ok())
      return {done.error().code() == base::Code::kPermission ? Outcome::kDenied : Outcome::kNoProcess,
              done.error().message()};
    if (done.value()) break;
  }
  out = std::move(sink.sources);
  return {};
}

Modules modules_of(const std::vector<Source>& sources, std::uint32_t sm, const HeapIndex* index) {
  // The largest first, so that no thread is left alone with it at the end.
  std::vector<std::size_t> order(sources.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return sources[a].bytes > sources[b].bytes; });
  std::vector<Modules> parts(sources.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t n = next++; n < order.size(); n = next++) {
      const Source& source = sources[order[n]];
      try {
        parts[order[n]] = modules_of(source, sm, index);
      } catch (const std::bad_alloc&) {
        parts[order[n]] = {};
        parts[order[n]].skipped = 1;
        parts[order[n]].reasons.assign(1, {source.label, "not enough memory to look at its images"});
      }
    }
  };
  {
    const std::size_t threads =
        std::min<std::size_t>(sources.size(), std::clamp(std::thread::hardware_concurrency(), 1u, kThreadsMax));
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < threads; ++i) others.emplace_back(work);
    work();
  }
  Modules out;
  for (Modules& part : parts) {
    std::move(part.modules.begin(), part.modules.end(), std::back_inserter(out.modules));
    std::move(part.reasons.begin(), part.reasons.end(), std::back_inserter(out.reasons));
    out.looked_at += part.looked_at;
    out.elsewhere += part.elsewhere;
    out.skipped += part.skipped;
  }
  return out;
}

}  // namespace gpuwatch::probe::agent
