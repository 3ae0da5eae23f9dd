// SPDX-License-Identifier: Apache-2.0
// Unit tests of what the kernel source decides on its own: version checks, the
// meta page, ring sizes, and the text of its errors. The device itself is
// tested in virtual machines.
#include "source/kmod_source.h"

#include <gtest/gtest.h>

#include "source/host_info.h"
#include "unit/support.h"

namespace gpuwatch::source {
namespace {

TEST(CheckVersions, SameMajorIsEnough) {
  gpuwatch_info info{};
  info.abi_major = GPUWATCH_ABI_MAJOR;
  info.abi_minor = 99;
  info.schema = GPUWATCH_SCHEMA + 3;
  EXPECT_TRUE(check_versions(info).ok());
}

TEST(CheckVersions, AnotherMajorNamesBothNumbersAndTheRemedy) {
  gpuwatch_info info{};
  info.abi_major = 7;
  info.abi_minor = 2;
  info.schema = 1;
  const base::Status status = check_versions(info);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), base::Code::kUnsupported);
  const std::string& text = status.error().message();
  EXPECT_NE(text.find("module speaks ABI 7.2"), std::string::npos) << text;
  EXPECT_NE(
      text.find("this program needs " + std::to_string(GPUWATCH_ABI_MAJOR) + "." + std::to_string(GPUWATCH_ABI_MINOR)),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("rmmod gpuwatch && modprobe gpuwatch"), std::string::npos) << text;
}

gpuwatch_meta good_meta() {
  gpuwatch_meta meta{};
  meta.struct_len = sizeof meta;
  meta.abi_major = GPUWATCH_ABI_MAJOR;
  meta.nr_cpus = 4;
  meta.page_bytes = 4096;
  meta.ring_bytes = 1 << 20;
  meta.cpu_stride = 2 * 4096 + (2 << 20);
  return meta;
}

TEST(CheckMeta, EveryFieldIsChecked) {
  EXPECT_TRUE(check_meta(good_meta(), 1 << 20, 4096).ok());
  const auto refused = [](auto change) {
    gpuwatch_meta meta = good_meta();
    change(meta);
    return !check_meta(meta, 1 << 20, 4096).ok();
  };
  EXPECT_TRUE(refused([](gpuwatch_meta& m) { m.struct_len = 8; }));
  EXPECT_TRUE(refused([](gpuwatch_meta& m) { m.abi_major = 2; }));
  EXPECT_TRUE(refused([](gpuwatch_meta& m) { m.page_bytes = 8192; }));
  EXPECT_TRUE(refused([](gpuwatch_meta& m) { m.ring_bytes = 2 << 20; }));
  EXPECT_TRUE(refused([](gpuwatch_meta& m) { m.nr_cpus = 0; }));
  EXPECT_TRUE(refused([](gpuwatch_meta& m) { m.nr_cpus = 1 << 20; }));
  EXPECT_TRUE(refused([](gpuwatch_meta& m) { m.cpu_stride = 1 << 20; }));
  EXPECT_TRUE(refused([](gpuwatch_meta& m) { m.cpu_stride += 1; }));
  EXPECT_TRUE(refused([](gpuwatch_meta& m) { m.cpu_stride = ~0ull << 12; }));
}

TEST(DefaultRingBytes, PowerOfTwoWithinBounds) {
  EXPECT_EQ(default_ring_bytes(0), 4u << 20);
  EXPECT_EQ(default_ring_bytes(2), 4u << 20);
  EXPECT_EQ(default_ring_bytes(100), 2u << 20);
  EXPECT_EQ(default_ring_bytes(256), 1u << 20);
  EXPECT_EQ(default_ring_bytes(8192), 256u << 10);
}

TEST(KmodDevice, AbsentNodeNamesTheRemedy) {
  auto device = KmodDevice::open("/nonexistent/gpuwatch");
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().code(), base::Code::kNotFound);
  EXPECT_NE(device.error().message().find("modprobe gpuwatch"), std::string::npos);
}

TEST(KmodDevice, ForeignNodeIsNamedAsSuch) {
  auto device = KmodDevice::open("/dev/null");
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().code(), base::Code::kUnsupported);
  EXPECT_NE(device.error().message().find("not gpuwatch's"), std::string::npos) << device.error().message();
}

TEST(HostInfo, ReadsVersionAndGpus) {
  test::ScratchDir dir;
  const std::string root = dir.file("");
  ASSERT_EQ(std::system(("mkdir -p " + root + "/proc/driver/nvidia/gpus/0000:41:00.0 " + root +
                         "/proc/driver/nvidia/gpus/0000:c1:00.0 " + root + "/sys/module/nvidia")
                            .c_str()),
            0);
  EXPECT_EQ(driver_version(root), "");
  test::spill(root + "/sys/module/nvidia/version", "535.104.05\n");
  EXPECT_EQ(driver_version(root), "535.104.05");
  test::spill(root + "/proc/driver/nvidia/version",
              "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  "
              "(dvs-builder@U22)\nGCC version:  gcc 12.2.0\n");
  EXPECT_EQ(driver_version(root), "580.159.04");
  test::spill(root + "/proc/driver/nvidia/gpus/0000:41:00.0/information",
              "Model: \t\t NVIDIA H200\nIRQ: 34\nGPU UUID: \t GPU-01234567-89ab-cdef-0123-456789abcdef\n"
              "Device Minor: \t 1\n");
  test::spill(root + "/proc/driver/nvidia/gpus/0000:c1:00.0/information",
              "Model: \t\t NVIDIA L4\nGPU UUID: \t GPU-\?\?\?\?\nDevice Minor: \t 0\n");
  const auto found = gpus(root);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0], (GwcapGpu{0, "0000:c1:00.0", "NVIDIA L4", ""}));
  EXPECT_EQ(found[1], (GwcapGpu{1, "0000:41:00.0", "NVIDIA H200", "GPU-01234567-89ab-cdef-0123-456789abcdef"}));
}

TEST(HostInfo, HeaderDoesNotHoldTheHostsName) {
  char name[256] = {};
  ASSERT_EQ(::gethostname(name, sizeof name - 1), 0);
  const GwcapHeader header = describe_host("kmod");
  EXPECT_EQ(header.label, "");
  EXPECT_EQ(header.source, "kmod");
  EXPECT_FALSE(header.kernel_release.empty());
  if (std::string(name).size() >= 6) {
    EXPECT_EQ(header_to_json(header).find(name), std::string::npos);
  }
}

}  // namespace
}  // namespace gpuwatch::source
