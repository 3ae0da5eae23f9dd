// SPDX-License-Identifier: Apache-2.0
// gpuwatch-probe as a process of its own on a libcuda whose GPU is memory
// (fake/gpu.cpp): that it works there, and then each way of failing, with the exit
// code that the room's README promises and a reason that names the place.
// Everything waits for what happens, nothing for time.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/fd.h"

namespace gpuwatch::probe {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

const std::string kCubin = AGENT_CUBIN;
const std::string kSamples = fs::path(kCubin).parent_path();

struct Ended {
  int code = 0;  // 1000 + the signal that ended it
  std::string errors;
  std::vector<json> lines;

  const json* line(const std::string& type) const {
    for (const json& one : lines)
      if (one.value("type", "") == type) return &one;
    return nullptr;
  }
  std::string all() const {
    std::string text = "exit " + std::to_string(code) + "\n" + errors;
    for (const json& one : lines) text += one.dump() + "\n";
    return text;
  }
};

class Failures : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / ("probe-failures-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    std::ofstream(folder_ / "nvidia-uvm") << "";
    std::ofstream(folder_ / "nvidiactl") << "";
    for (const char* node : {"nvidia-uvm", "nvidiactl"}) fs::permissions(folder_ / node, fs::perms::all);
  }
  void TearDown() override { fs::remove_all(folder_); }

  using Words = std::vector<std::string>;
  Ended run(Words more, const Words& environment = {}) {
    Words words{AGENT_PROBE, "--json"}, variables{"FAKE_NVIDIA=" + folder_.string(), "LD_PRELOAD=" + gpu_.string()};
    words.insert(words.end(), more.begin(), more.end());
    variables.insert(variables.end(), environment.begin(), environment.end());
    return start(words, variables);
  }
  Ended start(const Words& words, const Words& variables) const {
    std::vector<char*> argv, envp;
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    for (const std::string& word : variables) envp.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    envp.push_back(nullptr);
    char out[] = "/tmp/probe-out-XXXXXX", errors[] = "/tmp/probe-err-XXXXXX";
    const base::Fd out_fd(::mkstemp(out)), error_fd(::mkstemp(errors));
    const pid_t child = ::fork();
    if (child == 0) {
      ::dup2(out_fd.get(), 1);
      ::dup2(error_fd.get(), 2);
      if (as_nobody_ && (::setgid(65534) != 0 || ::setuid(65534) != 0)) ::_exit(98);
      ::execve(argv[0], argv.data(), envp.data());
      ::_exit(99);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    Ended ended;
    ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    std::ifstream printed(out);
    for (std::string line; std::getline(printed, line);) ended.lines.push_back(json::parse(line));
    std::stringstream text;
    text << std::ifstream(errors).rdbuf();
    ended.errors = text.str();
    ::unlink(out);
    ::unlink(errors);
    return ended;
  }
  std::string file(const std::string& name, const std::string& content) {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return folder_ / name;
  }
  static std::string content_of(const std::string& path) {
    std::stringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
  // The exit code, said in JSON, too, and with these words.
  static void expect(const Ended& ended, int code, const std::string& reason) {
    EXPECT_EQ(ended.code, code) << ended.all();
    EXPECT_NE(ended.errors.find(reason), std::string::npos) << ended.all();
    const json* error = ended.line("error");
    ASSERT_NE(error, nullptr) << ended.all();
    EXPECT_EQ((*error)["exit_code"], code);
  }

  fs::path folder_, probe_ = AGENT_PROBE, gpu_ = PROBE_GPU;
  bool as_nobody_ = false;
};

TEST_F(Failures, FirstOfAllItWorks) {
  const Ended canary = run({});
  EXPECT_EQ(canary.code, 0) << canary.all();
  ASSERT_NE(canary.line("canary"), nullptr) << canary.all();
  EXPECT_EQ((*canary.line("canary"))["pass"], true);
  const Ended image = run({"--image", kCubin});
  EXPECT_EQ(image.code, 0) << image.all();
  ASSERT_NE(image.line("image"), nullptr) << image.all();
  EXPECT_GT((*image.line("image"))["match"], 0);
  EXPECT_EQ((*image.line("image"))["differ"], 0);
  const Ended selftest = run({"--selftest"});
  EXPECT_EQ(selftest.code, 0) << selftest.all();
  int steps = 0;
  for (const json& line : selftest.lines)
    if (line["type"] == "selftest") steps += line["pass"] == true ? 1 : 100;
  EXPECT_EQ(steps, 3) << selftest.all();
}

TEST_F(Failures, NoLibrary) {
  expect(run({"--library", "libnope.so.1"}), 3, "libnope.so.1 cannot be loaded");
}

TEST_F(Failures, AnOldLibraryLacksFunctions) {
  expect(run({"--library", PROBE_OLD_LIBRARY}), 3, "driver 470 or later is needed");
}

TEST_F(Failures, NoDriverIsLoaded) {
  expect(run({}, {"FAKE_INIT=100"}), 4, "no GPU can be used");
  expect(run({}, {"FAKE_INIT=999"}), 4, "no GPU can be used");
}

TEST_F(Failures, LibraryAndDriverAreOfDifferentReleases) {
  expect(run({}, {"FAKE_INIT=803"}), 3, "no GPU can be used");
  expect(run({}, {"FAKE_INIT=34"}), 3, "no GPU can be used");
}

TEST_F(Failures, NoGpuIsVisible) {
  expect(run({}, {"FAKE_GPUS=0"}), 4, "no GPU is visible");
  expect(run({"--gpu", "7"}), 4, "there is no GPU of that number");
}

TEST_F(Failures, TheDriverIsOlderThanTheCode) {
  expect(run({}, {"FAKE_OWN=222"}), 5, "the probe's own kernels");
  expect(run({}, {"FAKE_OWN=209"}), 5, "the probe's own kernels");
}

TEST_F(Failures, HeldExclusivelyByAnother) {
  expect(run({}, {"FAKE_MODE=3", "FAKE_RETAIN=46"}), 6, "exclusive and another process has the GPU");
  // Some drivers say another result; the mode tells.
  expect(run({}, {"FAKE_MODE=3", "FAKE_RETAIN=101"}), 6, "exclusive and another process has the GPU");
}

TEST_F(Failures, Prohibited) {
  expect(run({}, {"FAKE_MODE=2"}), 6, "compute mode is prohibited");
}

TEST_F(Failures, NoMemoryForAContext) {
  expect(run({}, {"FAKE_RETAIN=2"}), 7, "context");
  expect(run({}, {"FAKE_MODE=3", "FAKE_RETAIN=2"}), 7, "context");
  expect(run({}, {"FAKE_INIT=2"}), 7, "no GPU can be used");
}

// From each allocation on: in order, or out of memory, and never anything else;
// what is said to match has been hashed.
TEST_F(Failures, NoMemoryAtAnyAllocation) {
  int refused = 0;
  bool whole = false;
  for (int from = 1; from < 200 && !whole; ++from) {
    const Ended ended = run({"--image", kCubin}, {"FAKE_ALLOC=" + std::to_string(from)});
    if (ended.code == 7) {
      expect(ended, 7, "");
      ++refused;
      continue;
    }
    EXPECT_EQ(ended.code, 0) << from << ": " << ended.all();
    whole = ended.code == 0;
    ASSERT_NE(ended.line("image"), nullptr) << ended.all();
    EXPECT_GT((*ended.line("image"))["match"], 0);
  }
  EXPECT_GT(refused, 3);
  EXPECT_TRUE(whole);
}

TEST_F(Failures, AFaultEndsThisProcessAlone) {
  for (int launch = 1; launch <= 6; ++launch) {
    const Ended ended = run({"--image", kCubin}, {"FAKE_FAULT=" + std::to_string(launch)});
    expect(ended, 9, "");
    EXPECT_EQ(ended.line("image"), nullptr) << "a sum after a fault: " << ended.all();
  }
}

TEST_F(Failures, AWrongCanaryIsAFinding) {
  const Ended wrong = run({}, {"FAKE_WRONG=1"});
  EXPECT_EQ(wrong.code, 1) << wrong.all();
  EXPECT_EQ((*wrong.line("canary"))["pass"], false);
  const Ended fewer = run({}, {"FAKE_SMS=8", "FAKE_SMS_RUN=5"});
  EXPECT_EQ(fewer.code, 1) << fewer.all();
  EXPECT_EQ((*fewer.line("canary"))["multiprocessors_seen"], 5);
}

// An instance has fewer multiprocessors than its GPU: what is visible counts.
TEST_F(Failures, AMigInstanceIsJudgedByWhatIsVisible) {
  const Ended ended = run({"--image", kCubin}, {"FAKE_NAME=NVIDIA H200 MIG 1g.18gb", "FAKE_SMS=3"});
  EXPECT_EQ(ended.code, 0) << ended.all();
  EXPECT_EQ((*ended.line("gpu"))["name"], "NVIDIA H200 MIG 1g.18gb");
  EXPECT_EQ((*ended.line("gpu"))["multiprocessors"], 3);
  EXPECT_EQ((*ended.line("canary"))["multiprocessors_seen"], 3);
}

TEST_F(Failures, WrongImages) {
  expect(run({"--image", (folder_ / "not-there").string()}), 2, "not-there");
  expect(run({"--image", folder_.string()}), 2, "is not a regular file");
  expect(run({"--image", file("empty", "")}), 8, "has no code for sm_90");
  expect(run({"--image", file("text", "int main() { return 0; }\n")}), 8, "has no code for sm_90");
  expect(run({"--image", kSamples + "/chg_addk_80.cubin"}), 8, "has no code for sm_90");
  expect(run({"--image", kCubin}, {"FAKE_IMAGE=200"}), 8, "loading");
  expect(run({"--image", kCubin}, {"FAKE_IMAGE=209"}), 5, "loading");
  const std::string cubin = content_of(kCubin);
  expect(run({"--image", file("cut", cubin.substr(0, 20))}), 8, "has no code for sm_90");
  for (const std::size_t bytes : {std::size_t{64}, cubin.size() / 4, cubin.size() / 2})
    expect(run({"--image", file("cut", cubin.substr(0, bytes))}), 8, "the image is cut or damaged");
  expect(run({"--image", kSamples + "/rep_r_90.cubin"}), 8, "relocatable code");
}

TEST_F(Failures, AFileThatMayNotBeRead) {
  const std::string path = file("closed", "x");
  fs::permissions(path, fs::perms::none);
  // Root may read all files. What was built may lie where nobody can go.
  as_nobody_ = ::geteuid() == 0;
  for (fs::path* program : {&probe_, &gpu_}) {
    fs::copy_file(*program, folder_ / program->filename());
    *program = folder_ / program->filename();
  }
  fs::permissions(folder_, fs::perms::others_read | fs::perms::others_exec, fs::perm_options::add);
  expect(run({"--image", path}), 2, "Permission denied");
}

TEST_F(Failures, PtxThatTheDriverDoesNotTake) {
  // PTX alone: nothing else in the file suits.
  expect(run({"--image", kSamples + "/t.ptx"}, {"FAKE_PTX=222"}), 5, "compiling PTX");
  expect(run({"--image", kSamples + "/t.ptx"}, {"FAKE_PTX=218"}), 8, "compiling PTX");
}

TEST_F(Failures, AKernelThatTheFileLacks) {
  expect(run({"--image", kCubin, "--kernel", "nope"}), 2, "no kernel nope");
}

TEST_F(Failures, KilledInTheMiddle) {
  const Ended ended = run({"--image", kCubin}, {"FAKE_KILL=2"});
  EXPECT_EQ(ended.code, 1000 + SIGKILL) << ended.all();
  EXPECT_EQ(ended.line("image"), nullptr) << "a sum though it was killed: " << ended.all();
}

TEST_F(Failures, AGpuThatNeverAnswers) {
  expect(run({"--timeout", "1"}, {"FAKE_HANG=1"}), 14, "has not come back for");
  expect(run({"--timeout", "1"}, {"FAKE_HANG=init"}), 14, "cuInit has not come back for");
}

}  // namespace
}  // namespace gpuwatch::probe
