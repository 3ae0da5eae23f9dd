// SPDX-License-Identifier: Apache-2.0
// Unit tests of the doctor on made-up machines: a healthy one, an empty one,
// and single faults; a problem always comes with a remedy.
#include "cli/doctor.h"

#include <gtest/gtest.h>
#include <sys/utsname.h>

#include <algorithm>
#include <filesystem>

#include "unit/support.h"

namespace gpuwatch::cli {
namespace {

class Doctor : public ::testing::Test {
 protected:
  void put(const std::string& path, const std::string& text) {
    const std::string full = root() + path;
    std::filesystem::create_directories(std::filesystem::path(full).parent_path());
    test::spill(full, text);
  }
  std::string root() const { return dir_.file("root"); }

  Check check(const std::string& layer) {
    const auto checks = examine(root());
    const auto it = std::find_if(checks.begin(), checks.end(), [&](const Check& c) { return c.layer == layer; });
    EXPECT_NE(it, checks.end()) << layer;
    return it == checks.end() ? Check{} : *it;
  }

  test::ScratchDir dir_;
};

TEST_F(Doctor, EmptyMachineIsToldInWords) {
  for (const Check& c : examine(root())) {
    EXPECT_FALSE(c.found.empty()) << c.layer;
    EXPECT_FALSE(c.checked.empty()) << c.layer;
    if (c.verdict != Verdict::kOk) {
      EXPECT_FALSE(c.remedy.empty()) << c.layer;
    }
  }
  EXPECT_EQ(check("hardware").found, "none");
  EXPECT_EQ(check("driver").found, "not loaded");
  EXPECT_EQ(check("kernel module").verdict, Verdict::kProblem);
  EXPECT_NE(check("kernel module").remedy.find("modprobe gpuwatch"), std::string::npos);
}

TEST_F(Doctor, GpusAreFoundByVendorAndClass) {
  put("/sys/bus/pci/devices/0000:41:00.0/vendor", "0x10de\n");
  put("/sys/bus/pci/devices/0000:41:00.0/class", "0x030200\n");
  put("/sys/bus/pci/devices/0000:41:00.0/device", "0x2335\n");
  put("/sys/bus/pci/devices/0000:41:00.1/vendor", "0x10de\n");  // its audio function
  put("/sys/bus/pci/devices/0000:41:00.1/class", "0x040300\n");
  put("/sys/bus/pci/devices/0000:02:00.0/vendor", "0x8086\n");
  put("/sys/bus/pci/devices/0000:02:00.0/class", "0x030000\n");
  EXPECT_EQ(check("hardware").found, "0000:41:00.0 (0x2335)");
  EXPECT_EQ(check("hardware").verdict, Verdict::kOk);
}

TEST_F(Doctor, DriverAndNodes) {
  put("/sys/module/nouveau/x", "");
  EXPECT_NE(check("driver").found.find("nouveau"), std::string::npos);
  put("/sys/module/nvidia/version", "580.159.04\n");
  EXPECT_EQ(check("driver").found, "580.159.04");
  put("/dev/nvidiactl", "");
  EXPECT_EQ(check("nodes").verdict, Verdict::kNote);
  put("/dev/nvidia-uvm", "");
  EXPECT_EQ(check("nodes").verdict, Verdict::kOk);
}

TEST_F(Doctor, SecureBootAndLockdown) {
  put("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", std::string("\x06\0\0\0\x01", 5));
  put("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
  Check c = check("secure boot");
  EXPECT_EQ(c.found, "secure boot on, lockdown integrity");
  EXPECT_EQ(c.verdict, Verdict::kNote);
  put("/sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
  EXPECT_EQ(check("secure boot").verdict, Verdict::kProblem);
  put("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", std::string("\x06\0\0\0\0", 5));
  put("/sys/kernel/security/lockdown", "[none] integrity confidentiality\n");
  EXPECT_EQ(check("secure boot").verdict, Verdict::kOk);
}

TEST_F(Doctor, Privileges) {
  put("/proc/self/uid_map", "         0          0 4294967295\n");
  put("/proc/self/status", "Name:\tx\nCapEff:\t000001ffffffffff\n");
  EXPECT_EQ(check("privileges").found, "CAP_SYS_ADMIN");
  put("/proc/self/status", "Name:\tx\nCapEff:\t0000004000000000\n");
  EXPECT_EQ(check("privileges").verdict, Verdict::kNote);
  put("/proc/self/status", "Name:\tx\nCapEff:\t0000000000000000\n");
  EXPECT_EQ(check("privileges").verdict, Verdict::kProblem);
  put("/proc/self/status", "Name:\tx\nCapEff:\t000001ffffffffff\n");
  put("/proc/self/uid_map", "         0     100000      65536\n");
  EXPECT_EQ(check("privileges").verdict, Verdict::kProblem);
}

TEST_F(Doctor, FtraceHeadersCgroups) {
  utsname name{};
  ASSERT_EQ(::uname(&name), 0);
  EXPECT_EQ(check("kernel headers").verdict, Verdict::kProblem);
  put("/lib/modules/" + std::string(name.release) + "/build/Makefile", "");
  EXPECT_EQ(check("kernel headers").verdict, Verdict::kOk);
  EXPECT_EQ(check("ftrace").found, "not in this kernel");
  put("/proc/sys/kernel/ftrace_enabled", "0\n");
  EXPECT_EQ(check("ftrace").found, "off");
  put("/proc/sys/kernel/ftrace_enabled", "1\n");
  EXPECT_EQ(check("ftrace").verdict, Verdict::kOk);
  EXPECT_EQ(check("cgroups").verdict, Verdict::kNote);
  put("/proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
  EXPECT_EQ(check("cgroups").verdict, Verdict::kOk);
}

TEST_F(Doctor, AForeignDeviceNodeIsAProblem) {
  put("/dev/gpuwatch", "no device");
  const Check c = check("kernel module");
  EXPECT_EQ(c.verdict, Verdict::kProblem);
  EXPECT_NE(c.remedy.find("not gpuwatch's"), std::string::npos) << c.remedy;
}

}  // namespace
}  // namespace gpuwatch::cli
