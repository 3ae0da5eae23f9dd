// SPDX-License-Identifier: Apache-2.0
// A program gets the alert on its standard input and nothing else of ours; one
// that hangs, forks, floods or fails ends with its time and harms nobody.
#include "sink/exec_sink.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <thread>

#include "unit/sink/items.h"
#include "unit/support.h"

namespace gpuwatch::sink {
namespace {

using gpuwatch::test::ScratchDir;
using gpuwatch::test::slurp;
using gpuwatch::test::spill;
using test::item_of;

class ExecSinkTest : public testing::Test {
 protected:
  void SetUp() override { ::signal(SIGPIPE, SIG_IGN); }  // a queue's thread blocks it
  std::string script(const std::string& body, mode_t mode = 0755) {
    const std::string path = dir_.file("program");
    spill(path, "#!/bin/sh\n" + body + "\n");
    ::chmod(path.c_str(), mode);
    return path;
  }
  std::unique_ptr<Sink> sink_for(const std::string& body, std::chrono::milliseconds limit = std::chrono::seconds(30)) {
    ExecOptions options;
    options.command = {script(body), "a word", "$(touch x)"};
    options.limit = limit;
    options.log = [this](const std::string& line) { log_ += line + "\n"; };
    auto sink = ExecSink::open(std::move(options));
    EXPECT_TRUE(sink.ok()) << (sink.ok() ? "" : sink.error().message());
    return sink.ok() ? std::move(*sink) : nullptr;
  }
  Outcome run(Sink& sink, const std::string& json = "{\"a\":1}") {
    const std::vector<ItemPtr> items = {item_of(json)};
    return sink.write(items);
  }
  ScratchDir dir_;
  std::string log_;
};

TEST_F(ExecSinkTest, InputArgumentsAndEnvironment) {
  auto sink = sink_for("cat >" + dir_.file("in") + "; printf '%s|' \"$@\" >" + dir_.file("arguments") + "; env >" +
                       dir_.file("env") + "; ls /proc/self/fd | wc -l >" + dir_.file("fds") + "; pwd");
  EXPECT_TRUE(sink->wants(*item_of("x")));
  EXPECT_FALSE(sink->wants(*item_of("x", ItemKind::kEvent)));
  ::setenv("GPUWATCH_TEST_SECRET", "do not tell", 1);
  EXPECT_EQ(run(*sink).sent, Outcome::kAll) << log_;
  EXPECT_EQ(slurp(dir_.file("in")), "{\"a\":1}\n");
  EXPECT_EQ(slurp(dir_.file("arguments")), "a word|$(touch x)|");
  const std::string env = slurp(dir_.file("env"));
  EXPECT_EQ(env.find("SECRET"), std::string::npos) << env;
  EXPECT_NE(env.find("GPUWATCH_RULE=rule-1\n"), std::string::npos) << env;
  EXPECT_NE(env.find("GPUWATCH_SEVERITY=critical\n"), std::string::npos) << env;
  EXPECT_EQ(slurp(dir_.file("fds")), "4\n");  // 0, 1, 2 and that of ls
  EXPECT_NE(log_.find("/program: /"), std::string::npos) << log_;
}

TEST_F(ExecSinkTest, LargeInputThatNobodyReads) {
  auto sink = sink_for("exit 0");
  EXPECT_EQ(run(*sink, std::string(1 << 20, 'x')).sent, Outcome::kAll);
}

TEST_F(ExecSinkTest, FailureIsToldAndNotTriedAgain) {
  auto sink = sink_for("echo 'bad \033[2J thing' >&2; exit 3");
  const Outcome outcome = run(*sink);
  EXPECT_EQ(outcome.sent, 0U);
  EXPECT_EQ(outcome.refused, 1U);
  ASSERT_TRUE(outcome.error.has_value());
  EXPECT_NE(outcome.error->message().find("exit status 3"), std::string::npos) << outcome.error->message();
  EXPECT_NE(log_.find("bad \\x1b[2J thing"), std::string::npos) << log_;
}

TEST_F(ExecSinkTest, OutputIsBounded) {
  auto sink = sink_for("head -c 1000000 /dev/zero | tr '\\0' y");
  EXPECT_EQ(run(*sink).sent, Outcome::kAll);
  EXPECT_GT(log_.size(), 4000U);
  EXPECT_LT(log_.size(), 4300U);
}

TEST_F(ExecSinkTest, TimeIsUpForTheWholeGroup) {
  auto sink = sink_for("sleep 1000 & echo $! >" + dir_.file("child") + "; wait", std::chrono::milliseconds(300));
  const Outcome outcome = run(*sink);
  ASSERT_TRUE(outcome.error.has_value());
  EXPECT_NE(outcome.error->message().find("killed, not ready after 300 ms"), std::string::npos);
  const pid_t child = static_cast<pid_t>(std::stol(slurp(dir_.file("child"))));
  // It is init's to reap now: gone, or a zombie on its way.
  for (int i = 0; i < 2000 && ::kill(child, 0) == 0; ++i) {
    const std::string stat = slurp("/proc/" + std::to_string(child) + "/stat");
    if (stat.find(") Z") != std::string::npos) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const std::string stat = slurp("/proc/" + std::to_string(child) + "/stat");
  EXPECT_TRUE(stat.empty() || stat.find(") Z") != std::string::npos) << stat;
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);  // no zombie of ours
}

TEST_F(ExecSinkTest, WhatStaysBehindInTheGroupGoesToo) {
  auto sink = sink_for("sleep 1000 >/dev/null 2>&1 & echo $! >" + dir_.file("child"));
  EXPECT_EQ(run(*sink).sent, Outcome::kAll);
  const pid_t child = static_cast<pid_t>(std::stol(slurp(dir_.file("child"))));
  for (int i = 0; i < 2000 && ::kill(child, 0) == 0; ++i) {
    if (slurp("/proc/" + std::to_string(child) + "/stat").find(") Z") != std::string::npos) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const std::string stat = slurp("/proc/" + std::to_string(child) + "/stat");
  EXPECT_TRUE(stat.empty() || stat.find(") Z") != std::string::npos) << stat;
}

TEST_F(ExecSinkTest, Cancel) {
  auto sink = sink_for("sleep 1000", std::chrono::hours(1));
  std::thread canceller([&] { sink->cancel(); });
  const Outcome outcome = run(*sink);
  canceller.join();
  ASSERT_TRUE(outcome.error.has_value());
  EXPECT_EQ(outcome.refused, 1U);
}

TEST_F(ExecSinkTest, RateLimitMakesItWait) {
  ExecOptions options;
  options.command = {script("cat >>" + dir_.file("in"))};
  options.rate = {0.001, 2};
  auto sink = ExecSink::open(std::move(options));
  ASSERT_TRUE(sink.ok());
  const std::vector<ItemPtr> items = {item_of("1"), item_of("2"), item_of("3")};
  const Outcome outcome = (*sink)->write(items);
  EXPECT_EQ(outcome.sent, 2U);
  EXPECT_FALSE(outcome.error.has_value());
  EXPECT_TRUE(outcome.retry);
  EXPECT_GT(outcome.retry_after, std::chrono::seconds(900));
  EXPECT_EQ(slurp(dir_.file("in")), "1\n2\n");
}

TEST_F(ExecSinkTest, RefusesProgramsThatOthersMayChange) {
  const auto message = [&](const std::vector<std::string>& command) {
    ExecOptions options;
    options.command = command;
    auto sink = ExecSink::open(std::move(options));
    return sink.ok() ? std::string("taken") : sink.error().message();
  };
  EXPECT_NE(message({script("", 0777)}).find("others may change it"), std::string::npos);
  EXPECT_NE(message({script("", 0644)}).find("no executable file"), std::string::npos);
  EXPECT_NE(message({"true"}).find("whole path"), std::string::npos);
  EXPECT_NE(message({"/no/such"}).find("No such file"), std::string::npos);
  EXPECT_NE(message({"/tmp"}).find("no executable file"), std::string::npos);
  EXPECT_NE(message({}).find("no program"), std::string::npos);
}

}  // namespace
}  // namespace gpuwatch::sink
