// SPDX-License-Identifier: Apache-2.0
// What goes wrong in a worker costs one image, has a name, and leaves the rest
// as it would have been.
#include "identify/worker.h"

#include <gtest/gtest.h>

#include "identify/identify.h"
#include "identify/wire.h"
#include "unit/identify/support.h"

namespace gpuwatch::identify {
namespace {

struct Outcome {
  std::vector<std::string> errors;  // of each image, "ok" where there is none
};

Outcome identify_with(const std::string& trigger, int timeout_ms = 20'000) {
  const std::string ptx = test::make_ptx();
  std::vector<test::EntrySpec> entries;
  for (int i = 0; i < 5; ++i) entries.push_back({1, test::make_ptx("k" + std::to_string(i)), i == 2 ? trigger : ""});
  Options options;
  options.workers = 2;
  options.timeout_ms = timeout_ms;
  Identifier identifier(options);
  Collector found;
  const std::string bytes = test::make_container(entries);
  EXPECT_TRUE(identifier.bytes("x", as_bytes(bytes), found).ok());
  Outcome outcome;
  for (const auto& part : found.report.parts) {
    EXPECT_TRUE(part.error.empty()) << part.error;
    if (part.entry) outcome.errors.push_back(part.entry->module.errors.empty() ? "ok" : part.entry->module.errors[0]);
  }
  return outcome;
}

void expect_only_third(const Outcome& outcome, const std::string& reason) {
  ASSERT_EQ(outcome.errors.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i)
    if (i == 2)
      EXPECT_NE(outcome.errors[i].find(reason), std::string::npos) << outcome.errors[i];
    else
      EXPECT_EQ(outcome.errors[i], "ok");
}

TEST(Worker, NothingWrong) {
  const Outcome outcome = identify_with("plain.cu");
  ASSERT_EQ(outcome.errors.size(), 5u);
  for (const std::string& error : outcome.errors) EXPECT_EQ(error, "ok");
}

TEST(Worker, CrashCostsOneImage) {
  expect_only_third(identify_with(test::kCrash), "worker crashed: signal 6");
}

TEST(Worker, TimeOutCostsOneImage) {
  expect_only_third(identify_with(test::kHang, 1500), "took too long");
}

TEST(Worker, MemoryIsBounded) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the address sanitizer needs an unbounded address space";
#endif
  expect_only_third(identify_with(test::kEatMemory), "ran out of memory");
}

TEST(Worker, NetworkIsForbidden) {
  expect_only_third(identify_with(test::kCallHome), "forbidden system call");
}

TEST(Worker, ExecutableMemoryIsForbidden) {
  expect_only_third(identify_with(test::kMakeCode), "forbidden system call");
}

TEST(Worker, HasNoPrivileges) {
  auto worker = WorkerProcess::start();
  ASSERT_TRUE(worker.ok()) << worker.error().message();
  // An answer proves that it is inside of its sandbox.
  WireWriter request;
  request.byte(static_cast<std::uint8_t>(Operation::kDemangle));
  request.texts({"_Z1kv", "plain", "_Znonsense", std::string(10'000, '_')});
  ASSERT_TRUE(worker->send(request.str(), nullptr, 0));
  std::string body;
  ASSERT_EQ(worker->wait(body, 20'000), WorkerProcess::Got::kReply);
  WireReader in(as_bytes(body).subspan(1));
  EXPECT_EQ(in.text(), "k()");
  EXPECT_EQ(in.text(), "");
  EXPECT_EQ(in.text(), "");
  EXPECT_EQ(in.text(), "");
  const std::string status = test::slurp("/proc/" + std::to_string(worker->pid()) + "/status");
  EXPECT_NE(status.find("CapEff:\t0000000000000000"), std::string::npos);
  EXPECT_NE(status.find("CapPrm:\t0000000000000000"), std::string::npos);
  EXPECT_NE(status.find("NoNewPrivs:\t1"), std::string::npos);
  EXPECT_NE(status.find("Seccomp:\t2"), std::string::npos);
  EXPECT_EQ(status.find("Uid:\t0"), std::string::npos);
}

TEST(Worker, NonsenseIsAnsweredWithAnError) {
  auto worker = WorkerProcess::start();
  ASSERT_TRUE(worker.ok());
  std::string body;
  ASSERT_TRUE(worker->send("\x63garbage", nullptr, 0));
  ASSERT_EQ(worker->wait(body, 20'000), WorkerProcess::Got::kReply);
  EXPECT_EQ(body[0], static_cast<char>(ReplyState::kError));
  ASSERT_TRUE(worker->send(std::string("\x03\xff\xff\xff\xff\xff\xff\xff\xff\x01\xff\xff\xff\x7f", 14), nullptr, 0));
  ASSERT_EQ(worker->wait(body, 20'000), WorkerProcess::Got::kReply);
  EXPECT_EQ(body[0], static_cast<char>(ReplyState::kError));
}

}  // namespace
}  // namespace gpuwatch::identify
