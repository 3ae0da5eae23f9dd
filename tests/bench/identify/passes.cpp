// SPDX-License-Identifier: Apache-2.0
#include "passes.h"

#include <fcntl.h>
#include <lz4.h>
#include <openssl/evp.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "identify/cache.h"
#include "identify/hash_images.h"
#include "identify/identify.h"

namespace gpuwatch::bench {

namespace {

using identify::Compression;
using identify::FileSource;
using identify::Image;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "bench-identify: %s\n", what.c_str());
  std::exit(2);
}

double seconds(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

template <typename Work>
double cpu_of(Work work) {
  const double begin = seconds(CLOCK_THREAD_CPUTIME_ID);
  work();
  return seconds(CLOCK_THREAD_CPUTIME_ID) - begin;
}

unsigned sink;  // keeps results alive

void hash(EVP_MD_CTX* context, const std::uint8_t* data, std::size_t size) {
  unsigned char out[32];
  if (EVP_DigestInit_ex(context, EVP_sha256(), nullptr) != 1 || EVP_DigestUpdate(context, data, size) != 1 ||
      EVP_DigestFinal_ex(context, out, nullptr) != 1)
    fail("OpenSSL has no SHA-256");
  sink += out[0];
}

struct Quiet : identify::Sink {
  std::uint64_t entries = 0;
  void entry(const std::string&, const identify::Entry& entry) override {
    ++entries;
    sink += entry.module.r[0];
  }
  void container(const std::string&, const identify::Container&) override {}
  void error(const std::string& file, const std::string& what) override { fail(file + ": " + what); }
};

// As a worker gets them.
std::vector<std::span<const Image>> groups_of(std::span<const Image> images) {
  std::vector<std::span<const Image>> out;
  while (!images.empty()) {
    std::size_t count = 0;
    std::uint64_t total = 0;
    while (count < images.size() && count < identify::kGroupImages &&
           (count == 0 || total + identify::working_bytes(images[count]) <= identify::kGroupBytes))
      total += identify::working_bytes(images[count++]);
    out.push_back(images.first(count));
    images = images.subspan(count);
  }
  return out;
}

}  // namespace

Library::Library(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  struct stat info {};
  if (!fd_.valid() || ::fstat(fd_.get(), &info) != 0) fail(path + ": cannot be read");
  size_ = static_cast<std::uint64_t>(info.st_size);
  scan_ = identify::scan(FileSource(fd_.get(), size_), {});
  if (scan_.images.empty()) fail(path + ": no GPU code");
  for (const Image& image : scan_.images) {
    inflated_ += image.bytes;
    largest_ = std::max(largest_, image.bytes);
  }
}

double Library::plain() const {
  const FileSource source(fd_.get(), size_);
  std::uint64_t stored = 0;
  for (const Image& image : scan_.images) stored = std::max(stored, image.stored_bytes);
  std::vector<std::uint8_t> in(stored);
  std::vector<std::uint8_t> out(largest_);
  ZSTD_DCtx* zstd = ZSTD_createDCtx();
  EVP_MD_CTX* sha = EVP_MD_CTX_new();
  const double result = cpu_of([&] {
    for (const Image& image : scan_.images) {
      const std::size_t got = source.read(image.offset, std::span(in).first(image.stored_bytes));
      if (image.opaque || !image.error.empty() || image.compression == Compression::kNone) {
        hash(sha, in.data(), got);
      } else if (image.compression == Compression::kLz4) {
        if (LZ4_decompress_safe(reinterpret_cast<const char*>(in.data()), reinterpret_cast<char*>(out.data()),
                                static_cast<int>(image.compressed_bytes), static_cast<int>(image.bytes)) < 0)
          fail("lz4");
        hash(sha, out.data(), image.bytes);
      } else {
        if (ZSTD_isError(ZSTD_decompressDCtx(zstd, out.data(), image.bytes, in.data(), image.compressed_bytes)) != 0)
          fail("zstd");
        hash(sha, out.data(), image.bytes);
      }
    }
  });
  ZSTD_freeDCtx(zstd);
  EVP_MD_CTX_free(sha);
  return result;
}

double Library::first_pass() const {
  const FileSource source(fd_.get(), size_);
  return cpu_of([&] {
    const identify::Limits limits;
    const identify::Scan scan = identify::scan(source, limits);
    identify::ImageHasher hasher(limits);
    for (const auto& digest : hasher.stored(source, scan.images)) sink += digest[0];
    for (const auto& group : groups_of(scan.images))
      for (const identify::Module& module : hasher.modules(source, group)) sink += module.r[0];
  });
}

double Library::plain_stored() const {
  const FileSource source(fd_.get(), size_);
  std::vector<std::uint8_t> piece(8 << 20);
  EVP_MD_CTX* sha = EVP_MD_CTX_new();
  const double result = cpu_of([&] {
    for (const Image& image : scan_.images) {
      if (image.stored_bytes > piece.size()) piece.resize(image.stored_bytes);
      hash(sha, piece.data(), source.read(image.offset, std::span(piece).first(image.stored_bytes)));
    }
  });
  EVP_MD_CTX_free(sha);
  return result;
}

double Library::stored_pass() const {
  const FileSource source(fd_.get(), size_);
  return cpu_of([&] {
    identify::ImageHasher hasher({});
    for (const auto& digest : hasher.stored(source, scan_.images)) sink += digest[0];
  });
}

void Whole::keep_best(const Whole& other) {
  wall_s = std::min(wall_s, other.wall_s);
  cpu_s = std::min(cpu_s, other.cpu_s);
  peak_bytes = std::min(peak_bytes, other.peak_bytes);
}

Whole run_whole(const std::string& path, unsigned workers) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  const std::string command = "'" + program + "' --whole '" + path + "' " + std::to_string(workers);
  FILE* pipe = ::popen(command.c_str(), "re");
  Whole whole;
  if (pipe == nullptr || std::fscanf(pipe, "%lf %lf %lu", &whole.wall_s, &whole.cpu_s, &whole.peak_bytes) != 3 ||
      ::pclose(pipe) != 0)
    fail(command + " failed");
  return whole;
}

int whole_main(const std::string& path, const std::string& workers) {
  const double begin = seconds(CLOCK_MONOTONIC);
  {
    identify::Options options;
    options.workers = static_cast<unsigned>(std::stoul(workers));
    identify::Identifier identifier(options);
    Quiet quiet;
    if (base::Status status = identifier.path(path, quiet); !status.ok()) fail(status.error().message());
  }
  const double wall = seconds(CLOCK_MONOTONIC) - begin;
  rusage own{};
  rusage children{};
  ::getrusage(RUSAGE_SELF, &own);
  ::getrusage(RUSAGE_CHILDREN, &children);
  double cpu = 0;
  for (const rusage* usage : {&own, &children})
    for (const timeval& time : {usage->ru_utime, usage->ru_stime})
      cpu += static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  std::printf("%f %f %ld\n", wall, cpu, (own.ru_maxrss + children.ru_maxrss) * 1024);
  return 0;
}

std::optional<double> cuobjdump_seconds(const std::string& path) {
  if (std::system("command -v cuobjdump >/dev/null 2>&1") != 0) return std::nullopt;
  const double begin = seconds(CLOCK_MONOTONIC);
  const std::string command = "d=$(mktemp -d) && cd \"$d\" && cuobjdump -all -xelf all '" +
                              std::filesystem::absolute(path).string() + "' >/dev/null 2>&1; rm -rf \"$d\"";
  if (std::system(command.c_str()) != 0) return std::nullopt;
  return seconds(CLOCK_MONOTONIC) - begin;
}

Lookup measure_lookup(const std::string& cache_path, const std::string& library) {
  identify::Options options;
  options.cache_path = cache_path;
  identify::Collector all;
  {
    identify::Identifier identifier(options);
    if (base::Status status = identifier.path(library, all); !status.ok()) fail(status.error().message());
  }
  std::string warning;
  auto cache = identify::Cache::open(cache_path, 1ull << 30, warning);
  if (!cache) fail(cache.error().message());
  std::vector<double> times;
  for (int round = 0; round < 3; ++round) {
    for (const auto& part : all.report.parts) {
      if (!part.entry) continue;
      times.push_back(cpu_of([&] {
        const auto module = cache->module(part.entry->stored, part.entry->image);
        if (!module) fail("the cache lost a module");
        sink += module->r[0];
      }));
    }
  }
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2] * 1e6};
}

}  // namespace gpuwatch::bench
