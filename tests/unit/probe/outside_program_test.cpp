// SPDX-License-Identifier: Apache-2.0
// gpuwatch-probe --pid N --records FILE from end to end, as a person starts it: a
// process that holds a control file, records of its calls, a driver that answers
// from files (fake/nvidiactl.cpp). As root and as the process's own user.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "probe/agent/confine.h"
#include "probe/code.h"
#include "probe/outside/access.h"
#include "programs.h"
#include "recorded.h"

namespace gpuwatch::probe::outside {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::Answer;

constexpr uid_t kNobody = 65534;

std::string cubin() {
  std::ifstream file(AGENT_CUBIN, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Holds a file of the device that stands in for /dev/nvidiactl, and a copy of a
// cubin in its memory, until it is ended.
class Target : public test::Forked {
 public:
  explicit Target(uid_t user, const std::string& held = cubin())
      : Forked([user, &held] {
          if (held.empty() || (user != 0 && (::setgid(user) != 0 || ::setuid(user) != 0))) return false;
          // Root's change of identity makes it nobody's to trace, Yama anybody's but a parent's.
          (void)::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
          (void)::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
          (void)::open("/dev/null", O_RDONLY);
          return ::open("/dev/full", O_RDWR) >= 0;
        }) {}
};

class OutsideProgram : public ::testing::TestWithParam<uid_t> {
 protected:
  void SetUp() override {
    if (::geteuid() != 0 && GetParam() != 0) GTEST_SKIP() << "becoming another user takes root";
    char name[] = "/tmp/gw-outside-program.XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    directory_ = name;
    // The programs of the build may lie where nobody can go.
    fs::copy_file(AGENT_PROBE, directory_ + "/gpuwatch-probe");
    fs::copy_file(FAKE_NVIDIACTL, directory_ + "/nvidiactl.so");
    fs::copy_file(AGENT_CUBIN, directory_ + "/a.cubin");
    target_ = std::make_unique<Target>(GetParam());
    ASSERT_TRUE(target_->ready());
    ProcessFiles files(target_->pid());
    ASSERT_EQ(files.open(process_).text, "");
    Identity recorded;
    records_ = test::unfinished(GOLDEN_DIR "/580.159.04/runtime-api.gwcap", recorded);
    ASSERT_FALSE(records_.empty());
    test::make_over(records_, recorded, process_);
    file_ = directory_ + "/all.gwcap";
    test::write_gwcap(records_, file_);
    fill_memory();
    own(directory_);
    for (const auto& entry : fs::directory_iterator(directory_)) own(entry.path());
  }
  void TearDown() override {
    target_.reset();
    if (!directory_.empty()) fs::remove_all(directory_);
  }
  void own(const std::string& path) const {
    EXPECT_EQ(GetParam() != 0 ? ::chown(path.c_str(), GetParam(), GetParam()) : 0, 0) << path;
  }

  // Lays the functions of the cubin where the driver would have them, as bytes of files.
  void fill_memory() {
    RecordFiles files;
    ASSERT_EQ(open_records(file_, files).text, "");
    Records records;
    ASSERT_EQ(read_records(files, process_, records).text, "");
    ASSERT_EQ(records.facts.devices().size(), 1U);
    const Device device = records.facts.devices().front();
    char text[32];
    std::snprintf(text, sizeof text, "%x %x\n", device.client, device.debuggers.at(0));
    std::ofstream(directory_ + "/driver") << text;
    const std::uint64_t heap = heap_of(device).front().address;
    for (const MappedMemory& one : device.memory) {
      std::snprintf(text, sizeof text, "/%x.memory", one.memory);
      const std::string path = directory_ + text;
      if (!fs::exists(path)) std::ofstream(path) << "";
      fs::resize_file(path, std::max<std::uintmax_t>(fs::file_size(path), one.offset + one.span.bytes));
      if (one.span.address == heap) heap_file_ = path;
    }
    Code code;
    std::ifstream cubin(AGENT_CUBIN, std::ios::binary);
    const std::vector<std::uint8_t> bytes((std::istreambuf_iterator<char>(cubin)), std::istreambuf_iterator<char>());
    ASSERT_EQ(read_code(bytes, code), "");
    functions_ = code.functions.size();
    for (std::size_t i = 0, at = 0x1000; i < functions_; ++i) {
      poke(at, code.functions[i].text);
      at = (at + code.functions[i].text.size() + 0x880 + 255) / 256 * 256;
    }
  }
  void poke(std::size_t at, const std::vector<std::uint8_t>& bytes) const {
    std::fstream file(heap_file_, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(at));
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    ASSERT_TRUE(file.good());
  }

  std::vector<std::string> words(const std::string& records, const std::vector<std::string>& more) const {
    std::vector<std::string> out{directory_ + "/gpuwatch-probe", "--json", "--pid=" + std::to_string(target_->pid()),
                                 "--records=" + records};
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }
  std::vector<std::string> environment() const {
    return {"LD_PRELOAD=" + directory_ + "/nvidiactl.so", "FAKE_DRIVER=" + directory_};
  }
  Answer ask(const std::string& records) const { return ask(records, GetParam()); }
  Answer ask(const std::string& records, uid_t user) const {
    return test::answer_of(words(records, {"--image=" + directory_ + "/a.cubin"}), environment(), user);
  }
  void expect_all_match(const Answer& answer) const {
    EXPECT_EQ(answer.status, 0) << answer.text;
    ASSERT_NE(answer.line("resident"), nullptr) << answer.text;
    const json& sums = *answer.line("resident");
    EXPECT_EQ(sums.at("match").get<std::size_t>() + sums.at("match-relocated").get<std::size_t>(), functions_);
    EXPECT_EQ(sums.at("read_by"), "driver");
    EXPECT_EQ(sums.at("not-probed"), 0);
  }

  std::string directory_, file_, heap_file_;
  std::unique_ptr<Target> target_;
  Identity process_;
  std::vector<test::RecordBytes> records_;
  std::size_t functions_ = 0;
};

INSTANTIATE_TEST_SUITE_P(As, OutsideProgram, ::testing::Values(uid_t{0}, kNobody),
                         [](const auto& info) { return info.param == 0 ? "Itself" : "AnotherUserThanRoot"; });

TEST_P(OutsideProgram, MatchesAndTellsAChange) {
  expect_all_match(ask(file_));
  poke(0x1000 + 34, {0xff});
  const Answer answer = ask(file_);
  EXPECT_EQ(answer.status, 1) << answer.text;
  const auto differ = answer.kernels("differ");
  ASSERT_EQ(differ.size(), 1U) << answer.text;
  EXPECT_EQ(differ[0].at("first_offset"), 34);
}

TEST_P(OutsideProgram, RootLooksIntoAnybodys) {
  expect_all_match(ask(file_, 0));
}

// Without --image: what the process has in its memory, here the test's own copy of the cubin.
TEST_P(OutsideProgram, ImagesOfTheProcess) {
  const Answer answer = test::answer_of(words(file_, {}), environment(), GetParam());
  EXPECT_EQ(answer.status, 0) << answer.text;
  ASSERT_NE(answer.line("resident"), nullptr) << answer.text;
  EXPECT_GE(answer.line("resident")->at("match").get<int>() + answer.line("resident")->at("match-relocated").get<int>(),
            1)
      << answer.text;
}

TEST_P(OutsideProgram, FromTheRecordersDirectory) {
  const std::string shards = directory_ + "/shards";
  fs::create_directory(shards);
  test::write_shard(records_, shards + "/1.gwshard");
  // What a recorded process may put beside it: nothing of it is opened, and nothing waited for.
  ASSERT_EQ(::mkfifo((shards + "/2.gwshard").c_str(), 0666), 0);
  fs::create_symlink("/dev/zero", shards + "/3.gwshard");
  fs::create_symlink(shards + "/1.gwshard", shards + "/4.gwshard");
  std::ofstream(shards + "/5.gwshard") << "no shard";
  std::ofstream(shards + "/6.gwshard") << "";
  fs::resize_file(shards + "/6.gwshard", 1ull << 32);
  own(shards);
  for (const auto& entry : fs::directory_iterator(shards))
    if (entry.is_regular_file() && !entry.is_symlink()) own(entry.path());
  const Answer answer = ask(shards);
  expect_all_match(answer);
  ASSERT_NE(answer.line("process"), nullptr);
  EXPECT_EQ(answer.line("process")->at("recorder"), "preload");
  EXPECT_EQ(answer.line("process")->at("gpus"), 1);
}

// While the driver is at the first reading, the part that parses waits for it.
TEST_P(OutsideProgram, ParsesWithoutRights) {
  const std::string gate = directory_ + "/gate";
  ASSERT_EQ(::mkfifo(gate.c_str(), 0666), 0);
  own(gate);
  test::Program probe(words(file_, {"--image=" + directory_ + "/a.cubin"}), environment(), GetParam());
  // Until the other end is there, which is when something is read.
  base::Fd opened;
  for (int i = 0; i < 6000 && !opened.valid(); ++i) {
    opened = base::Fd(::open(gate.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    if (!opened.valid()) ::usleep(10'000);
  }
  ASSERT_TRUE(opened.valid()) << "nothing is read";
  auto child = test::child_of(probe.pid());
  EXPECT_EQ(child["NoNewPrivs"], "1");
  EXPECT_EQ(child["CapPrm"], "0000000000000000");
  EXPECT_EQ(child["CapEff"], "0000000000000000");
  EXPECT_EQ(child["Seccomp"], agent::kUnderSanitizer ? "0" : "2");
  if (::geteuid() == 0) {
    EXPECT_EQ(child["Uid"], "65534\t65534\t65534\t65534");
  }
  // It holds nothing of the driver's.
  std::error_code error;  // only root may look
  for (const auto& entry : fs::directory_iterator("/proc/" + child["Pid"] + "/fd", error)) {
    struct stat info {};
    if (::stat(entry.path().c_str(), &info) == 0 && S_ISCHR(info.st_mode)) {
      EXPECT_NE(info.st_rdev, makedev(1, 7));
    }
  }
  EXPECT_TRUE(!error || ::geteuid() != 0) << error.message();
  opened.reset();
  probe.close_input();
  const std::string text = probe.rest();
  EXPECT_EQ(probe.wait(), 0) << text;
}

TEST_P(OutsideProgram, WhatTheDriverRefusesIsToldByName) {
  // Not all that may hold code is read, so of what was not found nothing is said.
  fs::remove(heap_file_);
  Answer answer = ask(file_);
  EXPECT_EQ(answer.kernels("not-probed").size(), functions_) << answer.text;
  EXPECT_NE(answer.text.find("NV_ERR_OBJECT_NOT_FOUND (0x57)"), std::string::npos) << answer.text;
  for (const auto& entry : fs::directory_iterator(directory_))
    if (entry.path().extension() == ".memory") fs::remove(entry.path());
  answer = ask(file_);
  EXPECT_EQ(answer.status, 2) << answer.text;
  std::ofstream(directory_ + "/driver") << "1 2\n";
  answer = ask(file_);
  EXPECT_EQ(answer.status, 4) << answer.text;
  EXPECT_NE(answer.text.find("NV_ERR_INVALID_CLIENT"), std::string::npos) << answer.text;
}

TEST_P(OutsideProgram, RecordsThatAreNone) {
  Answer answer = ask(directory_ + "/a.cubin");
  EXPECT_EQ(answer.status, 2);
  EXPECT_NE(answer.text.find("not a .gwcap file"), std::string::npos) << answer.text;
  ASSERT_EQ(::mkfifo((directory_ + "/pipe").c_str(), 0666), 0);
  answer = ask(directory_ + "/pipe");
  EXPECT_EQ(answer.status, 2);
  EXPECT_NE(answer.text.find("neither a recording (.gwcap) nor a recorder's directory"), std::string::npos)
      << answer.text;
  answer = ask(directory_ + "/none");
  EXPECT_EQ(answer.status, 2);
  EXPECT_NE(answer.text.find("No such file"), std::string::npos) << answer.text;
  target_->end();
}

TEST_P(OutsideProgram, AProcessOfRootsIsNotForOthers) {
  if (GetParam() == 0) return;
  Target roots(0);
  ASSERT_TRUE(roots.ready());
  std::vector<std::string> line{directory_ + "/gpuwatch-probe", "--outside", "--pid=" + std::to_string(roots.pid()),
                                "--records=" + file_, "--image=" + directory_ + "/a.cubin"};
  Identity process;
  ProcessFiles files(roots.pid());
  ASSERT_EQ(files.open(process).text, "");
  test::make_over(records_, process_, process);
  fs::remove(file_);
  test::write_gwcap(records_, file_);
  own(file_);
  const Answer answer = test::answer_of(line, environment(), GetParam());
  EXPECT_EQ(answer.status, 12) << answer.text;
  EXPECT_NE(answer.text.find("CAP_SYS_PTRACE"), std::string::npos) << answer.text;
}

}  // namespace
}  // namespace gpuwatch::probe::outside
