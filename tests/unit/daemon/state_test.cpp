// SPDX-License-Identifier: Apache-2.0
// Unit tests of the daemon's memory: how the last run ended, numbers of alerts
// that never come twice, damaged files.
#include "daemon/state.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace gpuwatch::daemon {
namespace {

class StateTest : public ::testing::Test {
 protected:
  StateTest() : path_(::testing::TempDir() + "state-" + std::to_string(::getpid()) + ".db") { clean(); }
  ~StateTest() override { clean(); }
  void clean() {
    for (const char* end : {"", "-wal", "-shm", ".damaged"}) ::unlink((path_ + end).c_str());
  }
  std::string path_, trouble_;
};

TEST_F(StateTest, RemembersHowItEnded) {
  {
    auto state = State::open(path_, "boot-a", trouble_);
    ASSERT_TRUE(state.ok()) << state.error().message();
    EXPECT_FALSE(state->last_run().has_value());
    ASSERT_TRUE(state->alive(1000, 5).ok());
  }
  {
    auto state = State::open(path_, "boot-a", trouble_);
    ASSERT_TRUE(state->last_run().has_value());
    EXPECT_FALSE(state->last_run()->clean) << "it was not ended in order";
    EXPECT_TRUE(state->last_run()->same_boot);
    EXPECT_EQ(state->last_run()->alive_unix_ns, 1000u);
    EXPECT_EQ(state->last_run()->records, 5u);
    ASSERT_TRUE(state->stopped(2000, 9).ok());
  }
  auto state = State::open(path_, "boot-b", trouble_);
  EXPECT_TRUE(state->last_run()->clean);
  EXPECT_FALSE(state->last_run()->same_boot);
  EXPECT_EQ(trouble_, "");
}

TEST_F(StateTest, NumbersNeverComeTwice) {
  std::uint64_t last = 0;
  for (int run = 0; run < 3; ++run) {
    auto state = State::open(path_, "boot", trouble_);
    for (int i = 0; i < 3; ++i) {
      auto first = state->reserve_alerts(100);
      ASSERT_TRUE(first.ok());
      EXPECT_GT(*first, last);
      last = *first + 99;
    }
  }
}

TEST_F(StateTest, KeepsTheLastAlerts) {
  auto state = State::open(path_, "boot", trouble_);
  for (int i = 0; i < 1010; ++i)
    ASSERT_TRUE(state->keep_alert({"a" + std::to_string(i), "rule", 7, "text \xff\n"}).ok());
  auto alerts = state->alerts(5000);
  ASSERT_TRUE(alerts.ok());
  EXPECT_EQ(alerts->size(), 1000u);
  EXPECT_EQ(alerts->front().id, "a1009");
  EXPECT_EQ(alerts->back().id, "a10");
}

TEST_F(StateTest, DamageIsPutAside) {
  std::ofstream(path_) << "this is no database, and it is long enough to be looked at as one" << std::string(4096, 'x');
  auto state = State::open(path_, "boot", trouble_);
  ASSERT_TRUE(state.ok()) << state.error().message();
  EXPECT_NE(trouble_.find(".damaged"), std::string::npos) << trouble_;
  EXPECT_EQ(::access((path_ + ".damaged").c_str(), F_OK), 0);
  EXPECT_FALSE(state->last_run().has_value());
}

TEST_F(StateTest, NoPlaceIsAnError) {
  EXPECT_FALSE(State::open("/no/such/place/state.db", "boot", trouble_).ok());
}

}  // namespace
}  // namespace gpuwatch::daemon
