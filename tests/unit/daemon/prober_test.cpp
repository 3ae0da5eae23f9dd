// SPDX-License-Identifier: Apache-2.0
// The prober with a gpuwatch-probe that is a script: what it prints, how it ends,
// that it hangs or dies. The process that is asked is this one, or a child, with a
// socket as an agent's. Everything waits for what happens, nothing for time.
#include "daemon/prober.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "daemon/probe_setup.h"

namespace gpuwatch::daemon {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr auto kPatience = 60s;  // only ends a broken test

const std::string kForm(64, 'a');
const std::string kHead = "{\"type\":\"process\",\"pid\":1,\"agent\":\"injected\"}\n";

std::string sums(int match, int differ) {
  return "{\"type\":\"resident\",\"gpu\":0,\"match\":" + std::to_string(match) +
         ",\"match-relocated\":1,\"differ\":" + std::to_string(differ) + ",\"not-resident\":7,\"not-probed\":2}\n";
}
std::string differs(const std::string& name, int offset) {
  return "{\"type\":\"kernel\",\"gpu\":0,\"image\":\"/lib/x.so, entry 1\",\"name\":\"" + name +
         "\",\"verdict\":\"differ\",\"bytes\":128,\"first_offset\":" + std::to_string(offset) +
         ",\"different_bytes\":4}\n";
}
const std::string kMatch =
    "{\"type\":\"kernel\",\"gpu\":0,\"image\":\"i\",\"name\":\"f\",\"verdict\":\"match\",\"bytes\":128,\"form_sha256\":"
    "\"" +
    kForm + "\"}\n";

std::uint64_t start_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::istringstream words(text.substr(text.rfind(')') + 2));
  std::string word;
  for (int i = 0; i < 20; ++i) words >> word;
  return std::stoull(word) * (1'000'000'000u / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK)));
}

base::Fd listen_as_agent(const std::string& folder) {
  base::Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "%s/gpuwatch-agent.%d.sock", folder.c_str(), ::getpid());
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 || ::listen(fd.get(), 1) != 0)
    return {};
  return fd;
}

class Probers : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/gw-prober.XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
    fs::permissions(folder_, fs::perms(0755));
    // What `say` holds is printed; `then` is run, which may hang or end it.
    std::ofstream(folder_ + "/probe") << "#!/bin/sh\ncd " << folder_
                                      << "\necho \"$@\" >> asked\ncat say\n. ./then\nexit $(cat code)\n";
    fs::permissions(folder_ + "/probe", fs::perms(0755));
    std::ofstream(folder_ + "/asked");
    say("");
    agent_ = listen_as_agent(folder_);
    ASSERT_TRUE(agent_.valid());
    self_ = {start_of(::getpid()), static_cast<std::uint32_t>(::getpid())};
  }
  void TearDown() override {
    prober_.reset();
    fs::remove_all(folder_);
  }

  // Whole at once: the script may read at any time.
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/." + name) << text;
    fs::rename(folder_ + "/." + name, folder_ + "/" + name);
  }
  void say(const std::string& lines, int code = 0, const std::string& then = "") const {
    write("then", then + "\n");
    write("code", std::to_string(code) + "\n");
    write("say", lines);
  }

  void begin(std::vector<model::ProcessKey> processes, ProberSettings how = {true, 10ms, 60s}) {
    auto starter = ProbeStarter::begin(folder_ + "/probe");
    ASSERT_TRUE(starter.ok()) << starter.error().message();
    prober_ = std::make_unique<Prober>(
        std::move(*starter), [processes] { return processes; },
        [this](ProbeNews news) {
          const std::lock_guard hold(lock_);
          news_.push_back(std::move(news));
          told_.notify_all();
        });
    prober_->use(how);
    prober_->start();
  }

  // The number `count` of what was told.
  ProbeNews news(std::size_t count) {
    std::unique_lock hold(lock_);
    EXPECT_TRUE(told_.wait_for(hold, kPatience, [&] { return news_.size() > count; })) << count;
    return news_.size() > count ? news_[count] : ProbeNews{};
  }
  std::size_t told() {
    const std::lock_guard hold(lock_);
    return news_.size();
  }
  std::uint64_t runs(const std::string& result) const {
    const ProbeCounts counts = prober_->counts();
    const auto at = counts.runs.find(result);
    return at == counts.runs.end() ? 0 : at->second;
  }
  template <typename Condition>
  void until(const char* what, Condition condition) {
    for (const auto end = std::chrono::steady_clock::now() + kPatience; !condition();) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << what;
      std::this_thread::sleep_for(2ms);
    }
  }
  // Runs with that result go on, and nothing more is told.
  void expect_quiet(const std::string& result, std::size_t expected) {
    const std::uint64_t seen = runs(result);
    until("three more runs", [&] { return runs(result) > seen + 3; });
    EXPECT_EQ(told(), expected);
  }
  std::string file(const std::string& name) const {
    std::ifstream in(folder_ + "/" + name);
    return {(std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>()};
  }

  std::string folder_;
  base::Fd agent_;
  model::ProcessKey self_;
  std::unique_ptr<Prober> prober_;
  std::mutex lock_;
  std::condition_variable told_;
  std::vector<ProbeNews> news_;
};

TEST_F(Probers, ToldOnceUntilItChanges) {
  say(kHead + kMatch + sums(5, 0));
  begin({self_});
  const ProbeNews first = news(0);
  EXPECT_EQ(first.process, self_);
  EXPECT_EQ(first.sums, (ProbeSums{6, 0, 7, 2}));
  EXPECT_EQ(first.problem, "");
  EXPECT_TRUE(first.differ.empty());
  EXPECT_EQ(file("asked").substr(0, file("asked").find('\n')), "--json --pid=" + std::to_string(::getpid()));
  expect_quiet("match", 1);

  say(kHead + differs("evil", 36) + sums(4, 1), 1);
  const ProbeNews second = news(1);
  ASSERT_EQ(second.differ.size(), 1u);
  EXPECT_EQ(second.differ[0].kernel, "evil");
  EXPECT_EQ(second.differ[0].image, "/lib/x.so, entry 1");
  EXPECT_EQ(second.differ[0].first_offset, 36u);
  EXPECT_EQ(second.differ[0].different_bytes, 4u);
  expect_quiet("differ", 2);
  EXPECT_EQ(prober_->counts().differ, 1u);
  EXPECT_EQ(prober_->counts().with_agent, 1u);

  say(kHead + differs("evil", 36) + differs("more", 0) + sums(3, 2), 1);
  const ProbeNews third = news(2);
  ASSERT_EQ(third.differ.size(), 1u) << "the first was told";
  EXPECT_EQ(third.differ[0].kernel, "more");
  say(kHead + differs("evil", 40) + differs("more", 0) + sums(3, 2), 1);
  ASSERT_EQ(news(3).differ.size(), 1u) << "changed at another place";
  say(kHead + sums(6, 0));
  EXPECT_TRUE(news(4).differ.empty());
  // Gone and come back is a finding anew.
  say(kHead + differs("evil", 40) + sums(5, 1), 1);
  EXPECT_EQ(news(5).differ.size(), 1u);
}

TEST_F(Probers, ConstantBanksThatDifferAreTold) {
  std::string bank = differs(".nv.constant2.f", 8);
  bank.replace(bank.find("kernel"), 6, "constant_bank");
  std::string good = bank;
  good.replace(good.find("differ\""), 6, "match");
  say(kHead + good + bank + sums(5, 0), 1);
  begin({self_});
  const ProbeNews told = news(0);
  ASSERT_EQ(told.differ.size(), 1u) << told.problem;
  EXPECT_EQ(told.differ[0].kernel, ".nv.constant2.f");
  EXPECT_EQ(told.sums.differ, 1u);
}

TEST_F(Probers, MuchIsToldInParts) {
  std::string lines = kHead;
  for (int i = 0; i < 150; ++i) lines += differs("k" + std::to_string(i), i);
  say(lines + sums(0, 150), 1);
  begin({self_});
  EXPECT_EQ(news(0).differ.size(), Prober::kDifferencesTold);
  EXPECT_EQ(news(1).differ.size(), Prober::kDifferencesTold);
  EXPECT_EQ(news(2).differ.size(), 150 - 2 * Prober::kDifferencesTold);
  expect_quiet("differ", 3);
}

TEST_F(Probers, FailuresAreToldOnceWithTheirReason) {
  say("{\"type\":\"error\",\"reason\":\"the agent does not answer\",\"exit_code\":13}\n", 13);
  begin({self_});
  EXPECT_EQ(news(0).problem, "the agent does not answer");
  EXPECT_EQ(news(0).exit_status, 13u);
  expect_quiet("no_answer", 1);
  say("{\"type\":\"error\",\"reason\":\"a fault ended the context\",\"exit_code\":9}\n", 9);
  EXPECT_EQ(news(1).problem, "a fault ended the context");
  say("", 12);
  EXPECT_EQ(news(2).problem, "gpuwatch-probe ended with status 12");
  say("", 127);
  EXPECT_EQ(news(3).problem, "gpuwatch-probe could not be started");
  // No news at all: gone, without an agent by now, without a context.
  const std::pair<int, const char*> none[] = {{10, "gone"}, {11, "no_agent"}, {4, "no_context"}};
  for (const auto& [code, result] : none) {
    say("", code);
    until(result, [&, name = result] { return runs(name) > 2; });
  }
  EXPECT_EQ(told(), 4u);
}

TEST_F(Probers, GarbageIsNoResult) {
  say("nonsense\n");
  begin({self_});
  EXPECT_NE(news(0).problem.find("no answer of it"), std::string::npos) << news(0).problem;
  expect_quiet("garbage", 1);
  say(kHead + sums(1, 0) + "{\"type\":\"ker");
  EXPECT_NE(news(1).problem.find("half of a line"), std::string::npos) << news(1).problem;
  say("{\"type\":\"kernel\",\"gpu\":-1}\n");
  EXPECT_NE(news(2).problem.find("what every one has"), std::string::npos) << news(2).problem;
  // Without an end: it is ended, not read for ever.
  say("", 0, "exec cat /dev/zero");
  EXPECT_NE(news(3).problem.find("a line over"), std::string::npos) << news(3).problem;
  say(kHead + sums(1, 0));
  EXPECT_EQ(news(4).problem, "");
}

TEST_F(Probers, ProgramThatIsKilled) {
  say(kHead + sums(5, 0), 0, "kill -9 $$");
  begin({self_});
  EXPECT_EQ(news(0).problem, "gpuwatch-probe was ended by signal 9");
  expect_quiet("killed", 1);
}

TEST_F(Probers, ProgramThatHangsIsEnded) {
  say(kHead, 0, "echo $$ > pid; exec sleep 100000");
  begin({self_}, {true, 10ms, 100ms});
  EXPECT_NE(news(0).problem.find("not ready in time"), std::string::npos) << news(0).problem;
  EXPECT_GE(runs("timeout"), 1u);
  say(kHead + sums(5, 0));
  // On a slow machine even that may take longer.
  prober_->use({true, 10ms, 60s});
  until("a result", [&] { return runs("match") > 0; });
}

TEST_F(Probers, EndsInTheMiddleOfAProbe) {
  for (const bool stop : {true, false}) {
    fs::remove(folder_ + "/pid");
    say(kHead, 0, "echo $$ > .pid; mv .pid pid; exec sleep 100000");
    begin({self_});
    until("a probe that hangs", [&] { return fs::exists(folder_ + "/pid"); });
    const pid_t child = std::stoi(file("pid"));
    if (stop)
      prober_->stop();
    else
      prober_->use({false, 10ms, 60s});
    until("its end", [&] { return ::kill(child, 0) != 0 && errno == ESRCH; });
    if (!stop) {
      until("counted", [&] { return runs("stopped") == 1; });
      // Switched on again it goes on.
      say(kHead + sums(5, 0));
      prober_->use({true, 10ms, 60s});
      EXPECT_EQ(news(0).problem, "");
    }
    prober_.reset();
    EXPECT_EQ(told(), stop ? 0u : 1u);
  }
}

TEST_F(Probers, WhoHasNoAgentIsNotAsked) {
  const pid_t bare = ::fork();
  if (bare == 0) {
    ::close(agent_.get());
    ::pause();
    ::_exit(0);
  }
  const model::ProcessKey without{start_of(bare), static_cast<std::uint32_t>(bare)};
  // The number of a process that is another one by now is not asked, either.
  begin({without, {self_.start_ns + 10'000'000'000u, self_.tgid}});
  until("two looks", [&, first = std::uint64_t{0}]() mutable {
    const std::uint64_t last = prober_->counts().last_unix_ns;
    if (first == 0) first = last;
    return last > first;
  });
  EXPECT_EQ(prober_->counts().without_agent, 1u);
  EXPECT_EQ(prober_->counts().with_agent, 0u);
  EXPECT_EQ(file("asked"), "");
  ::kill(bare, SIGKILL);
  ::waitpid(bare, nullptr, 0);
}

// It acts as the user of the process, and can read it but no more.
TEST_F(Probers, ProgramRunsAsTheUserOfTheProcess) {
  if (::geteuid() != 0) GTEST_SKIP() << "becoming another user takes root";
  fs::permissions(folder_, fs::perms(0777));
  const pid_t other = ::fork();
  if (other == 0) {
    ::close(agent_.get());
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(1);
    const base::Fd fd = listen_as_agent(folder_);
    if (!fd.valid()) ::_exit(1);
    ::pause();
    ::_exit(0);
  }
  const std::string socket = folder_ + "/gpuwatch-agent." + std::to_string(other) + ".sock";
  until("its socket", [&] { return fs::exists(socket); });
  fs::permissions(folder_ + "/asked", fs::perms(0666));
  say(kHead + sums(1, 0), 0,
      "(id -u; id -g; id -G; cat /proc/self/oom_score_adj; grep -E '^(CapPrm|CapEff|NoNewPrivs)' /proc/self/status) > "
      ".who; mv .who who");
  begin({{start_of(other), static_cast<std::uint32_t>(other)}});
  EXPECT_EQ(news(0).problem, "");
  const std::string who = file("who");
  EXPECT_EQ(who.substr(0, 18), "65534\n65534\n65534\n") << who;
  int own = 0;
  std::ifstream("/proc/self/oom_score_adj") >> own;
  EXPECT_TRUE(own > 800 || who.find("\n800\nCapPrm") != std::string::npos) << who;
  std::ifstream status("/proc/self/status");
  std::string line, expected = "0000000000080000";
  while (std::getline(status, line))
    if (line.starts_with("CapPrm:") && (std::stoull(line.substr(7), nullptr, 16) >> 19 & 1) == 0)
      expected = std::string(16, '0');
  EXPECT_NE(who.find("CapEff:\t" + expected), std::string::npos) << who;
  EXPECT_NE(who.find("NoNewPrivs:\t1"), std::string::npos) << who;
  ::kill(other, SIGKILL);
  ::waitpid(other, nullptr, 0);
}

TEST_F(Probers, StarterThatDiesIsTrouble) {
  say(kHead + sums(5, 0));
  begin({self_});
  (void)news(0);
  std::vector<pid_t> starters;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    std::ifstream comm(entry.path() / "comm"), stat(entry.path() / "stat");
    std::string name, text;
    std::getline(comm, name);
    if (name != "gpuwatchd-probe" || !std::getline(stat, text)) continue;
    std::istringstream words(text.substr(text.rfind(')') + 2));
    std::string state;
    pid_t parent = 0;
    words >> state >> parent;
    if (parent == ::getpid()) starters.push_back(std::stoi(entry.path().filename().string()));
  }
  ASSERT_EQ(starters.size(), 1u);
  ::kill(starters[0], SIGKILL);
  until("trouble", [&] { return !prober_->counts().trouble.empty(); });
}

TEST_F(Probers, ProgramsThatWillNotDo) {
  EXPECT_FALSE(ProbeStarter::begin("gpuwatch-probe").ok());
  EXPECT_FALSE(ProbeStarter::begin(folder_ + "/none").ok());
  EXPECT_FALSE(ProbeStarter::begin(folder_).ok());
  EXPECT_FALSE(ProbeStarter::begin(folder_ + "/asked").ok()) << "not executable";
  fs::permissions(folder_ + "/probe", fs::perms(0777));
  EXPECT_FALSE(ProbeStarter::begin(folder_ + "/probe").ok()) << "anybody may change it";
}

TEST(ProbeSetup, ProcessesWithContextsOnce) {
  report::HoldingsSnapshot holdings;
  report::HeldProcess one, other, ended, bare;
  one.who.pid = 7;
  one.contexts = other.contexts = ended.contexts = 1;
  other.who.pid = 8;
  ended.who.pid = 9;
  ended.ended_ns = 1;
  bare.who.pid = 10;
  holdings.gpus.resize(2);
  holdings.gpus[0].containers.push_back({"", {one, other, ended, bare}});
  holdings.gpus[1].containers.push_back({"", {one}});
  const auto found = with_contexts(holdings);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].tgid, 7u);
  EXPECT_EQ(found[1].tgid, 8u);
}

}  // namespace
}  // namespace gpuwatch::daemon
