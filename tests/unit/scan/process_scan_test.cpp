// SPDX-License-Identifier: Apache-2.0
// Scans a child of its own that holds GPU code in the ways programs do.
#include "scan/process_scan.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "build_code.h"

namespace gpuwatch::scan {
namespace {

struct Found : ScanSink {
  std::vector<MappedFile> files;
  std::vector<MemoryImage> images;
  void file(MappedFile file) override { files.push_back(std::move(file)); }
  void memory(MemoryImage image) override { images.push_back(std::move(image)); }

  const MappedFile* named(const std::string& end) const {
    for (const auto& file : files)
      if (file.path.ends_with(end)) return &file;
    return nullptr;
  }
  std::size_t count(std::size_t bytes) const {
    return static_cast<std::size_t>(std::count_if(
        images.begin(), images.end(), [&](const MemoryImage& image) { return image.bytes.size() == bytes; }));
  }
};

Memory contents(const MappedFile& file) {
  Memory bytes(file.size);
  EXPECT_EQ(::pread(file.fd.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  return bytes;
}

void* map_file(int fd) {
  return ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
}

class Scanning : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = std::filesystem::temp_directory_path() / "gpuwatch-scan-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    std::filesystem::remove_all(directory_);
  }

  // A child that does `set_up`, says so, then does `more` when told to.
  void start(const std::function<bool()>& set_up, const std::function<void()>& more = {}) {
    ASSERT_EQ(::pipe2(up_, O_CLOEXEC), 0);
    ASSERT_EQ(::pipe2(down_, O_CLOEXEC), 0);
    pid_ = ::fork();
    ASSERT_GE(pid_, 0);
    if (pid_ == 0) {
      char c = set_up() ? 'y' : 'n';
      if (::write(up_[1], &c, 1) != 1) _exit(1);
      if (::read(down_[0], &c, 1) == 1) {
        if (more) more();
        if (::write(up_[1], &c, 1) != 1) _exit(1);
      }
      ::pause();
      _exit(0);
    }
    char c = 'n';
    ASSERT_EQ(::read(up_[0], &c, 1), 1);
    set_up_ = c == 'y';
  }
  void go_on() {
    char c = 0;
    ASSERT_EQ(::write(down_[1], &c, 1), 1);
    ASSERT_EQ(::read(up_[0], &c, 1), 1);
  }

  Found scan_all(ProcessScan& scan, std::uint64_t budget = 1ull << 40) {
    Found found;
    for (int i = 0; i < 100'000; ++i) {
      auto done = scan.step(static_cast<std::uint32_t>(pid_), budget, found);
      EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().message());
      if (!done.ok() || *done) break;
    }
    return found;
  }

  int make_file(const std::string& name, const Memory& bytes) {
    const std::string path = directory_ + "/" + name;
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
    return ::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()) ? fd : -1;
  }

  std::string directory_;
  pid_t pid_ = -1;
  bool set_up_ = false;
  int up_[2] = {-1, -1}, down_[2] = {-1, -1};
};

TEST_F(Scanning, FilesWhateverBecameOfTheirNames) {
  start([&] {
    const int kept = make_file("kept.so", container(100));
    const int gone = make_file("gone.so", container(200));
    const int changed = make_file("changed.so", container(300));
    if (map_file(kept) == MAP_FAILED || map_file(gone) == MAP_FAILED || map_file(changed) == MAP_FAILED) return false;
    ::unlink((directory_ + "/gone.so").c_str());
    ::rename((directory_ + "/changed.so").c_str(), (directory_ + "/old").c_str());
    make_file("changed.so", container(999));
    const int memfd = ::memfd_create("jit", MFD_CLOEXEC);
    const Memory code = container(400);
    return ::write(memfd, code.data(), code.size()) > 0 && map_file(memfd) != MAP_FAILED;
  });
  ASSERT_TRUE(set_up_);
  ProcessScan scan;
  const Found found = scan_all(scan);
  if (scan.counts().refused > 0 && ::geteuid() != 0) GTEST_SKIP() << "map_files needs root";
  const MappedFile* kept = found.named("/kept.so");
  const MappedFile* gone = found.named("/gone.so");
  const MappedFile* old = found.named("/old");
  const MappedFile* memfd = found.named("memfd:jit");
  ASSERT_TRUE(kept && gone && old && memfd);
  EXPECT_FALSE(kept->deleted);
  EXPECT_TRUE(gone->deleted);
  EXPECT_FALSE(gone->memfd);
  EXPECT_TRUE(memfd->memfd);
  EXPECT_EQ(contents(*kept), container(100));
  EXPECT_EQ(contents(*gone), container(200));
  EXPECT_EQ(contents(*old), container(300)) << "what is mapped, not what has its name now";
  EXPECT_EQ(contents(*memfd), container(400));
  EXPECT_EQ(found.named("/changed.so"), nullptr);
}

TEST_F(Scanning, AnotherMountNamespace) {
  if (::geteuid() != 0) GTEST_SKIP() << "a mount namespace needs root";
  start([&] {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", directory_.c_str(), "tmpfs", 0, nullptr) != 0)
      return false;
    const int fd = make_file("inside.so", container(500));
    return map_file(fd) != MAP_FAILED;
  });
  if (!set_up_) GTEST_SKIP() << "may not mount here";
  ProcessScan scan;
  const Found found = scan_all(scan);
  const MappedFile* inside = found.named("/inside.so");
  ASSERT_NE(inside, nullptr);
  EXPECT_EQ(contents(*inside), container(500));
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/inside.so"));
}

TEST_F(Scanning, ImagesInMemory) {
  start([&] {
    char* block =
        static_cast<char*>(::mmap(nullptr, 3 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (block == MAP_FAILED) return false;
    const Memory one = container(1234 * 8), two = cubin(5);
    std::memcpy(block + 64, one.data(), one.size());
    std::memcpy(block + (1 << 20) - 8, two.data(), two.size());  // across the end of a window
    std::strcpy(block + (2 << 20) - 5, ".version 8.8\n.target sm_90a\n.visible .entry k()\n");
    // Unreadable memory, and a reservation that is far too large to look at.
    ::mmap(nullptr, 1ull << 40, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return true;
  });
  ASSERT_TRUE(set_up_);
  ProcessScan scan;
  const Found found = scan_all(scan);
  // The heap of the child keeps stale copies of what it was built from, too.
  EXPECT_GE(found.count(16 + 1234 * 8), 1u);
  EXPECT_GE(found.count(64 + 5 * 64), 1u);
  EXPECT_EQ(found.count(48), 1u);
  for (const MemoryImage& image : found.images)
    if (image.bytes.size() == 64 + 5 * 64) {
      EXPECT_EQ(image.bytes, cubin(5));
    }
}

TEST_F(Scanning, OnlyWhatIsNew) {
  start([] { return true; },
        [&] {
          char* block =
              static_cast<char*>(::mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
          const Memory one = container(777 * 8);
          std::memcpy(block + 64, one.data(), one.size());
          map_file(make_file("late.so", container(100)));
        });
  ProcessScan scan;
  scan_all(scan);
  const std::uint64_t looked = scan.counts().bytes;
  EXPECT_GT(looked, 0u);
  const Found again = scan_all(scan);
  EXPECT_TRUE(again.files.empty());
  EXPECT_EQ(scan.counts().bytes, looked) << "nothing is new";
  go_on();
  const Found more = scan_all(scan);
  EXPECT_EQ(more.files.size(), 1u);
  EXPECT_GE(more.count(16 + 777 * 8), 1u);
  EXPECT_LT(scan.counts().bytes - looked, looked + (4u << 20));
}

TEST_F(Scanning, StepsKeepToTheirBudget) {
  start([] {
    return ::mmap(nullptr, 16 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0) !=
           MAP_FAILED;
  });
  ProcessScan scan;
  Found found;
  std::uint64_t last = 0;
  int steps = 0;
  for (bool done = false; !done; ++steps) {
    auto step = scan.step(static_cast<std::uint32_t>(pid_), 2 << 20, found);
    ASSERT_TRUE(step.ok());
    EXPECT_LE(scan.counts().bytes - last, 3u << 20);
    last = scan.counts().bytes;
    done = *step;
  }
  EXPECT_GE(steps, 8);
}

TEST_F(Scanning, BoundsOnWhatIsFound) {
  start([&] {
    char* block =
        static_cast<char*>(::mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (int i = 0; i < 10; ++i) {
      const Memory one = container(50'000);
      std::memcpy(block + i * 60'000 / 8 * 8, one.data(), one.size());
    }
    return true;
  });
  ScanOptions options;
  options.found_bytes = 200'000;
  ProcessScan scan(options);
  const Found found = scan_all(scan);
  std::size_t bytes = 0;
  for (const MemoryImage& image : found.images) bytes += image.bytes.size();
  EXPECT_LE(bytes, options.found_bytes);
  EXPECT_GE(found.count(50'016), 1u);
  EXPECT_GE(scan.counts().over_limit, 7u);
}

TEST_F(Scanning, AProcessThatIsGone) {
  start([] { return true; });
  ProcessScan scan;
  scan_all(scan);
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  Found found;
  EXPECT_FALSE(scan.step(static_cast<std::uint32_t>(pid_), 1000, found).ok());
  pid_ = -1;
}

}  // namespace
}  // namespace gpuwatch::scan
