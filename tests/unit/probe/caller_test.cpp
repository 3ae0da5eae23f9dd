// SPDX-License-Identifier: Apache-2.0
// What is taken of a caller's argument: never more than it has, and its form.
#include "probe/caller.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

namespace gpuwatch::probe {
namespace {

using Node = RangeRecord::Node;
constexpr unsigned long kMap = 33;

// A file named as the driver's control node, and its descriptor.
class Control {
 public:
  Control() {
    char path[] = "/tmp/gpuwatch-caller-XXXXXX";
    directory_ = ::mkdtemp(path);
    std::ofstream(directory_ + "/nvidiactl") << "x";
    fd_ = ::open((directory_ + "/nvidiactl").c_str(), O_RDONLY | O_CLOEXEC);
  }
  ~Control() {
    ::close(fd_);
    std::filesystem::remove_all(directory_);
  }
  int fd() const { return fd_; }

 private:
  std::string directory_;
  int fd_ = -1;
};

template <typename T>
void put(std::uint8_t* out, T value) {
  std::memcpy(out, &value, sizeof value);
}

// A mapping of 2 MiB at 0x7f0000200000 on one GPU.
void fill(std::uint8_t* argument, std::size_t size, int control, std::uint32_t status = 0) {
  put<std::uint64_t>(argument, 0x7f0000200000);
  put<std::uint64_t>(argument + 8, 0x200000);
  argument[24] = 7;  // of the GPU's UUID
  std::uint8_t* tail = argument + size - 24;
  put<std::uint64_t>(tail, 1);
  put<std::int32_t>(tail + 8, control);
  put<std::uint32_t>(tail + 12, 0xc1d00001);
  put<std::uint32_t>(tail + 16, 77);
  put<std::uint32_t>(tail + 20, status);
}

// Memory that ends `size` bytes behind what it gives: a byte more is a fault.
class AtTheEnd {
 public:
  explicit AtTheEnd(std::size_t size) {
    page_ = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    bytes_ = (size + page_ - 1) / page_ * page_ + page_;
    base_ =
        static_cast<std::uint8_t*>(::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::mprotect(base_ + bytes_ - page_, page_, PROT_NONE);
    place_ = base_ + bytes_ - page_ - size;
  }
  ~AtTheEnd() { ::munmap(base_, bytes_); }
  std::uint8_t* place() const { return place_; }

 private:
  std::size_t page_ = 0, bytes_ = 0;
  std::uint8_t *base_ = nullptr, *place_ = nullptr;
};

std::vector<MappedRange> ranges_after(const void* argument, MapForm form, bool& taken) {
  const auto call = std::make_unique<OwnCall>();
  taken = take_call(Node::kUvm, kMap, argument, form, true, *call);
  RangeRecord record;
  if (taken) record.call(call->node, call->request, call->bytes(), call->allocation());
  return record.ranges();
}

void expect_mapped(const std::uint8_t* argument, MapForm form) {
  bool taken = false;
  const auto ranges = ranges_after(argument, form, taken);
  ASSERT_TRUE(taken);
  ASSERT_EQ(ranges.size(), 1u);
  EXPECT_EQ(ranges[0].address, 0x7f0000200000u);
  EXPECT_EQ(ranges[0].bytes, 0x200000u);
  ASSERT_EQ(ranges[0].gpus.size(), 1u);
  EXPECT_EQ(ranges[0].gpus[0][0], 7);
}

TEST(Caller, FormOfARelease) {
  for (const char* release : {"535.54.03\n", "535.309.01", "545.23.06"})
    EXPECT_EQ(map_form_of(release), MapForm::kSmall) << release;
  for (const char* release : {"550.54.14", "550.163.01\n", "580.159.04\n", "620.06.00"})
    EXPECT_EQ(map_form_of(release), MapForm::kLarge) << release;
  for (const char* release : {"", "535", "550.40.07", "525.60.13", "999.1.1", "x.y", "580", "99999999999.1.1"})
    EXPECT_EQ(map_form_of(release), MapForm::kUnknown) << release;
}

TEST(Caller, SmallFormAtTheEndOfAMapping) {
  const Control control;
  const AtTheEnd memory(kMapSmallBytes);
  fill(memory.place(), kMapSmallBytes, control.fd());
  expect_mapped(memory.place(), MapForm::kSmall);
  expect_mapped(memory.place(), MapForm::kUnknown);
  bool taken = true;
  EXPECT_TRUE(ranges_after(memory.place(), MapForm::kLarge, taken).empty());
  EXPECT_FALSE(taken) << "shorter than the form of that release";
}

TEST(Caller, LargeFormAtTheEndOfAMapping) {
  const Control control;
  const AtTheEnd memory(kMapLargeBytes);
  fill(memory.place(), kMapLargeBytes, control.fd());
  expect_mapped(memory.place(), MapForm::kLarge);
  expect_mapped(memory.place(), MapForm::kUnknown);
}

// What lies behind a small structure may look like anything.
TEST(Caller, AFormThatCannotBeToldIsNotTaken) {
  const Control control;
  std::vector<std::uint8_t> both(kMapLargeBytes);
  fill(both.data(), kMapSmallBytes, control.fd());
  expect_mapped(both.data(), MapForm::kUnknown);
  fill(both.data(), kMapLargeBytes, control.fd());
  bool taken = true;
  (void)ranges_after(both.data(), MapForm::kUnknown, taken);
  EXPECT_FALSE(taken) << "fits both";
  std::vector<std::uint8_t> neither(kMapLargeBytes);
  fill(neither.data(), kMapLargeBytes, 0);
  (void)ranges_after(neither.data(), MapForm::kUnknown, taken);
  EXPECT_FALSE(taken) << "no descriptor of the control node";
  expect_mapped(neither.data(), MapForm::kLarge);
}

TEST(Caller, UnreadableIsNotTaken) {
  const auto call = std::make_unique<OwnCall>();
  EXPECT_FALSE(take_call(Node::kUvm, 34, reinterpret_cast<void*>(16), MapForm::kLarge, false, *call));
  const AtTheEnd memory(16);
  EXPECT_FALSE(take_call(Node::kUvm, 34, memory.place(), MapForm::kLarge, false, *call));
}

TEST(Caller, OnlyMemoryIsTakenOfAllocations) {
  std::vector<std::uint8_t> argument(48), parameters(12);
  put<std::uint32_t>(argument.data(), 0xc1d00001);
  put<std::uint32_t>(argument.data() + 8, 5);
  put<std::uint32_t>(argument.data() + 12, 0x83de);
  put<std::uint64_t>(argument.data() + 16, reinterpret_cast<std::uint64_t>(parameters.data()));
  const auto call = std::make_unique<OwnCall>();
  EXPECT_FALSE(take_call(Node::kControl, 0xc030462b, argument.data(), MapForm::kLarge, true, *call));
  put<std::uint32_t>(argument.data() + 12, kClassVideoMemory);
  ASSERT_TRUE(take_call(Node::kControl, 0xc030462b, argument.data(), MapForm::kLarge, true, *call));
  EXPECT_EQ(call->bytes().size(), 48u);
  EXPECT_EQ(call->allocation().size(), 12u);
}

}  // namespace
}  // namespace gpuwatch::probe
