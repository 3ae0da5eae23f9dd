// SPDX-License-Identifier: Apache-2.0
// GPUs by minor: from /proc, from a stand-in NVML that succeeds, fails in every
// function, or hangs. What is not known is empty, and nobody ever waits.
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "attribute/gpu_directory.h"
#include "attribute/gpu_nvml.h"
#include "attribute/gpu_proc.h"
#include "base/clock.h"
#include "unit/support.h"

namespace gpuwatch::attribute {
namespace {

constexpr char kFunctions[][40] = {"nvmlInit_v2",
                                   "nvmlDeviceGetCount_v2",
                                   "nvmlDeviceGetHandleByIndex_v2",
                                   "nvmlDeviceGetMinorNumber",
                                   "nvmlDeviceGetUUID",
                                   "nvmlDeviceGetName",
                                   "nvmlDeviceGetPciInfo_v3",
                                   "nvmlDeviceGetMaxMigDeviceCount",
                                   "nvmlDeviceGetMigDeviceHandleByIndex",
                                   "nvmlDeviceGetGpuInstanceId",
                                   "nvmlDeviceGetComputeInstanceId"};

struct Environment {
  Environment(const char* name, const std::string& value) : name_(name) { ::setenv(name, value.c_str(), 1); }
  ~Environment() { ::unsetenv(name_); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  const char* name_;
};

// A driver's /proc with one GPU in MIG mode whose UUID is known.
void make_proc(const std::string& root, const std::string& uuid) {
  namespace fs = std::filesystem;
  const std::string top = root + "/proc/driver/nvidia";
  fs::create_directories(top + "/gpus/0000:41:00.0");
  fs::create_directories(top + "/capabilities/gpu1/mig/gi3/ci0");
  test::spill(top + "/gpus/0000:41:00.0/information", "Model: \t\t NVIDIA Proc\nIRQ:   \t\t 34\nGPU UUID: \t " + uuid +
                                                          "\nBus Location: \t 0000:41:00.0\nDevice Minor: \t 1\n");
  test::spill(top + "/capabilities/gpu1/mig/gi3/access", "DeviceFileMinor: 30\nDeviceFileMode: 256\n");
  test::spill(top + "/capabilities/gpu1/mig/gi3/ci0/access", "DeviceFileMinor: 31\nDeviceFileMode: 256\n");
}

constexpr char kProcUuid[] = "GPU-55555555-6666-7777-8888-999999999999";

// Waits for a background answer; the bound only ends a broken test.
template <typename Done>
bool eventually(Done done) {
  for (int i = 0; i < 3000; ++i) {
    if (done()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

TEST(GpuProc, ReadsInformationAndCapabilities) {
  test::ScratchDir dir;
  make_proc(dir.file(""), kProcUuid);
  auto gpus = read_proc_gpus(dir.file(""));
  ASSERT_TRUE(gpus.ok());
  ASSERT_EQ(gpus->size(), 1U);
  const model::Gpu& gpu = gpus->front();
  EXPECT_EQ(gpu.minor, 1);
  EXPECT_EQ(gpu.pci, "0000:41:00.0");
  EXPECT_EQ(gpu.name, "NVIDIA Proc");
  EXPECT_EQ(gpu.uuid, kProcUuid);
  ASSERT_EQ(gpu.mig.size(), 2U);
  const model::MigPlace place = model::find_mig(*gpus, 31);
  ASSERT_NE(place.mig, nullptr);
  EXPECT_EQ(place.mig->gpu_instance, 3);
  EXPECT_EQ(place.mig->compute_instance, 0);
  EXPECT_EQ(model::find_mig(*gpus, 30).mig->compute_instance, -1);
  EXPECT_EQ(model::find_mig(*gpus, 32).mig, nullptr);
}

TEST(GpuProc, UnknownStaysEmpty) {
  const model::Gpu gpu = parse_gpu_information("Model:\nGPU UUID: GPU-\?\?\?\?\n", "0000:1:0.0");
  EXPECT_EQ(gpu.minor, -1);
  EXPECT_TRUE(gpu.uuid.empty());
  EXPECT_TRUE(gpu.name.empty());
  EXPECT_EQ(parse_gpu_information("Device Minor: 4294967296\n", "").minor, -1);
  EXPECT_EQ(parse_gpu_information("Device Minor: -3\n", "").minor, -1);
  EXPECT_EQ(parse_gpu_information("Device Minor: 3x\n", "").minor, -1);
  test::ScratchDir dir;
  EXPECT_FALSE(read_proc_gpus(dir.file("")).ok());
}

TEST(GpuNvml, TellsAll) {
  auto answer = read_nvml_gpus(NVML_STANDIN);
  ASSERT_TRUE(answer.ok()) << answer.error().message();
  ASSERT_EQ(answer->gpus.size(), 2U);
  EXPECT_EQ(answer->errors, 0U);
  EXPECT_EQ(answer->gpus[0].pci, "0000:40:00.0");
  EXPECT_EQ(answer->gpus[1].minor, 1);
  EXPECT_EQ(answer->gpus[1].uuid, kProcUuid);
  ASSERT_EQ(answer->gpus[1].mig.size(), 1U);
  EXPECT_EQ(answer->gpus[1].mig[0].gpu_instance, 3);
  EXPECT_EQ(answer->gpus[1].mig[0].uuid, "MIG-aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee");
}

TEST(GpuNvml, NoLibraryIsAnErrorOfItsOwn) {
  auto answer = read_nvml_gpus("libgpuwatch-no-such-library.so");
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), base::Code::kNotFound);
}

// Each function with several errors: what it would have told is missing, and
// counted; the rest is there; a GPU never turns into another or into none.
TEST(GpuNvml, EveryFunctionMayFail) {
  for (const char* function : kFunctions)
    for (const char* status : {"1", "4", "15", "17", "999"}) {
      const Environment fail("NVML_FAIL", std::string(function) + "=" + status);
      auto answer = read_nvml_gpus(NVML_STANDIN);
      const std::string what = std::string(function) + " " + status;
      if (std::string_view(function) == "nvmlInit_v2" || std::string_view(function) == "nvmlDeviceGetCount_v2") {
        EXPECT_FALSE(answer.ok()) << what;
        continue;
      }
      ASSERT_TRUE(answer.ok()) << what;
      EXPECT_GT(answer->errors, 0U) << what;
      for (const model::Gpu& gpu : answer->gpus) {
        EXPECT_TRUE(gpu.uuid.empty() || gpu.minor < 0 || (gpu.uuid == kProcUuid) == (gpu.minor == 1)) << what;
        EXPECT_TRUE(!gpu.pci.empty() || std::string_view(function) == "nvmlDeviceGetPciInfo_v3") << what;
      }
    }
}

GpuDirectoryOptions options_for(const std::string& root) {
  GpuDirectoryOptions options;
  options.root = root;
  options.nvml_library = NVML_STANDIN;
  options.nvml_deadline = std::chrono::milliseconds(50);
  options.again_after = std::chrono::seconds(0);
  return options;
}

TEST(GpuDirectory, ARecordingOnlyRepeats) {
  GpuDirectory directory(model::GpuList{{0, "0000:41:00.0", "", "NVIDIA H200", {}}});
  directory.used(0);
  directory.used(7);
  EXPECT_EQ(directory.gpus().size(), 1U);
  EXPECT_EQ(directory.counters().looks, 0U);
  EXPECT_EQ(directory.counters().nvml_calls, 0U);
}

TEST(GpuDirectory, NobodyIsAskedBeforeAGpuIsUsed) {
  test::ScratchDir dir;
  make_proc(dir.file(""), kProcUuid);
  GpuDirectory directory(options_for(dir.file("")));
  EXPECT_TRUE(directory.gpus().empty());
  EXPECT_EQ(directory.counters().looks, 0U);
}

// MIG instances have UUIDs that only NVML knows.
TEST(GpuDirectory, NvmlAddsToProc) {
  test::ScratchDir dir;
  make_proc(dir.file(""), "GPU-\?\?\?\?");
  GpuDirectory directory(options_for(dir.file("")));
  directory.used(1);
  ASSERT_TRUE(eventually([&] { return directory.counters().nvml_calls != 0; }));
  const model::Gpu* gpu = model::find_gpu(directory.gpus(), 1);
  ASSERT_NE(gpu, nullptr);
  EXPECT_EQ(gpu->name, "NVIDIA Proc");
  EXPECT_EQ(gpu->uuid, kProcUuid);
  EXPECT_EQ(model::find_mig(directory.gpus(), 31).mig->uuid, "MIG-aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee");
  EXPECT_TRUE(fully_known(*gpu));
  EXPECT_EQ(directory.counters().looks, 1U);
  for (int i = 0; i < 100; ++i) directory.used(1);
  EXPECT_EQ(directory.counters().looks, 1U);
}

TEST(GpuDirectory, NvmlIsLeftAloneWhereProcTellsAll) {
  test::ScratchDir dir;
  make_proc(dir.file(""), kProcUuid);
  std::filesystem::remove_all(dir.file("") + "/proc/driver/nvidia/capabilities");
  GpuDirectory directory(options_for(dir.file("")));
  directory.used(1);
  ASSERT_TRUE(eventually([&] { return !directory.gpus().empty(); }));
  EXPECT_EQ(directory.counters().nvml_calls, 0U);
}

// What /proc told stays although NVML fails.
TEST(GpuDirectory, AFailingNvmlTakesNothingAway) {
  test::ScratchDir dir;
  make_proc(dir.file(""), kProcUuid);
  const Environment fail("NVML_FAIL", "nvmlInit_v2");
  GpuDirectory directory(options_for(dir.file("")));
  directory.used(1);
  ASSERT_TRUE(eventually([&] { return directory.counters().nvml_errors != 0; }));
  ASSERT_EQ(directory.gpus().size(), 1U);
  EXPECT_EQ(directory.gpus()[0].uuid, kProcUuid);
}

// The calling thread is never held up, and the end of the directory neither.
TEST(GpuDirectory, AHungNvmlStallsNothing) {
  test::ScratchDir dir;
  make_proc(dir.file(""), kProcUuid);
  const Environment hang("NVML_HANG", "nvmlDeviceGetUUID");
  std::uint64_t longest = 0;
  {
    GpuDirectory directory(options_for(dir.file("")));
    ASSERT_TRUE(eventually([&] {
      const std::uint64_t begin = base::monotonic_ns();
      directory.used(1);
      (void)directory.gpus();
      const bool counted = directory.counters().nvml_timeouts != 0;
      longest = std::max(longest, base::monotonic_ns() - begin);
      return counted;
    }));
    EXPECT_EQ(directory.gpus().size(), 1U);
    EXPECT_EQ(directory.counters().nvml_timeouts, 1U);
    EXPECT_EQ(directory.counters().looks, 1U);
  }
  // Far below the hang, which is forever, even on a loaded machine.
  EXPECT_LT(longest, 2'000'000'000U);
}

TEST(GpuDirectory, ADriverThatWentIsForgotten) {
  test::ScratchDir dir;
  make_proc(dir.file(""), kProcUuid);
  GpuDirectoryOptions options = options_for(dir.file(""));
  options.nvml_library.clear();
  GpuDirectory directory(options);
  directory.used(1);
  ASSERT_TRUE(eventually([&] { return !directory.gpus().empty(); }));
  directory.forget();
  EXPECT_TRUE(directory.gpus().empty());
}

}  // namespace
}  // namespace gpuwatch::attribute
