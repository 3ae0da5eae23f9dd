// SPDX-License-Identifier: Apache-2.0
// Choosing by a name that is not known yet: what a container did before its
// name came is told in order; memory and time are bounded, and nobody waits.
#include "cli/held_records.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "base/clock.h"
#include "cli/view.h"
#include "unit/cli/hostile_recording.h"

namespace gpuwatch::cli {
namespace {

using test::Blob;

TEST(HeldRecords, ABoundOnMemory) {
  HeldRecords held({4096, 8, 1000});
  const Blob record = test::open_record(test::make_head(GPUWATCH_REC_OPEN));
  std::uint64_t kept = 0;
  for (int i = 0; i < 100; ++i) kept += held.keep(model::parse_record(record).value(), "a", 10) ? 1 : 0;
  EXPECT_GT(kept, 5U);
  EXPECT_LT(kept, 60U);
  EXPECT_EQ(held.dropped(), 100 - kept);
  EXPECT_EQ(held.take().size(), kept);
  EXPECT_TRUE(held.keep(model::parse_record(record).value(), "a", 10)) << "there is room again";
}

TEST(HeldRecords, AContainersTimeIsUp) {
  HeldRecords held({1 << 20, 8, 1000});
  const Blob record = test::open_record(test::make_head(GPUWATCH_REC_OPEN));
  const model::RawRecord raw = model::parse_record(record).value();
  EXPECT_TRUE(held.keep(raw, "a", 10));
  EXPECT_TRUE(held.due(1, 11)) << "the first news";
  EXPECT_FALSE(held.due(1, 12));
  EXPECT_TRUE(held.due(1, 1010));
  EXPECT_EQ(held.take().size(), 1U);
  EXPECT_FALSE(held.keep(raw, "a", 1010)) << "it had its time";
  EXPECT_TRUE(held.keep(raw, "b", 1010));
  EXPECT_EQ(held.dropped(), 0U);
}

TEST(HeldRecords, ABoundOnContainers) {
  HeldRecords held({1 << 20, 8, 1000});
  const Blob record = test::open_record(test::make_head(GPUWATCH_REC_OPEN));
  const model::RawRecord raw = model::parse_record(record).value();
  for (int i = 0; i < 20; ++i) (void)held.keep(raw, std::to_string(i), 10);
  EXPECT_EQ(held.dropped(), 12U);
  EXPECT_TRUE(held.keep(raw, "new", 2000)) << "old ones make room";
}

// Answers when told to.
class SlowSource : public attribute::NameSource {
 public:
  struct Gate {
    std::mutex mutex;
    std::condition_variable wake;
    bool open = false;
  };
  explicit SlowSource(Gate& gate) : gate_(gate) {}

  bool answers(const attribute::NameQuery&) const override { return true; }
  base::Result<std::optional<attribute::NameAnswer>> lookup(const attribute::NameQuery& query,
                                                            const attribute::Patience&) override {
    std::unique_lock lock(gate_.mutex);
    gate_.wake.wait(lock, [&] { return gate_.open; });
    attribute::NameAnswer answer;
    answer.container_name = query.container_id[0] == 'd' ? "trainer" : "other";
    answer.image = "SECRETimage:1";
    answer.pod_name = "SECRETpod";
    answer.pod_namespace = "SECRETns";
    answer.labels = {{"SECRETkey", "SECRETvalue"}};
    return std::optional<attribute::NameAnswer>(std::move(answer));
  }

 private:
  Gate& gate_;
};

struct Tailing {
  explicit Tailing(const std::vector<std::string>& flags, Privacy* privacy = nullptr)
      : selection(std::move(*Selection::from_flags(*parse_flags(flags).flags))) {
    attribute::NameSources sources;
    sources.push_back(std::make_unique<SlowSource>(gate));
    names.emplace(std::move(sources));
    options.raw = options.json = options.live = true;
    options.names = &*names;
    options.privacy = privacy;
    view.emplace(options, model::DriverVersion{}, std::nullopt, selection);
  }
  ~Tailing() { open(); }

  void open() {
    const std::lock_guard lock(gate.mutex);
    gate.open = true;
    gate.wake.notify_all();
  }
  // Until as many answers as that are there for the records' side; the counter
  // of found names is ahead of it.
  void open_and_wait(std::uint64_t answers) {
    open();
    const std::uint64_t begin = base::monotonic_ns();
    while (names->generation() < answers && base::monotonic_ns() - begin < 20'000'000'000) std::this_thread::yield();
  }
  std::string feed(char id, std::uint64_t time_ns) {
    std::string out;
    gpuwatch_rec head = test::make_head(GPUWATCH_REC_OPEN, time_ns);
    head.cgroup_id = static_cast<unsigned char>(id);
    if (!seen[static_cast<unsigned char>(id)]) {
      seen[static_cast<unsigned char>(id)] = true;
      view->observe(model::parse_record(test::hostile_cgroup(head, "/docker/" + std::string(64, id))).value(), out);
    }
    view->observe(model::parse_record(test::open_record(head)).value(), out);
    return out;
  }

  SlowSource::Gate gate;
  Selection selection;
  std::optional<attribute::Names> names;
  ViewOptions options;
  std::optional<View> view;
  bool seen[256] = {};
};

TEST(TailByName, WhatCameBeforeTheNameIsToldInOrder) {
  Tailing setup({"tail", "--container", "trainer"});
  std::string out;
  std::uint64_t time_ns = 100;
  for (int i = 0; i < 5; ++i) {
    out += setup.feed('d', time_ns += 100);
    out += setup.feed('e', time_ns += 100);
  }
  EXPECT_EQ(out, "") << "nobody knows yet which it is";
  setup.open_and_wait(2);
  setup.view->settle(base::monotonic_ns(), out);
  setup.feed('e', time_ns += 100);
  out += setup.feed('d', time_ns += 100);
  std::istringstream lines(out);
  std::uint64_t last = 0;
  int opens = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    ASSERT_TRUE(json.is_object()) << line;
    if (json["type"] == "open") {
      EXPECT_EQ(json.value("container_name", ""), "trainer");
    }
    EXPECT_EQ(line.find("eeee"), std::string::npos) << line;
    EXPECT_GE(json.value("time_ns", std::uint64_t{0}), last);
    last = json.value("time_ns", std::uint64_t{0});
    opens += json["type"] == "open" ? 1 : 0;
  }
  EXPECT_EQ(opens, 6) << out;
  EXPECT_EQ(setup.view->stats().held_dropped, 0U);
  EXPECT_EQ(setup.view->stats().names.found, 2U);
  EXPECT_GT(setup.view->stats().names.hits, 0U);
  EXPECT_GT(setup.view->stats().names.misses, 0U);
}

// An id is known at once: nothing is held.
TEST(TailByName, AChoiceByIdWaitsForNobody) {
  Tailing setup({"tail", "--container", "dddddd"});
  EXPECT_NE(setup.feed('d', 100), "");
  EXPECT_EQ(setup.feed('e', 200), "");
}

// Image, pod, namespace and labels of a look-up stay private too, and an image
// record of a GPU module tells neither its path nor its first bytes.
TEST(TailByName, PrivateModeHidesWhatWasLookedUp) {
  for (const bool hide : {false, true}) {
    Privacy privacy("0123456789abcdef");
    Tailing setup({"tail"}, hide ? &privacy : nullptr);
    setup.feed('d', 100);
    setup.open_and_wait(1);
    std::string out = setup.feed('d', 200);
    gpuwatch_rec head = test::make_head(GPUWATCH_REC_IMAGE, 300);
    Blob payload;
    for (int i = 0; i < 40; ++i) test::append_text(payload, "SECRETSECRET/p.cubin\0\0\0\0");
    setup.view->observe(model::parse_record(test::finish_record(head, payload)).value(), out);
    EXPECT_EQ(out.find("SECRETimage") != std::string::npos, !hide) << out;
    EXPECT_EQ(out.find("SECRET") != std::string::npos, !hide) << out;
    EXPECT_EQ(out.find("trainer") != std::string::npos, !hide) << out;
  }
}

}  // namespace
}  // namespace gpuwatch::cli
