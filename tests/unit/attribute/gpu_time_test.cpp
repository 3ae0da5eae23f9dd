// SPDX-License-Identifier: Apache-2.0
// GPU time by process from a stand-in NVML: the latest sample counts, what NVML
// does not tell is not known, and a hanging NVML holds nobody up.
#include "attribute/gpu_time.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/clock.h"
#include "unit/support.h"

namespace gpuwatch::attribute {
namespace {

struct Environment {
  Environment(const char* name, const std::string& value) : name_(name) { ::setenv(name, value.c_str(), 1); }
  ~Environment() { ::unsetenv(name_); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  const char* name_;
};

template <typename Done>
bool eventually(Done done) {
  for (int i = 0; i < 3000; ++i) {
    if (done()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

TEST(GpuTime, TheLatestSampleOfEachProcess) {
  auto answer = read_nvml_gpu_time(NVML_STANDIN, {0, 1}, {});
  ASSERT_TRUE(answer.ok()) << answer.error().message();
  const auto of = [&](std::uint32_t pid) { return answer->percent.find({0, pid}); };
  ASSERT_NE(of(42), answer->percent.end());
  EXPECT_EQ(of(42)->second, 75U);
  EXPECT_EQ(of(100)->second, 0U);
  EXPECT_EQ(of(399)->second, 299U % 101);
  EXPECT_EQ(of(103), answer->percent.end()) << "above 100 is no share";
  EXPECT_EQ(answer->percent.count({1, 42}), 0U);
  EXPECT_EQ(answer->seen.at(0), 1300U);
  // Nothing new since then.
  auto again = read_nvml_gpu_time(NVML_STANDIN, {0, 1}, answer->seen);
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(again->percent.empty());
}

TEST(GpuTime, OnlyGpusInUseAreAsked) {
  auto answer = read_nvml_gpu_time(NVML_STANDIN, {1}, {});
  ASSERT_TRUE(answer.ok());
  EXPECT_TRUE(answer->percent.empty());
  EXPECT_EQ(answer->seen.count(0), 0U);
}

TEST(GpuTime, EveryFunctionMayFail) {
  EXPECT_FALSE(read_nvml_gpu_time("libgpuwatch-no-such-library.so", {0}, {}).ok());
  for (const char* function : {"nvmlInit_v2", "nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2",
                               "nvmlDeviceGetMinorNumber", "nvmlDeviceGetProcessUtilization"})
    for (const char* status : {"1", "3", "4", "6", "7", "15", "999"}) {
      const Environment fail("NVML_FAIL", std::string(function) + "=" + status);
      auto answer = read_nvml_gpu_time(NVML_STANDIN, {0}, {});
      if (answer.ok()) {
        EXPECT_TRUE(answer->percent.empty()) << function << " " << status;
      }
    }
}

TEST(GpuTime, AsksInTheBackgroundAndRarely) {
  GpuTimeOptions options;
  options.nvml_library = NVML_STANDIN;
  GpuTime time(options);
  EXPECT_FALSE(time.known());
  time.used({});
  EXPECT_FALSE(time.known());
  time.used({0});
  ASSERT_TRUE(eventually([&] { return time.known(); }));
  EXPECT_EQ(time.percent(0, 42), 75U);
  EXPECT_EQ(time.percent(0, 43), std::nullopt);
  EXPECT_EQ(time.percent(1, 42), std::nullopt);
}

TEST(GpuTime, AHangingNvmlHoldsNobodyUp) {
  // The job goes on hanging, on its own: only in a process of its own.
  EXPECT_EXIT(
      {
        ::setenv("NVML_HANG", "nvmlDeviceGetProcessUtilization", 1);
        GpuTimeOptions options;
        options.nvml_library = NVML_STANDIN;
        options.every = std::chrono::milliseconds(0);
        const std::uint64_t begin = base::monotonic_ns();
        {
          GpuTime time(options);
          for (int i = 0; i < 100; ++i) time.used({0});
          if (time.known()) std::_Exit(2);
        }
        std::_Exit(base::monotonic_ns() - begin < 5'000'000'000 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace gpuwatch::attribute
