// SPDX-License-Identifier: Apache-2.0
// The agent in a process of its own, whose GPU is memory (fake/), asked by
// gpuwatch-probe as a person would: from loading to verdicts, and all that can
// go wrong on the way. Everything waits for what happens, nothing for time.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/fd.h"
#include "probe/agent/confine.h"
#include "probe/agent/server.h"
#include "probe/agent/wire.h"
#include "programs.h"

namespace gpuwatch::probe::agent {
namespace {

using nlohmann::json;
using test::Answer;
using test::Program;
namespace fs = std::filesystem;

const std::string kCubin = AGENT_CUBIN;

class Agent : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/gw-agent-test.XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    directory_ = name;
    for (const char* node : {"nvidia-uvm", "nvidiactl"}) std::ofstream(directory_ + "/" + node) << "";
    fs::create_directory(directory_ + "/sockets");
  }
  void TearDown() override { fs::remove_all(directory_); }

  // How the agent comes into the process.
  enum class Way { kInjected, kPreloaded, kBoth, kNone };
  std::vector<std::string> environment(Way way, const std::vector<std::string>& more = {}) const {
    const std::string fakes = AGENT_FAKES;
    std::string preload = fakes + "/libfake-kernel.so";
    if (way == Way::kPreloaded || way == Way::kBoth) preload = std::string(AGENT_LIBRARY) + ":" + preload;
    std::vector<std::string> out{"LD_LIBRARY_PATH=" + fakes, "FAKE_NVIDIA=" + directory_, "LD_PRELOAD=" + preload,
                                 "GPUWATCH_AGENT_DIR=" + directory_ + "/sockets"};
    if (way == Way::kInjected || way == Way::kBoth) out.push_back("CUDA_INJECTION64_PATH=" AGENT_LIBRARY);
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }
  std::unique_ptr<Program> host(Way way = Way::kInjected, const std::vector<std::string>& more = {},
                                const std::string& cubin = kCubin) const {
    auto program = std::make_unique<Program>(std::vector<std::string>{AGENT_HOST, cubin}, environment(way, more));
    EXPECT_EQ(program->line(), "ready");
    return program;
  }
  static Answer ask(pid_t pid, const std::vector<std::string>& more = {"--image=" + kCubin}, uid_t user = 0) {
    std::vector<std::string> words{AGENT_PROBE, "--json", "--pid=" + std::to_string(pid)};
    words.insert(words.end(), more.begin(), more.end());
    return test::answer_of(words, {}, user);
  }
  std::string socket() const {
    for (const auto& entry : fs::directory_iterator(directory_ + "/sockets")) return entry.path();
    return {};
  }
  base::Fd connect() const {
    base::Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::snprintf(address.sun_path, sizeof address.sun_path, "%s", socket().c_str());
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return fd;
  }
  // contexts, modules, streams, pinned memory, faults: of the program's own one context.
  static void expect_all_given_back(Program& program) {
    // The agent sees the end of a connection a moment after it was closed.
    std::string counts;
    for (int i = 0; i < 3000; ++i) {
      counts = program.say("counts");
      if (counts.starts_with("1 0 0 0 0 ")) return;
      ::usleep(10'000);
    }
    ADD_FAILURE() << counts;
  }

  std::string directory_;
};

TEST_F(Agent, MatchesWhatIsResident) {
  for (const Way way : {Way::kInjected, Way::kPreloaded, Way::kBoth}) {
    auto program = host(way);
    const Answer answer = ask(program->pid());
    EXPECT_EQ(answer.status, 0) << answer.text;
    ASSERT_NE(answer.line("process"), nullptr) << answer.text;
    EXPECT_EQ(answer.line("process")->at("agent"), way == Way::kInjected ? "injected" : "preloaded");
    EXPECT_EQ(answer.line("process")->at("ranges"), 1);
    EXPECT_FALSE(answer.kernels("match").empty() && answer.kernels("match-relocated").empty()) << answer.text;
    for (const json& kernel : answer.kernels("match")) {
      EXPECT_EQ(kernel.at("form_sha256"), kernel.at("resident_sha256"));
      EXPECT_EQ(kernel.at("t"), kernel.at("resident_sha256"));
      EXPECT_EQ(kernel.at("source"), "cubin");
      EXPECT_TRUE(kernel.contains("k") && kernel.contains("r")) << kernel;
    }
    for (const json& kernel : answer.kernels("match-relocated")) EXPECT_TRUE(kernel.contains("form_sha256"));
    const json& sums = *answer.line("resident");
    EXPECT_EQ(sums.at("differ"), 0);
    EXPECT_EQ(sums.at("not-probed"), 0);
    EXPECT_EQ(sums.at("foreign_blocks"), 0);
    EXPECT_EQ(sums.at("read_bytes"), 2 << 20);
    expect_all_given_back(*program);
    program->close_input();
    EXPECT_EQ(program->wait(), 0);
    EXPECT_EQ(socket(), "") << "left behind";
  }
}

// Round after round, with connections of its own each, as long as the process is there.
TEST_F(Agent, IsAskedAgainUntilTheProcessEnds) {
  auto program = host();
  Program probe({AGENT_PROBE, "--json", "--pid=" + std::to_string(program->pid()), "--image=" + kCubin, "--every=1"},
                {});
  std::string text;
  for (int round = 1; round <= 2; ++round) {
    json line = json::object();
    while (line.value("type", "") != "resident") {
      const std::string next = probe.line();
      ASSERT_FALSE(next.empty()) << text;
      text += next + "\n";
      line = json::parse(next, nullptr, false);
      ASSERT_TRUE(line.is_object()) << text;
      EXPECT_EQ(line.at("round"), round) << next;
    }
    EXPECT_EQ(line.at("differ"), 0) << text;
  }
  program->close_input();
  program->wait();
  text += probe.rest();
  // Gone, or just going while it is asked.
  const int code = probe.wait();
  EXPECT_TRUE(code == 10 || code == 11 || code == 13) << code << "\n" << text;
}

// Without --image: the images that the process has mapped or in its memory, here
// the host program's copy of the cubin.
TEST_F(Agent, FindsImagesInTheProcess) {
  auto program = host();
  const Answer answer = ask(program->pid(), {});
  EXPECT_EQ(answer.status, 0) << answer.text;
  ASSERT_NE(answer.line("resident"), nullptr) << answer.text;
  EXPECT_GT(answer.line("resident")->at("match").get<int>() + answer.line("resident")->at("match-relocated").get<int>(),
            0)
      << answer.text;
}

TEST_F(Agent, ChangedByteIsToldWithItsOffset) {
  auto program = host();
  const Answer before = ask(program->pid());
  ASSERT_EQ(program->say("flip 36"), "ok");
  const Answer answer = ask(program->pid());
  EXPECT_EQ(answer.status, 1) << answer.text;
  const auto differ = answer.kernels("differ");
  ASSERT_EQ(differ.size(), 1u) << answer.text;
  EXPECT_EQ(differ[0].at("first_offset"), 36);
  EXPECT_EQ(differ[0].at("different_bytes"), 1);
  EXPECT_EQ(differ[0].at("differences").size(), 1u);
  ASSERT_EQ(program->say("flip 36"), "ok");
  const Answer after = ask(program->pid());
  EXPECT_EQ(after.status, 0) << after.text;
  EXPECT_EQ(after.kernels("match").size(), before.kernels("match").size());
}

TEST_F(Agent, ChangedJumpTableIsTold) {
  const std::string image = std::string("--image=") + BANK_CUBIN;
  auto program = host(Way::kInjected, {}, BANK_CUBIN);
  const auto bank = [&] {
    const Answer answer = ask(program->pid(), {image});
    const json* line = answer.line("constant_bank");
    EXPECT_NE(line, nullptr) << answer.text;
    return std::pair(answer.status, line != nullptr ? *line : json{});
  };
  EXPECT_EQ(bank().first, 0);
  EXPECT_EQ(bank().second.at("verdict"), "match");
  ASSERT_EQ(program->say("table 13"), "ok");
  const auto [status, line] = bank();
  EXPECT_EQ(status, 1);
  EXPECT_EQ(line.at("verdict"), "differ");
  EXPECT_EQ(line.at("name"), ".nv.constant2.jump");
  EXPECT_EQ(line.at("first_offset"), 13);
  ASSERT_EQ(program->say("table 13"), "ok");
  EXPECT_EQ(bank().first, 0);
  // Overwritten in good part, as what an unloaded module left may be: no alarm.
  for (const char* at : {"table 0", "table 4", "table 8"}) ASSERT_EQ(program->say(at), "ok");
  EXPECT_EQ(bank().first, 0);
  EXPECT_EQ(bank().second.at("verdict"), "not-resident");
}

// While the process is stopped the part that parses waits for its agent.
TEST_F(Agent, ParsesWithoutRights) {
  auto program = host();
  ASSERT_EQ(::kill(program->pid(), SIGSTOP), 0);
  Program probe({AGENT_PROBE, "--json", "--pid=" + std::to_string(program->pid()), "--image=" + kCubin}, {}, 0);
  std::map<std::string, std::string> child;
  for (int i = 0; i < 5000 && child["NoNewPrivs"] != "1"; ++i) {
    ::usleep(10'000);
    child = test::child_of(probe.pid());
  }
  // The filter is its last step.
  for (int i = 0; i < 5000 && !kUnderSanitizer && child["Seccomp"] != "2"; ++i) {
    ::usleep(10'000);
    child = test::child_of(probe.pid());
  }
  EXPECT_EQ(child["Seccomp"], kUnderSanitizer ? "0" : "2");
  EXPECT_EQ(child["NoNewPrivs"], "1");
  EXPECT_EQ(child["CapPrm"], "0000000000000000");
  EXPECT_EQ(child["CapEff"], "0000000000000000");
  if (::geteuid() == 0) {
    EXPECT_EQ(child["Uid"], "65534\t65534\t65534\t65534");
    EXPECT_EQ(child["Groups"].find_first_not_of(" "), std::string::npos) << child["Groups"];
  }
  ASSERT_EQ(::kill(program->pid(), SIGCONT), 0);
  probe.close_input();
  const std::string text = probe.rest();
  EXPECT_EQ(probe.wait(), 0) << text;
  EXPECT_NE(text.find("\"match\""), std::string::npos) << text;
  expect_all_given_back(*program);
}

// A whole copy of a second load does not hide the changed one.
TEST_F(Agent, WholeCopyDoesNotHideAChangedOne) {
  auto program = host();
  ASSERT_EQ(program->say("copy"), "ok");
  const Answer twice = ask(program->pid());
  EXPECT_EQ(twice.status, 0) << twice.text;
  ASSERT_EQ(program->say("flip 36"), "ok");
  const Answer answer = ask(program->pid());
  EXPECT_EQ(answer.status, 1) << answer.text;
  EXPECT_EQ(answer.kernels("differ").size(), 1u) << answer.text;
  EXPECT_EQ(answer.kernels("match").size() + 1, twice.kernels("match").size()) << answer.text;
}

TEST_F(Agent, CodeOfNoImageIsACandidate) {
  auto program = host();
  ASSERT_EQ(program->say("foreign"), "ok");
  const Answer answer = ask(program->pid());
  EXPECT_EQ(answer.status, 0) << answer.text;
  EXPECT_EQ(answer.line("resident")->at("foreign_blocks"), 1) << answer.text;
  ASSERT_NE(answer.line("foreign_code"), nullptr);
}

// Memory of the program is looked over on the GPU, and read when there is code.
TEST_F(Agent, DataIsSurveyedAndNotRead) {
  auto program = host(Way::kInjected, {"FAKE_DATA=1"});
  const Answer answer = ask(program->pid());
  EXPECT_EQ(answer.status, 0) << answer.text;
  const json& sums = *answer.line("resident");
  EXPECT_EQ(sums.at("read_bytes"), 2 << 20);
  EXPECT_EQ(sums.at("surveyed_bytes"), 8 << 20);
  ASSERT_EQ(program->say("spill"), "ok");
  const Answer spilt = ask(program->pid());
  EXPECT_EQ(spilt.line("resident")->at("read_bytes"), 10 << 20) << spilt.text;
  EXPECT_EQ(spilt.line("resident")->at("surveyed_bytes"), 0);
  EXPECT_EQ(spilt.kernels("match").size() + spilt.kernels("match-relocated").size(),
            2 * (answer.kernels("match").size() + answer.kernels("match-relocated").size()));
  expect_all_given_back(*program);
}

TEST_F(Agent, WhatIsUnmappedIsNotRead) {
  auto program = host();
  ASSERT_EQ(program->say("unmap"), "ok");
  const Answer answer = ask(program->pid());
  EXPECT_EQ(answer.line("process")->at("ranges"), 0) << answer.text;
  EXPECT_TRUE(answer.kernels("match").empty());
  // A requester that asks for it all the same is refused, and nothing faults.
  const base::Fd fd = connect();
  for (const Frame& frame :
       {make(AskRead{0, {0x7f0000000000, 4096}}), make(AskHash{0, false, {}, {{0x7f0000000000, 64}}})}) {
    ASSERT_EQ(::send(fd.get(), frame.data(), frame.size(), MSG_NOSIGNAL), static_cast<ssize_t>(frame.size()));
    std::uint8_t raw[kHeadBytes];
    ASSERT_EQ(::recv(fd.get(), raw, sizeof raw, MSG_WAITALL), static_cast<ssize_t>(sizeof raw));
    const auto head = parse_head(raw, kAnswerMax);
    ASSERT_TRUE(head);
    std::vector<std::uint8_t> payload(head->bytes);
    ASSERT_EQ(::recv(fd.get(), payload.data(), payload.size(), MSG_WAITALL), static_cast<ssize_t>(payload.size()));
    const auto refusal = parse_refusal(payload);
    ASSERT_TRUE(refusal);
    EXPECT_EQ(refusal->reason, Reason::kUnproven) << refusal->text;
  }
  EXPECT_EQ(program->say("counts").substr(8, 1), "0") << "faults";
}

TEST_F(Agent, NoContextNoAgentNoProcess) {
  auto program = host();
  ASSERT_EQ(program->say("release"), "ok");
  const Answer released = ask(program->pid());
  EXPECT_EQ(released.status, 4) << released.text;
  auto bare = host(Way::kNone);
  const Answer none = ask(bare->pid());
  EXPECT_EQ(none.status, 11) << none.text;
  EXPECT_NE(none.text.find("CUDA_INJECTION64_PATH"), std::string::npos) << none.text;
  const pid_t pid = bare->pid();
  bare.reset();
  EXPECT_EQ(ask(pid).status, 10);
}

TEST_F(Agent, ProcessThatEndedAndIsNotWaitedFor) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  const Answer answer = ask(child);
  EXPECT_EQ(answer.status, 10) << answer.text;
  ::waitpid(child, nullptr, 0);
}

TEST_F(Agent, ProcessThatEndsWhileItIsAsked) {
  auto program = host(Way::kInjected, {"FAKE_EXIT=1"});
  const Answer answer = ask(program->pid());
  EXPECT_EQ(answer.status, 10) << answer.text;
  EXPECT_NE(answer.text.find("ended while it was asked"), std::string::npos) << answer.text;
}

// The permit is withdrawn when the GPU does not come to the launch; then the
// launch reads nothing, and what was asked for is not-probed.
TEST_F(Agent, OccupiedGpuIsNotWaitedFor) {
  auto program = host(Way::kInjected, {"FAKE_LATE=1"});
  const Answer answer = ask(program->pid());
  EXPECT_EQ(answer.status, 2) << answer.text;
  ASSERT_NE(answer.line("resident"), nullptr) << answer.text;
  EXPECT_EQ(answer.line("resident")->at("read_bytes"), 0);
  EXPECT_EQ(answer.line("resident")->at("unread_bytes"), 2 << 20);
  EXPECT_FALSE(answer.kernels("not-probed").empty());
  EXPECT_NE(answer.text.find("did not come to"), std::string::npos) << answer.text;
}

TEST_F(Agent, AnotherUserIsTurnedAway) {
  if (::geteuid() != 0) GTEST_SKIP() << "becoming another user takes root";
  auto program = host();
  // The program of the build may lie where nobody can go.
  const std::string copy = directory_ + "/gpuwatch-probe";
  fs::copy_file(AGENT_PROBE, copy);
  fs::permissions(directory_, fs::perms(0755));
  std::vector<std::string> words{copy, "--pid=" + std::to_string(program->pid()), "--image=" + kCubin};
  Program probe(words, {}, 65534);
  probe.close_input();
  const std::string text = probe.rest();
  EXPECT_EQ(probe.wait(), 12) << text;
  EXPECT_NE(text.find("permission denied"), std::string::npos) << text;
  struct stat info {};
  ASSERT_EQ(::stat(socket().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(Agent, GarbageEndsItsConnectionOnly) {
  auto program = host();
  for (int i = 0; i < 20; ++i) {
    const base::Fd fd = connect();
    std::vector<std::uint8_t> bytes(1 + static_cast<std::size_t>(i) * 37);
    for (std::size_t k = 0; k < bytes.size(); ++k) bytes[k] = static_cast<std::uint8_t>(i * 131 + k * 17);
    // Half of a good request, every other time.
    if (i % 2 == 0) {
      const Frame good = make(AskRead{0, {0x1000, 16}});
      bytes.assign(good.begin(), good.begin() + 20);
    }
    (void)::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  EXPECT_EQ(ask(program->pid()).status, 0);
  expect_all_given_back(*program);
}

// The second is told that the agent is busy, and tries again until it is not.
TEST_F(Agent, TwoRequesters) {
  auto program = host();
  auto first = std::make_unique<base::Fd>(connect());
  const Frame facts = ask_facts();
  ASSERT_EQ(::send(first->get(), facts.data(), facts.size(), MSG_NOSIGNAL), static_cast<ssize_t>(facts.size()));
  std::uint8_t raw[kHeadBytes];
  ASSERT_EQ(::recv(first->get(), raw, sizeof raw, MSG_WAITALL), static_cast<ssize_t>(sizeof raw));
  // Served: whoever comes now is turned away.
  const base::Fd second = connect();
  ASSERT_EQ(::recv(second.get(), raw, sizeof raw, MSG_WAITALL), static_cast<ssize_t>(sizeof raw));
  EXPECT_EQ(parse_head(raw, kAnswerMax)->type, static_cast<std::uint16_t>(Type::kRefused));
  std::vector<std::string> words{AGENT_PROBE, "--json", "--pid=" + std::to_string(program->pid()), "--image=" + kCubin};
  Program probe(words, {});
  probe.close_input();
  first.reset();
  const std::string text = probe.rest();
  EXPECT_EQ(probe.wait(), 0) << text;
}

TEST_F(Agent, ForkedChildHasNoAgent) {
  auto program = host();
  const pid_t child = static_cast<pid_t>(std::stoi(program->say("fork")));
  ASSERT_GT(child, 0);
  EXPECT_EQ(ask(child).status, 11);
  EXPECT_EQ(ask(program->pid()).status, 0);
  ::kill(child, SIGKILL);
}

// What the process must not notice: one thread more, which takes no signal.
TEST_F(Agent, OneThreadWithAllSignalsBlocked) {
  auto program = host();
  int agents = 0;
  for (const auto& task : fs::directory_iterator("/proc/" + std::to_string(program->pid()) + "/task")) {
    std::ifstream comm(task.path() / "comm");
    std::string name;
    std::getline(comm, name);
    if (name != "gpuwatch-agent") continue;
    ++agents;
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("SigBlk:")) {
        const auto blocked = std::stoull(line.substr(7), nullptr, 16);
        EXPECT_NE(blocked & 1ull << (SIGTERM - 1), 0u) << line;
        EXPECT_NE(blocked & 1ull << (SIGINT - 1), 0u) << line;
        EXPECT_NE(blocked & 1ull << (SIGUSR1 - 1), 0u) << line;
      }
  }
  EXPECT_EQ(agents, 1);
}

TEST(AgentServer, RootAndTheOwnUserMayAsk) {
  EXPECT_TRUE(Server::allowed(0, 1000));
  EXPECT_TRUE(Server::allowed(1000, 1000));
  EXPECT_FALSE(Server::allowed(1001, 1000));
  EXPECT_FALSE(Server::allowed(65534, 0));
}

}  // namespace
}  // namespace gpuwatch::probe::agent
