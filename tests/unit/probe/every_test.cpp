// SPDX-License-Identifier: Apache-2.0
// `--every`: rounds in one process, by gpuwatch-probe alone and below `gpuwatch
// probe`, on a libcuda whose GPU is memory (fake/gpu.cpp). Rounds are a day apart,
// so that what goes on by time is seen as a test that does not end, or they follow
// at once (FAKE_HURRY). It waits for lines and ends, never for time.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "base/fd.h"
#include "probe/rounds.h"

namespace gpuwatch::probe {
namespace {

using nlohmann::json;
using Words = std::vector<std::string>;
namespace fs = std::filesystem;

const std::string kCubin = AGENT_CUBIN;

// A program in a process group of its own, whose lines are read as they come.
class Living {
 public:
  Living(Words words, Words variables) {
    std::vector<char*> argv, envp;
    for (std::string& word : words) argv.push_back(word.data());
    for (std::string& word : variables) envp.push_back(word.data());
    argv.push_back(nullptr);
    envp.push_back(nullptr);
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    out_ = base::Fd(ends[0]);
    base::Fd in(ends[1]);
    process_ = ::fork();
    if (process_ == 0) {
      ::setpgid(0, 0);
      ::dup2(in.get(), 1);
      ::execve(argv[0], argv.data(), envp.data());
      ::_exit(99);
    }
    ::setpgid(process_, process_);
  }
  Living(const Living&) = delete;
  Living& operator=(const Living&) = delete;
  ~Living() {
    if (!code_) {
      ::kill(-process_, SIGKILL);
      (void)end();
    }
  }

  // The next line; nothing when there is none to come.
  std::optional<json> line() {
    for (;;) {
      if (const std::size_t end = pending_.find('\n'); end != std::string::npos) {
        lines.push_back(json::parse(pending_.substr(0, end)));
        pending_.erase(0, end + 1);
        return lines.back();
      }
      char part[4096];
      const ssize_t got = ::read(out_.get(), part, sizeof part);
      if (got <= 0) return std::nullopt;
      pending_.append(part, static_cast<std::size_t>(got));
    }
  }
  bool wait_for(const std::string& type) {
    while (const auto one = line())
      if ((*one)["type"] == type) return true;
    return false;
  }
  void signal(int number) { ::kill(process_, number); }
  void signal_all(int number) { ::kill(-process_, number); }
  void close_output() { out_.reset(); }

  // Reads all that is still to come; 1000 + the signal that ended it.
  int end() {
    while (line()) {
    }
    if (!code_) {
      int status = 0;
      ::waitpid(process_, &status, 0);
      code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    }
    return *code_;
  }
  std::vector<json> of(const std::string& type) const {
    std::vector<json> out;
    for (const json& one : lines)
      if (one["type"] == type) out.push_back(one);
    return out;
  }
  std::string all() const {
    std::string text;
    for (const json& one : lines) text += one.dump() + "\n";
    return text;
  }

  std::vector<json> lines;

 private:
  pid_t process_ = -1;
  base::Fd out_;
  std::string pending_;
  std::optional<int> code_;
};

class Rounded : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / ("probe-every-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    for (const char* node : {"nvidia-uvm", "nvidiactl"}) std::ofstream(folder_ / node) << "";
  }
  void TearDown() override { fs::remove_all(folder_); }

  Words variables(const Words& more) const {
    Words all{"FAKE_NVIDIA=" + folder_.string(), "LD_PRELOAD=" PROBE_GPU,
              "FAKE_COUNTS=" + (folder_ / "counts").string()};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  // What was made and what is left, when a context was released the last time.
  std::map<std::string, long> counts() const {
    std::map<std::string, long> out;
    std::ifstream file(folder_ / "counts");
    std::string name;
    for (long number = 0; file >> name >> number;) out[name] = number;
    return out;
  }
  void expect_nothing_left() const {
    const auto left = counts();
    for (const char* name : {"contexts", "modules", "streams", "pinned", "memory"}) {
      ASSERT_EQ(left.count(name), 1u) << "no context was released";
      EXPECT_EQ(left.at(name), 0) << name;
    }
  }

  fs::path folder_;
};

// By gpuwatch-probe itself, and by gpuwatch, which starts it.
class Every : public Rounded, public ::testing::WithParamInterface<bool> {
 protected:
  Words words(const Words& more) const {
    Words all = GetParam() ? Words{PROBE_GPUWATCH, "probe", "--json"} : Words{AGENT_PROBE, "--json"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

INSTANTIATE_TEST_SUITE_P(Programs, Every, ::testing::Values(false, true),
                         [](const auto& param) { return param.param ? "Gpuwatch" : "GpuwatchProbe"; });

TEST_P(Every, RoundsAreCountedAndMakeNothingNew) {
  std::map<std::string, long> few;
  for (const int times : {2, 6}) {
    Living probe(words({"--every", "86400", "--times", std::to_string(times)}), variables({"FAKE_HURRY=1"}));
    EXPECT_EQ(probe.end(), 0) << probe.all();
    EXPECT_EQ(probe.of("driver").size(), 1u);
    EXPECT_EQ(probe.of("gpu").size(), 1u);
    const auto canaries = probe.of("canary");
    ASSERT_EQ(canaries.size(), static_cast<std::size_t>(times)) << probe.all();
    for (int i = 0; i < times; ++i) {
      EXPECT_EQ(canaries[static_cast<std::size_t>(i)]["round"], i + 1);
      EXPECT_EQ(canaries[static_cast<std::size_t>(i)]["pass"], true);
    }
    expect_nothing_left();
    EXPECT_EQ(counts()["launches"], times);
    EXPECT_EQ(counts()["retained"], 1);
    if (few.empty()) few = counts();
    EXPECT_EQ(counts()["allocations"], few["allocations"]) << "memory for each round";
  }
}

TEST_P(Every, OnceHasNoRounds) {
  Living probe(words({}), variables({}));
  EXPECT_EQ(probe.end(), 0);
  for (const json& line : probe.lines) EXPECT_EQ(line.count("round"), 0u) << line.dump();
}

TEST_P(Every, TheFirstThatIsNotInOrderEndsIt) {
  const struct {
    const char* variable;
    int code;
    std::size_t canaries;
  } kinds[] = {{"FAKE_WRONG=3", 1, 3}, {"FAKE_SILENT=2", 1, 2}, {"FAKE_FAULT=3", 9, 2}};
  for (const auto& kind : kinds) {
    Living probe(words({"--every", "86400"}), variables({"FAKE_HURRY=1", kind.variable}));
    EXPECT_EQ(probe.end(), kind.code) << kind.variable << "\n" << probe.all();
    const auto canaries = probe.of("canary");
    ASSERT_EQ(canaries.size(), kind.canaries) << kind.variable << "\n" << probe.all();
    for (std::size_t i = 0; i + 1 < canaries.size(); ++i) EXPECT_EQ(canaries[i]["pass"], true);
    EXPECT_EQ(canaries.back()["pass"], kind.code != 1) << probe.all();
    const auto errors = probe.of("error");
    ASSERT_EQ(errors.size(), kind.code == 1 ? 0u : 1u) << probe.all();
    if (!errors.empty()) {
      EXPECT_EQ(errors[0]["round"], kind.canaries + 1);
    }
  }
}

TEST_P(Every, ALaterRoundThatHangs) {
  Living probe(words({"--every", "86400", "--timeout", "2"}), variables({"FAKE_HURRY=1", "FAKE_HANG=3"}));
  EXPECT_EQ(probe.end(), 14) << probe.all();
  EXPECT_EQ(probe.of("error").size(), 1u) << probe.all();
}

// Each line comes at once, and a signal between rounds ends it in order.
TEST_P(Every, SignalsEndItInOrder) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP})
    for (const bool all : {false, true}) {
      fs::remove(folder_ / "counts");
      Living probe(words({"--every", "86400"}), variables({}));
      ASSERT_TRUE(probe.wait_for("canary"));
      all ? probe.signal_all(number) : probe.signal(number);
      EXPECT_EQ(probe.end(), 0) << number << "\n" << probe.all();
      EXPECT_EQ(probe.of("canary").size(), 1u);
      expect_nothing_left();
    }
}

TEST_P(Every, ASignalInARoundWaitsForItsEnd) {
  Living probe(words({"--every", "86400"}), variables({"FAKE_HURRY=1", "FAKE_TERM=3"}));
  EXPECT_EQ(probe.end(), 0) << probe.all();
  EXPECT_EQ(probe.of("canary").size(), 3u) << probe.all();
  expect_nothing_left();
}

TEST_P(Every, WhenNobodyReadsAnyMore) {
  Living probe(words({"--every", "86400"}), variables({}));
  ASSERT_TRUE(probe.wait_for("canary"));
  probe.close_output();
  EXPECT_EQ(probe.end(), 0) << probe.all();
  expect_nothing_left();
}

TEST_P(Every, AllGpusInEachRound) {
  Living probe(words({"--every", "86400", "--times", "3"}), variables({"FAKE_HURRY=1", "FAKE_GPUS=2"}));
  EXPECT_EQ(probe.end(), 0) << probe.all();
  const auto canaries = probe.of("canary");
  ASSERT_EQ(canaries.size(), 6u) << probe.all();
  for (std::size_t i = 0; i < canaries.size(); ++i) {
    EXPECT_EQ(canaries[i]["round"], i / 2 + 1);
    EXPECT_EQ(canaries[i]["gpu"], i % 2);
  }
  EXPECT_EQ(probe.of("gpu").size(), 2u);
  expect_nothing_left();
  EXPECT_EQ(counts()["retained"], 2);
}

TEST_P(Every, OneOfSeveralGpus) {
  Living probe(words({"--every", "86400", "--times", "2", "--gpu", "1"}), variables({"FAKE_HURRY=1", "FAKE_GPUS=2"}));
  EXPECT_EQ(probe.end(), 0) << probe.all();
  ASSERT_EQ(probe.of("canary").size(), 2u) << probe.all();
  for (const json& canary : probe.of("canary")) EXPECT_EQ(canary["gpu"], 1);
}

TEST_P(Every, ImageAndSelftestAreRepeated) {
  Living probe(words({"--every", "86400", "--times", "3", "--image", kCubin, "--selftest"}),
               variables({"FAKE_HURRY=1"}));
  EXPECT_EQ(probe.end(), 0) << probe.all();
  const auto images = probe.of("image");
  ASSERT_EQ(images.size(), 3u) << probe.all();
  for (std::size_t i = 0; i < images.size(); ++i) {
    EXPECT_EQ(images[i]["round"], i + 1);
    EXPECT_GT(images[i]["match"], 0);
    EXPECT_EQ(images[i]["match"], images[0]["match"]);
  }
  EXPECT_EQ(probe.of("selftest").size(), 9u);
  expect_nothing_left();
  EXPECT_EQ(counts()["retained"], 1);
}

// Where code is looked for, what another GPU's context maps must not be there.
TEST_P(Every, SeveralGpusWithAnImageHaveOneContextAtATime) {
  Living probe(words({"--every", "86400", "--times", "2", "--image", kCubin}),
               variables({"FAKE_HURRY=1", "FAKE_GPUS=2"}));
  EXPECT_EQ(probe.end(), 0) << probe.all();
  EXPECT_EQ(probe.of("image").size(), 4u) << probe.all();
  EXPECT_EQ(probe.of("gpu").size(), 2u);
  EXPECT_EQ(counts()["retained"], 4);
  expect_nothing_left();
}

TEST_P(Every, NumbersThatAreNone) {
  for (const Words& wrong : {Words{"--every", "0"}, Words{"--every", "86401"}, Words{"--every", "1", "--times", "0"},
                             Words{"--times", "3"}}) {
    Living probe(words(wrong), variables({}));
    EXPECT_EQ(probe.end(), 2) << wrong[0] << probe.all();
    EXPECT_EQ(probe.lines.size(), 0u) << probe.all();
  }
}

// The lines go through gpuwatch, which looks at them.
TEST_F(Rounded, ABaselineBesideItStreamsAndDecides) {
  const std::string good = folder_ / "good.db", other = folder_ / "other.db";
  const auto build = [&](const std::string& from, const std::string& to) {
    Living made({PROBE_GPUWATCH, "baseline", "build", from, "-o", to, "--json"}, {"HOME=" + folder_.string()});
    return made.end();
  };
  ASSERT_EQ(build(kCubin, good), 0);
  ASSERT_EQ(build(fs::path(kCubin).parent_path() / "rep_g_90.cubin", other), 0);
  const Words common{PROBE_GPUWATCH, "probe", "--json", "--every", "86400", "--image", kCubin, "--baseline"};
  Words known = common, unknown = common;
  known.push_back(good);
  unknown.push_back(other);
  {
    Living probe(known, variables({}));
    ASSERT_TRUE(probe.wait_for("image"));
    probe.signal(SIGTERM);
    EXPECT_EQ(probe.end(), 0) << probe.all();
    ASSERT_EQ(probe.of("known_code").size(), 1u) << probe.all();
    EXPECT_GT(probe.of("known_code")[0]["known"], 0);
    expect_nothing_left();
  }
  {
    Living probe(known, variables({}));
    ASSERT_TRUE(probe.wait_for("image"));
    probe.close_output();
    EXPECT_EQ(probe.end(), 0);
  }
  // Unknown code ends it by itself, after the round.
  Living probe(unknown, variables({}));
  EXPECT_EQ(probe.end(), 1) << probe.all();
  EXPECT_EQ(probe.of("image").size(), 1u) << probe.all();
  EXPECT_GT(probe.of("known_code")[0]["unknown"], 0);
  expect_nothing_left();
}

// In a process of its own: what ends rounds stays blocked in it.
int in_child(const std::function<bool()>& good) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(good() ? 0 : 1);
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST(Rounds, OneChangesNothing) {
  EXPECT_EQ(in_child([] {
              Rounds rounds(0, 0);
              if (rounds.several() || rounds.next()) return false;
              ::raise(SIGTERM);
              return true;
            }),
            1000 + SIGTERM);
}

TEST(Rounds, FollowFromBeginToBegin) {
  EXPECT_EQ(in_child([] {
              const auto begin = std::chrono::steady_clock::now();
              Rounds rounds(1, 2);
              if (!rounds.next() || rounds.number() != 2 || rounds.next()) return false;
              return std::chrono::steady_clock::now() - begin >= std::chrono::seconds(1);
            }),
            0);
}

TEST(Rounds, ASignalThatCameBeforeEndsThem) {
  EXPECT_EQ(in_child([] {
              Rounds rounds(86'400, 0);
              ::raise(SIGINT);
              return !rounds.next() && rounds.number() == 1;
            }),
            0);
}

TEST(Rounds, AnOutputThatWasNeverThereDoesNot) {
  EXPECT_EQ(in_child([] {
              ::close(1);
              Rounds rounds(1, 2);
              return rounds.next();
            }),
            0);
}

}  // namespace
}  // namespace gpuwatch::probe
