// SPDX-License-Identifier: Apache-2.0
#include "judge/baseline.h"

#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "judge/exchange.h"
#include "make.h"

namespace gpuwatch::judge {
namespace {

using base::Code;

std::string error_of(const base::Result<Baseline>& result) {
  return result.ok() ? "no error" : result.error().message();
}

TEST_F(WithBaselines, StoresAndFinds) {
  const Entry one = entry(cubin("one", {kernel("_Z1av", "a"), kernel("_Z1bv", "b"), kernel("helper", "h", false)}));
  const Entry two = entry(ptx("two"));
  { make("x", {one, two}); }
  auto baseline = Baseline::open(file("x"), Baseline::Access::kRead);
  ASSERT_TRUE(baseline.ok()) << error_of(baseline);
  EXPECT_EQ(baseline->info(), (BaselineInfo{Stance::kKnown, "x", 1700000000}));
  EXPECT_EQ(**baseline->by_r(one.module.r), one);
  EXPECT_EQ(**baseline->by_m(*one.module.m), one);
  EXPECT_EQ(**baseline->by_p(*two.module.p), two);
  EXPECT_FALSE(baseline->by_r(digest("none"))->has_value());
  EXPECT_TRUE(*baseline->has_k(digest("kh")));
  EXPECT_FALSE(*baseline->has_k(digest("kz")));
  auto places = baseline->by_name("_Z1bv", 90);
  ASSERT_EQ(places->size(), 1u);
  EXPECT_EQ(places->front().kernel, one.module.kernels[1]);
  EXPECT_TRUE(baseline->by_name("_Z1bv", 80)->empty()) << "another SM";
  EXPECT_EQ(*baseline->names_of(places->front().module), (std::vector<std::string>{"_Z1av", "_Z1bv"}));
  EXPECT_EQ(baseline->counts()->modules, 2u);
  EXPECT_EQ(baseline->counts()->kernels, 3u);
  EXPECT_TRUE(baseline->check_pages().ok());
}

TEST_F(WithBaselines, AddingAgainAddsSourcesOnly) {
  const auto module = cubin("one", {kernel("a", "a")});
  Baseline baseline = make("x", {entry(module, "/a.so")});
  const Entry again[] = {entry(module, "/b.so"), entry(module, "/a.so")};
  EXPECT_EQ(*baseline.add(again), 0u);
  const Entry stored = **baseline.by_r(module.r);
  ASSERT_EQ(stored.sources.size(), 2u);
  EXPECT_EQ(stored.sources[1].path, "/b.so");
  EXPECT_EQ(baseline.counts()->kernels, 1u);
}

TEST_F(WithBaselines, NamesOfAnyBytes) {
  const std::string odd("nul\0 quote' \xff", 12);
  const Entry one = entry(cubin("one", {kernel(odd, "a")}), odd);
  Baseline baseline = make("x", {one});
  EXPECT_EQ(**baseline.by_r(one.module.r), one);
  EXPECT_EQ(baseline.by_name(odd, 90)->size(), 1u);
}

TEST_F(WithBaselines, StanceIsKept) {
  make("x", {}, Stance::kDenied);
  const auto mixed = Baseline::open_or_make(file("x"), {Stance::kKnown, "x", 0});
  ASSERT_FALSE(mixed.ok());
  EXPECT_NE(mixed.error().message().find("keep known ones in a file of their own"), std::string::npos);
}

TEST_F(WithBaselines, ForeignFilesAreRefused) {
  struct Case {
    const char* name;
    std::string bytes;
    const char* expect;
  };
  const Case cases[] = {{"text", "this is no database, and long enough to be told from an empty one", "not a baseline"},
                        {"empty", "", "database of another program"}};
  for (const Case& c : cases) {
    std::ofstream(file(c.name), std::ios::binary) << c.bytes;
    const auto opened = Baseline::open(file(c.name), Baseline::Access::kRead);
    ASSERT_FALSE(opened.ok()) << c.name;
    EXPECT_NE(opened.error().message().find(c.expect), std::string::npos) << opened.error().message();
  }
  EXPECT_EQ(Baseline::open(file("absent"), Baseline::Access::kRead).error().code(), Code::kNotFound);
  EXPECT_EQ(Baseline::open(directory_, Baseline::Access::kRead).error().code(), Code::kBadInput);
}

void change(const std::string& path, const char* sql) {
  sqlite3* handle = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &handle), SQLITE_OK);
  char* message = nullptr;
  EXPECT_EQ(sqlite3_exec(handle, sql, nullptr, nullptr, &message), SQLITE_OK) << message;
  sqlite3_close(handle);
}

TEST_F(WithBaselines, OtherSchemasAreRefused) {
  struct Case {
    const char* sql;
    const char* expect;
  };
  const Case cases[] = {
      {"PRAGMA user_version = 3", "baseline of schema 3, this program reads schema 2; export it"},
      {"PRAGMA user_version = 1", "tables that are not a baseline's"},
      {"DROP INDEX resident_form", "tables of a baseline are missing"},
      {"PRAGMA user_version = 0", "baseline of schema 0"},
      {"PRAGMA application_id = 7", "database of another program"},
      {"CREATE TRIGGER t AFTER INSERT ON module BEGIN DELETE FROM module; END", "tables that are not a baseline's"},
      {"CREATE TABLE extra(x)", "tables that are not a baseline's"},
      {"DROP INDEX kernel_k", "tables of a baseline are missing"},
      {"DROP TABLE module; CREATE VIEW module AS SELECT 1 AS r", "not a baseline's"},
  };
  int n = 0;
  for (const Case& c : cases) {
    const std::string name = "x" + std::to_string(n++);
    make(name, {entry(cubin("one", {kernel("a", "a")}))});
    change(file(name), c.sql);
    for (const auto access : {Baseline::Access::kRead, Baseline::Access::kWrite}) {
      const auto opened = Baseline::open(file(name), access);
      ASSERT_FALSE(opened.ok()) << c.sql;
      EXPECT_NE(opened.error().message().find(c.expect), std::string::npos) << opened.error().message();
    }
  }
}

// A file of the schema before residents: read as it is, and brought up by who writes.
TEST_F(WithBaselines, OldSchemaIsReadAndUpgradedByWriting) {
  const Entry known = entry(ptx("p"));
  model::Digest contents;
  {
    Baseline baseline = make("x", {known, entry(cubin("one", {kernel("a", "a")}))});
    contents = *contents_digest(baseline);
  }
  change(file("x"), "DROP TABLE resident; PRAGMA user_version = 1");
  {
    auto old = Baseline::open(file("x"), Baseline::Access::kRead);
    ASSERT_TRUE(old.ok()) << old.error().message();
    EXPECT_EQ(*contents_digest(*old), contents) << "a signature stays good";
    EXPECT_EQ(old->counts()->residents, 0u);
    EXPECT_TRUE(old->residents_of_form(digest("f"), 90)->empty());
    EXPECT_TRUE(old->residents_of_name("a", 90)->empty());
    EXPECT_TRUE(*old->has_k(kernel("a", "a").k));
  }
  auto fresh = Baseline::open(file("x"), Baseline::Access::kWrite);
  ASSERT_TRUE(fresh.ok()) << fresh.error().message();
  EXPECT_EQ(*contents_digest(*fresh), contents);
  ASSERT_TRUE(fresh->add(std::vector{with_resident(known, "580.1", "code")}).ok());
  EXPECT_EQ(fresh->counts()->residents, 1u);
}

TEST_F(WithBaselines, ResidentsAreOfAFormAnSmAndADriver) {
  Baseline baseline = make("x", {with_resident(entry(ptx("p")), "580.1", "code")});
  // Again: nothing is doubled; another driver's and another form's come beside.
  ASSERT_TRUE(baseline.add(std::vector{with_resident(entry(ptx("p")), "580.1", "code")}).ok());
  ASSERT_TRUE(baseline.add(std::vector{with_resident(entry(ptx("p")), "590.2", "code")}).ok());
  ASSERT_TRUE(baseline.add(std::vector{with_resident(entry(ptx("p")), "590.2", "other")}).ok());
  EXPECT_EQ(baseline.counts()->residents, 3u);
  EXPECT_EQ(baseline.counts()->modules, 1u);
  const auto places = *baseline.residents_of_form(digest("fcode"), 90);
  ASSERT_EQ(places.size(), 2u);
  EXPECT_EQ(places[0].form, digest("fcode"));
  EXPECT_TRUE(baseline.residents_of_form(digest("fcode"), 86)->empty());
  EXPECT_EQ(baseline.residents_of_name("f", 90)->size(), 3u);
  EXPECT_TRUE(baseline.residents_of_name("g", 90)->empty());
  const auto found = *baseline.by_r(ptx("p").r);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->residents.size(), 3u);
  EXPECT_EQ(found->residents[0], with_resident(entry(ptx("p")), "580.1", "code").residents[0]);
}

// What the driver makes of PTX has a K, and a cubin with it is as known.
TEST_F(WithBaselines, KernelsThatADriverCompiledHaveAPlace) {
  Baseline baseline = make("x", {with_resident(entry(ptx("p")), "580.1", "code")});
  EXPECT_TRUE(*baseline.has_k(digest("kcode")));
  EXPECT_FALSE(*baseline.has_k(digest("kother")));
  const auto place = *baseline.place_of_k(digest("kcode"));
  ASSERT_TRUE(place);
  EXPECT_EQ(place->kernel.name, "f");
  EXPECT_EQ(place->sm, 90u);
}

TEST_F(WithBaselines, ImpossibleValuesAreDamageNotCrashes) {
  const char* changes[] = {"UPDATE module SET r = x'00'",
                           "UPDATE module SET kind = 99",
                           "UPDATE module SET origin = -1",
                           "UPDATE kernel SET k = 'text'",
                           "UPDATE kernel SET t = zeroblob(1000000)",
                           "INSERT INTO resident VALUES(1, 1, '580.1', 90, x'00', 1, NULL, NULL)"};
  int n = 0;
  for (const char* sql : changes) {
    const std::string name = "x" + std::to_string(n++);
    make(name, {entry(cubin("one", {kernel("a", "a")}))});
    change(file(name), sql);
    auto baseline = Baseline::open(file(name), Baseline::Access::kRead);
    ASSERT_TRUE(baseline.ok()) << error_of(baseline);
    const base::Status status = baseline->for_each([](const Entry&) { return base::Status(); });
    ASSERT_FALSE(status.ok()) << sql;
    EXPECT_NE(status.error().message().find("the file is damaged"), std::string::npos) << status.error().message();
  }
}

// Every page of the file overwritten once, and the file cut everywhere: what
// is opened and read gives an error or entries, never a crash.
TEST_F(WithBaselines, DamagedPagesAndCuts) {
  {
    std::vector<Entry> entries;
    for (int i = 0; i < 60; ++i)
      entries.push_back(entry(cubin(std::to_string(i), {kernel("kernel" + std::to_string(i), std::to_string(i))})));
    Baseline baseline = make("x", entries);
  }
  std::ifstream in(file("x"), std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(in)), {});
  ASSERT_GT(good.size(), 8192u);
  std::size_t errors = 0;
  const auto try_bytes = [&](const std::string& bytes) {
    std::filesystem::remove(file("y-wal"));
    std::filesystem::remove(file("y-shm"));
    std::ofstream(file("y"), std::ios::binary | std::ios::trunc) << bytes;
    auto baseline = Baseline::open(file("y"), Baseline::Access::kRead);
    bool failed = !baseline.ok();
    if (!failed) failed |= !baseline->for_each([](const Entry&) { return base::Status(); }).ok();
    if (!failed) failed |= !baseline->check_pages().ok();
    errors += failed;
  };
  for (std::size_t at = 0; at < good.size(); at += 4096) {
    std::string bad = good;
    for (std::size_t i = at; i < std::min(at + 4096, bad.size()); ++i) bad[i] = static_cast<char>(i * 31 + at);
    try_bytes(bad);
    try_bytes(good.substr(0, at + 100));
  }
  EXPECT_GE(errors, 2 * good.size() / 4096 - 2);
  try_bytes(good);
  EXPECT_LE(errors, 2 * (good.size() / 4096 + 1));
}

TEST_F(WithBaselines, ReadableWhileWritten) {
  make("x", {entry(cubin("zero", {kernel("a", "a")}))});
  const pid_t pid = fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    auto writer = Baseline::open(file("x"), Baseline::Access::kWrite);
    bool ok = writer.ok();
    for (int i = 0; ok && i < 200; ++i) {
      const Entry one[] = {entry(cubin(std::to_string(i), {kernel("k" + std::to_string(i), std::to_string(i))}))};
      ok = writer->add(one).ok();
    }
    _exit(ok ? 0 : 1);
  }
  // A reader sees whole transactions: as many kernels as modules, and no error.
  std::uint64_t last = 0;
  int status = 0;
  auto reader = Baseline::open(file("x"), Baseline::Access::kRead);
  ASSERT_TRUE(reader.ok()) << error_of(reader);
  while (waitpid(pid, &status, WNOHANG) == 0) {
    auto counts = reader->counts();
    ASSERT_TRUE(counts.ok()) << counts.error().message();
    ASSERT_GE(counts->modules, last);
    last = counts->modules;
  }
  EXPECT_EQ(status, 0);
  EXPECT_EQ(reader->counts()->modules, 201u);
}

TEST_F(WithBaselines, TwoWritersTakeTurns) {
  make("x", {});
  pid_t pids[3];
  for (int n = 0; n < 3; ++n) {
    pids[n] = fork();
    ASSERT_GE(pids[n], 0);
    if (pids[n] != 0) continue;
    auto writer = Baseline::open_or_make(file("x"), {Stance::kKnown, "x", 0});
    bool ok = writer.ok();
    for (int i = 0; ok && i < 50; ++i) {
      const std::string name = std::to_string(n) + "/" + std::to_string(i);
      const Entry one[] = {entry(cubin(name, {kernel(name, name)}))};
      ok = writer->add(one).ok();
    }
    _exit(ok ? 0 : 1);
  }
  for (const pid_t pid : pids) {
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }
  auto reader = Baseline::open(file("x"), Baseline::Access::kRead);
  EXPECT_EQ(reader->counts()->modules, 150u);
}

TEST_F(WithBaselines, MadeByTwoAtOnce) {
  pid_t pids[4];
  for (pid_t& pid : pids) {
    pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) _exit(Baseline::open_or_make(file("new"), {Stance::kKnown, "x", 0}).ok() ? 0 : 1);
  }
  for (const pid_t pid : pids) {
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }
}

TEST_F(WithBaselines, ReadOnlyDirectory) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  make("x", {entry(cubin("one", {kernel("a", "a")}))});
  std::filesystem::permissions(directory_, std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  auto baseline = Baseline::open(file("x"), Baseline::Access::kRead);
  ASSERT_TRUE(baseline.ok()) << error_of(baseline);
  EXPECT_EQ(baseline->counts()->modules, 1u);
}

}  // namespace
}  // namespace gpuwatch::judge
