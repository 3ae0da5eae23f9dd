// SPDX-License-Identifier: Apache-2.0
// gpuwatch-probe as a whole on a fatbin of several modules, one of which the
// driver does not load, on a GPU that is memory: fake/loader.cpp for the driver's
// library, fake/gpu.cpp, preloaded, for the kernel behind it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

namespace gpuwatch::probe {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

class Program : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / ("probe-program-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    std::ofstream(folder_ / "nvidia-uvm") << "";
    std::ofstream(folder_ / "nvidiactl") << "";
  }
  void TearDown() override { fs::remove_all(folder_); }

  // A container for each cubin, one behind the other.
  std::string fatbin(const std::vector<std::string>& names) const {
    const std::string path = folder_ / "several.fatbin";
    std::ofstream out(path, std::ios::binary);
    for (const std::string& name : names) {
      std::ifstream in(std::string(FATBINS) + "/" + name, std::ios::binary);
      std::string image((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
      EXPECT_FALSE(image.empty()) << name;
      image.resize((image.size() + 7) / 8 * 8);
      char header[16 + 64] = {};
      const auto put = [&](std::size_t at, std::uint64_t value, std::size_t bytes) {
        std::memcpy(header + at, &value, bytes);
      };
      put(0, 0xBA55ED50, 4);
      put(4, 1, 2);
      put(6, 16, 2);
      put(8, 64 + image.size(), 8);
      put(16, 2, 2);  // an ELF
      put(18, 0x101, 2);
      put(20, 64, 4);
      put(24, image.size(), 8);
      put(16 + 28, 90, 4);
      put(16 + 40, 0x11, 8);
      out.write(header, sizeof header);
      out.write(image.data(), static_cast<std::streamsize>(image.size()));
    }
    return path;
  }

  std::vector<json> run(const std::string& arguments, const std::string& environment, int& code) const {
    const std::string command = environment + " FAKE_NVIDIA='" + folder_.string() + "' LD_PRELOAD='" PROBE_GPU "' '" +
                                AGENT_PROBE "' --json --library '" FAKE_LOADER "' " + arguments + " 2>/dev/null";
    std::FILE* pipe = ::popen(command.c_str(), "r");
    std::string text;
    char part[4096];
    for (std::size_t got = 0; (got = std::fread(part, 1, sizeof part, pipe)) != 0;) text.append(part, got);
    const int status = ::pclose(pipe);
    code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
    std::vector<json> lines;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at);
      lines.push_back(json::parse(text.substr(at, end - at)));
      at = end + 1;
    }
    return lines;
  }

  static std::vector<json> of_type(const std::vector<json>& lines, const std::string& type) {
    std::vector<json> out;
    for (const json& line : lines)
      if (line.value("type", "") == type) out.push_back(line);
    return out;
  }

  fs::path folder_;
};

TEST_F(Program, SeveralModulesInOneBatch) {
  // rep_r is relocatable: the driver does not load it by itself.
  const std::string file = fatbin({"rep_a_90.cubin", "rep_r_90.cubin", "rep_g_90.cubin", "rep_g2_90.cubin"});
  int code = -1;
  const std::vector<json> lines = run("--image '" + file + "'", "", code);
  EXPECT_EQ(code, 0) << json(lines).dump(1);
  const auto modules = of_type(lines, "module");
  ASSERT_EQ(modules.size(), 1u) << json(lines).dump(1);
  EXPECT_NE(modules[0]["reason"].get<std::string>().find("relocatable"), std::string::npos);
  const auto kernels = of_type(lines, "kernel");
  EXPECT_EQ(kernels.size(), 9u);
  std::set<std::string> images;
  for (const json& kernel : kernels) {
    images.insert(kernel["image"]);
    EXPECT_TRUE(kernel["verdict"] == "match" || kernel["verdict"] == "match-relocated") << kernel.dump();
  }
  EXPECT_EQ(images.size(), 3u) << "each function is of its module";
  const auto batches = of_type(lines, "batch");
  ASSERT_EQ(batches.size(), 1u);
  EXPECT_EQ(batches[0]["modules"], 3);
  EXPECT_EQ(batches[0]["functions"], 9);
  const auto sums = of_type(lines, "image");
  ASSERT_EQ(sums.size(), 1u);
  EXPECT_EQ(sums[0]["modules"], 3);
  EXPECT_EQ(sums[0]["modules_not_probed"], 1);
  EXPECT_EQ(sums[0]["batches"], 1);
  EXPECT_EQ(sums[0]["readings_gpu_ms"].size(), 2u);
}

TEST_F(Program, ChangedCodeAndARefusal) {
  const std::string file = fatbin({"rep_g_90.cubin", "rep_a_90.cubin", "rep_g2_90.cubin"});
  int code = -1;
  const std::vector<json> lines = run("--image '" + file + "'", "FAKE_REFUSE=1 FAKE_CHANGE=plain:24", code);
  EXPECT_EQ(code, 1) << json(lines).dump(1);
  EXPECT_EQ(of_type(lines, "module").size(), 1u);
  std::size_t differ = 0;
  for (const json& kernel : of_type(lines, "kernel")) {
    if (kernel["verdict"] != "differ") continue;
    ++differ;
    EXPECT_EQ(kernel["name"], "plain");
    EXPECT_EQ(kernel["first_offset"], 24);
  }
  EXPECT_EQ(differ, 2u);
}

TEST_F(Program, OutOfMemoryWithOneModuleAlone) {
  const std::string file = fatbin({"rep_g_90.cubin", "rep_a_90.cubin"});
  int code = -1;
  const std::vector<json> lines = run("--image '" + file + "'", "FAKE_TEXT_MAX=64", code);
  EXPECT_EQ(code, 7) << json(lines).dump(1);
  EXPECT_EQ(of_type(lines, "error").size(), 1u);
}

}  // namespace
}  // namespace gpuwatch::probe
