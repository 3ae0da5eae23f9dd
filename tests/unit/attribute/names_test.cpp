// SPDX-License-Identifier: Apache-2.0
// Names come from a thread of their own, and whatever their sources do, the
// side that handles records never waits for them.
#include "attribute/names.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <time.h>

#include <atomic>
#include <functional>

#include "attribute/attributor.h"
#include "attribute/names_socket.h"
#include "base/clock.h"
#include "unit/attribute/socket_server.h"
#include "unit/support.h"

namespace gpuwatch::attribute {
namespace {

using Found = base::Result<std::optional<NameAnswer>>;
using test::Blob;

class Stub : public NameSource {
 public:
  explicit Stub(std::function<Found(const NameQuery&, const Patience&)> answer) : answer_(std::move(answer)) {}
  bool answers(const NameQuery&) const override { return true; }
  Found lookup(const NameQuery& query, const Patience& patience) override { return answer_(query, patience); }

 private:
  std::function<Found(const NameQuery&, const Patience&)> answer_;
};

NameSources one(std::function<Found(const NameQuery&, const Patience&)> answer) {
  NameSources sources;
  sources.push_back(std::make_unique<Stub>(std::move(answer)));
  return sources;
}

NameAnswer named(const std::string& name) {
  NameAnswer answer;
  answer.container_name = name;
  answer.image = "image";
  return answer;
}

std::string id_of(int number) {
  char text[65];
  std::snprintf(text, sizeof text, "%064x", number);
  return text;
}

NameQuery query_of(int number) {
  return {"docker", id_of(number), {}};
}

// Until it holds; the limit is only for a defect.
bool soon(const std::function<bool()>& holds) {
  const std::uint64_t end = base::monotonic_ns() + 60'000'000'000;
  while (!holds())
    if (base::monotonic_ns() > end) return false;
  return true;
}

TEST(Names, AnswersComeLaterAndAreRemembered) {
  std::atomic<int> asked{0};
  Names names(one([&](const NameQuery& query, const Patience&) -> Found {
    ++asked;
    return std::optional(named("c" + query.container_id.substr(60)));
  }));
  ASSERT_TRUE(soon([&] { return names.find(query_of(7)) != nullptr; }));
  EXPECT_EQ(names.find(query_of(7))->answer.container_name, "c0007");
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(names.counters().found, 1U);
  EXPECT_GE(names.counters().hits, 2U);
}

TEST(Names, NobodyKnewIsRememberedToo) {
  std::atomic<int> asked{0};
  NamesLimits limits;
  limits.ask_again_ns = 3'600'000'000'000;
  Names names(one([&](const NameQuery&, const Patience&) -> Found {
                ++asked;
                return std::optional<NameAnswer>();
              }),
              limits);
  EXPECT_EQ(names.find(query_of(1)), nullptr);
  // The answer is there once the generation changed; find() then notes when to ask again.
  ASSERT_TRUE(soon([&] { return names.generation() == 1; }));
  EXPECT_EQ(names.counters().not_found, 1U);
  EXPECT_EQ(names.find(query_of(1)), nullptr);
  const std::uint64_t before = names.generation();
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(names.find(query_of(1)), nullptr);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(names.generation(), before);
}

TEST(Names, AskedAgainAfterTheTime) {
  std::atomic<int> asked{0};
  NamesLimits limits;
  limits.ask_again_ns = 1;
  Names names(one([&](const NameQuery&, const Patience&) -> Found {
                if (++asked < 3) return std::optional<NameAnswer>();
                return std::optional(named("late"));
              }),
              limits);
  EXPECT_TRUE(soon([&] { return names.find(query_of(1)) != nullptr; }));
  EXPECT_EQ(asked, 3);
}

TEST(Names, ASourceThatLetsTheTimePassIsMuted) {
  std::atomic<int> asked{0};
  NameSources sources = one([&](const NameQuery&, const Patience&) -> Found {
    ++asked;
    return base::Error(base::Code::kLimit, "slow");
  });
  sources.push_back(
      std::make_unique<Stub>([](const NameQuery&, const Patience&) -> Found { return std::optional(named("b")); }));
  Names names(std::move(sources));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(soon([&] { return names.find(query_of(i)) != nullptr; }));
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(names.counters().timed_out, 1U);
}

TEST(Names, SourcesCompleteEachOther) {
  NameSources sources = one([](const NameQuery&, const Patience&) -> Found {
    NameAnswer answer;
    answer.pod_name = "p";
    return std::optional(answer);
  });
  sources.push_back(
      std::make_unique<Stub>([](const NameQuery&, const Patience&) -> Found { return std::optional(named("b")); }));
  Names names(std::move(sources));
  ASSERT_TRUE(soon([&] { return names.find(query_of(1)) != nullptr; }));
  EXPECT_EQ(names.find(query_of(1))->answer.pod_name, "p");
  EXPECT_EQ(names.find(query_of(1))->answer.container_name, "b");
}

TEST(Names, LongAnswersAreCut) {
  Names names(one([](const NameQuery&, const Patience&) -> Found {
    NameAnswer answer = named(std::string(100'000, 'x'));
    for (int i = 0; i < 1000; ++i) answer.labels.emplace_back("k" + std::to_string(i), std::string(5000, 'v'));
    return std::optional(answer);
  }));
  ASSERT_TRUE(soon([&] { return names.find(query_of(1)) != nullptr; }));
  const auto known = names.find(query_of(1));
  EXPECT_EQ(known->answer.container_name.size(), kNameBytesMax);
  EXPECT_EQ(known->labels.size(), kLabelsMax);
  EXPECT_EQ(known->labels[3].value.size(), kNameBytesMax);
}

TEST(Names, RemembersNoMoreThanItsLimit) {
  NamesLimits limits;
  limits.remembered = 8;
  Names names(one([](const NameQuery&, const Patience&) -> Found { return std::optional(named("n")); }), limits);
  for (int i = 0; i < 100; ++i) (void)names.find(query_of(i));
  EXPECT_EQ(names.counters().evicted, 92U);
}

std::uint64_t thread_cpu_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

long waits_of_this_thread() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

Blob cgroup_record(std::uint64_t id, const std::string& path) {
  gpuwatch_rec head = test::make_head(GPUWATCH_REC_CGROUP);
  head.cgroup_id = id;
  gpuwatch_rec_cgroup fixed{};
  fixed.version = 2;
  fixed.path_len = static_cast<__u32>(path.size());
  Blob payload;
  test::append_struct(payload, fixed);
  for (const char c : path) payload.push_back(static_cast<std::byte>(c));
  test::pad8(payload);
  return test::finish_record(head, payload);
}

// A docker that takes the connection and never says a word, and a lookup that
// would give it 30 s. The records' side must not wait at all: it never gives
// up the processor of its own accord, and no step needs 10 ms of it. Being
// pushed off by other programs is not counted: that is not our doing.
TEST(Names, AHangingSocketDelaysNothing) {
  test::SocketServer server([](int) { return false; });
  NameSources sources;
  sources.push_back(make_socket_source("docker", server.path()));
  NamesLimits limits;
  limits.lookup_ns = 30'000'000'000;
  limits.waiting = 64;
  const std::uint64_t began = base::monotonic_ns();
  {
    Names names(std::move(sources), limits);
    Attributor attributor;
    attributor.set_names(&names);
    std::vector<Blob> definitions;
    for (int i = 0; i < 500; ++i)
      definitions.push_back(cgroup_record(static_cast<std::uint64_t>(i), "/docker/" + id_of(i)));
    // The first question is under way before we measure.
    attributor.learn(model::parse_record(definitions[0]).value());
    ASSERT_TRUE(soon([&] { return server.accepted() == 1; }));

    std::uint64_t longest = 0;
    const long waits = waits_of_this_thread();
    for (int round = 0; round < 20; ++round) {
      for (int i = 0; i < 500; ++i) {
        const std::uint64_t before = thread_cpu_ns();
        if (round == 0) attributor.learn(model::parse_record(definitions[static_cast<std::size_t>(i)]).value());
        gpuwatch_rec head = test::make_head(GPUWATCH_REC_IOCTL);
        head.cgroup_id = static_cast<std::uint64_t>(i);
        const model::Actor actor = attributor.actor_of(head);
        longest = std::max(longest, thread_cpu_ns() - before);
        ASSERT_EQ(actor.container_id, id_of(i));
        ASSERT_TRUE(actor.container_name.empty());
      }
    }
    EXPECT_EQ(waits_of_this_thread(), waits) << "the records' side waited";
    EXPECT_LT(longest, 10'000'000U);
    EXPECT_GT(names.counters().queue_full, 400U);
    RecordProperty("longest_step_ns", std::to_string(longest));
    std::printf("longest step of 10,000: %llu ns of processor time, no wait\n",
                static_cast<unsigned long long>(longest));
  }
  // And the end does not wait for the lookup either.
  EXPECT_LT(base::monotonic_ns() - began, 25'000'000'000U);
}

TEST(Names, TheAttributorShowsWhatWasFound) {
  Names names(one([](const NameQuery& query, const Patience&) -> Found {
    NameAnswer answer = named("trainer");
    answer.pod_name = "pod of " + query.pod_uid;
    answer.labels = {{"team", "vision"}};
    return std::optional(answer);
  }));
  Attributor attributor;
  attributor.set_names(&names);
  const Blob record = cgroup_record(9, "/kubepods/burstable/pod11111111-2222-3333-4444-555555555555/" + id_of(1));
  attributor.learn(model::parse_record(record).value());
  gpuwatch_rec head = test::make_head(GPUWATCH_REC_IOCTL);
  head.cgroup_id = 9;
  ASSERT_TRUE(soon([&] { return !attributor.actor_of(head).container_name.empty(); }));
  const model::Actor actor = attributor.actor_of(head);
  EXPECT_EQ(actor.container_name, "trainer");
  EXPECT_EQ(actor.pod_name, "pod of 11111111-2222-3333-4444-555555555555");
  ASSERT_EQ(actor.labels.size(), 1U);
  EXPECT_EQ(actor.labels[0].value, "vision");
}

}  // namespace
}  // namespace gpuwatch::attribute
