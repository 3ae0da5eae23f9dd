// SPDX-License-Identifier: Apache-2.0
// Processes: what definition records tell, what /proc adds where there is none,
// and that neither a pid used again nor an exec mixes two of them up.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "attribute/process_lookup.h"
#include "attribute/process_table.h"
#include "attribute/user_names.h"
#include "base/io.h"
#include "unit/support.h"

namespace gpuwatch::attribute {
namespace {

using test::Blob;

struct Definition {
  std::uint32_t tgid = 100;
  std::uint64_t start_ns = 5;
  std::string path = "/usr/bin/app";
  std::uint32_t flags = 0;
  std::uint32_t exec_id = 1;
  std::vector<gpuwatch_ancestor> ancestors;
  std::vector<std::uint32_t> ns_pids;
  bool more = true;
};

Blob task(const Definition& from) {
  gpuwatch_rec head = test::make_head(GPUWATCH_REC_TASK);
  head.tgid = from.tgid;
  head.start_ns = from.start_ns;
  gpuwatch_rec_task fixed{};
  fixed.path_len = static_cast<__u32>(from.path.size());
  fixed.ns_tgid = from.ns_pids.empty() ? from.tgid : from.ns_pids.back();
  fixed.parent_tgid = 44;
  fixed.parent_start_ns = 4;
  Blob payload;
  test::append_struct(payload, fixed);
  for (const char c : from.path) payload.push_back(static_cast<std::byte>(c));
  test::pad8(payload);
  if (from.more) {
    gpuwatch_task_more more{};
    more.flags = from.flags;
    more.exec_id = from.exec_id;
    more.nr_ancestors = static_cast<__u16>(from.ancestors.size());
    more.nr_ns = static_cast<__u16>(from.ns_pids.size());
    test::append_struct(payload, more);
    for (const gpuwatch_ancestor& ancestor : from.ancestors) test::append_struct(payload, ancestor);
    for (const std::uint32_t pid : from.ns_pids) test::append_struct(payload, pid);
    test::pad8(payload);
  }
  return test::finish_record(head, payload);
}

gpuwatch_ancestor ancestor(std::uint32_t tgid, std::uint32_t ns_tgid, std::string_view comm) {
  gpuwatch_ancestor out{};
  out.tgid = tgid;
  out.ns_tgid = ns_tgid;
  out.start_ns = tgid * 10ULL;
  std::memcpy(out.comm, comm.data(), std::min(comm.size(), sizeof out.comm));
  return out;
}

gpuwatch_rec head_of(std::uint32_t tgid, std::uint64_t start_ns) {
  gpuwatch_rec head = test::make_head(GPUWATCH_REC_IOCTL);
  head.tgid = tgid;
  head.start_ns = start_ns;
  return head;
}

bool learn(ProcessTable& table, const Blob& blob) {
  return table.learn(model::parse_record(blob).value());
}

TEST(ProcessTable, ADefinitionTellsNamespacesAndAncestors) {
  ProcessTable table(16);
  Definition definition;
  definition.ns_pids = {100, 12, 2};
  definition.ancestors = {ancestor(90, 1, "sixteen-bytes-16")};
  definition.flags = GPUWATCH_TASK_EXE_MEMFD;
  definition.exec_id = 7;
  ASSERT_TRUE(learn(table, task(definition)));
  const model::Process* process = table.find(head_of(100, 5));
  ASSERT_NE(process, nullptr);
  EXPECT_EQ(process->ns_pids, (std::vector<std::uint32_t>{100, 12, 2}));
  EXPECT_EQ(process->ns_tgid, 2U);
  ASSERT_EQ(process->ancestors.size(), 1U);
  EXPECT_EQ(process->ancestors[0].comm, "sixteen-bytes-16");
  EXPECT_EQ(process->ancestors[0].start_ns, 900U);
  EXPECT_EQ(process->exe_state, model::ExeState::kMemfd);
  EXPECT_EQ(process->exec_id, 7U);
  EXPECT_EQ(process->source, model::ProcessSource::kRecord);
}

TEST(ProcessTable, OldRecordsTellTheParent) {
  ProcessTable table(16);
  Definition definition;
  definition.more = false;
  ASSERT_TRUE(learn(table, task(definition)));
  const model::Process* process = table.find(head_of(100, 5));
  ASSERT_EQ(process->ancestors.size(), 1U);
  EXPECT_EQ(process->ancestors[0].tgid, 44U);
  EXPECT_TRUE(process->ns_pids.empty());
}

// Every cut of a whole definition, and absurd counts.
TEST(ProcessTable, DamagedDefinitionsAreRefused) {
  Definition definition;
  definition.ns_pids = {100, 2};
  definition.ancestors = {ancestor(90, 1, "init"), ancestor(91, 1, "x")};
  const Blob whole = task(definition);
  const std::size_t start = whole.size() - sizeof(gpuwatch_task_more) - 2 * sizeof(gpuwatch_ancestor) - 8;
  for (std::size_t size = sizeof(gpuwatch_rec); size < whole.size(); size += 8) {
    Blob cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    const auto len = static_cast<__u32>(size);
    std::memcpy(cut.data(), &len, sizeof len);
    ProcessTable table(4);
    EXPECT_EQ(learn(table, cut), size == start) << size;
  }
  for (const std::size_t field : {offsetof(gpuwatch_task_more, nr_ancestors), offsetof(gpuwatch_task_more, nr_ns)}) {
    Blob absurd = whole;
    const std::uint16_t count = 0xffff;
    std::memcpy(absurd.data() + start + field, &count, sizeof count);
    ProcessTable table(4);
    EXPECT_FALSE(learn(table, absurd));
  }
}

TEST(ProcessTable, ExecAndReusedPidsStayApart) {
  ProcessTable table(16);
  Definition shell, app, other;
  shell.path = "/bin/sh";
  app.exec_id = 2;
  other.start_ns = 6;
  other.path = "/other";
  learn(table, task(shell));
  learn(table, task(app));
  learn(table, task(other));
  EXPECT_EQ(table.find(head_of(100, 5))->exe, "/usr/bin/app");
  EXPECT_EQ(table.find(head_of(100, 6))->exe, "/other");
  EXPECT_EQ(table.find(head_of(100, 7)), nullptr);
}

TEST(ProcessTable, BoundedAndCounted) {
  ProcessTable table(100);
  for (std::uint32_t pid = 1; pid <= 1000; ++pid) {
    Definition definition;
    definition.tgid = pid;
    learn(table, task(definition));
    EXPECT_NE(table.find(head_of(pid, 5)), nullptr);
  }
  EXPECT_EQ(table.find(head_of(1, 5)), nullptr);
  const ProcessCounters counters = table.counters();
  EXPECT_EQ(counters.known, 100U);
  EXPECT_EQ(counters.evictions, 900U);
  EXPECT_EQ(counters.hits, 1000U);
  EXPECT_EQ(counters.misses, 1U);
  EXPECT_EQ(counters.proc_reads, 0U);
}

TEST(ProcessTable, CapabilityNodesStayWithTheProcess) {
  ProcessTable table(16);
  gpuwatch_rec head = head_of(100, 5);
  head.node_kind = GPUWATCH_NODE_CAPS;
  head.rdev = (234u << 20) | 30;
  table.learn_open(model::parse_record(test::open_record(head)).value());
  head.rdev = (234u << 20) | 31;
  table.learn_open(model::parse_record(test::open_record(head)).value());
  head.rdev = (234u << 20) | 32;
  table.learn_open(model::parse_record(test::open_record(head, -13)).value());
  learn(table, task({}));
  EXPECT_EQ(table.find(head_of(100, 5))->cap_minors, (std::array<std::int32_t, 2>{30, 31}));
}

// A child that only waits, with a start time as its records would have it.
class Child {
 public:
  Child() {
    pid_ = ::fork();
    if (pid_ == 0) {
      for (;;) ::pause();
    }
    const std::string stat = *base::read_text_file("/proc/" + std::to_string(pid_) + "/stat");
    std::size_t at = stat.rfind(')');
    for (int field = 2; field < 22; ++field) at = stat.find(' ', at + 1);
    start_ns_ = std::strtoull(stat.c_str() + at, nullptr, 10) * 10'000'000 + 1234;
  }
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  void end() {
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  std::uint32_t pid() const { return static_cast<std::uint32_t>(pid_); }
  std::uint64_t start_ns() const { return start_ns_; }

 private:
  pid_t pid_ = 0;
  std::uint64_t start_ns_ = 0;
};

TEST(ProcessLookup, ReadsALivingProcess) {
  Child child;
  const auto process = read_process(child.pid(), child.start_ns());
  ASSERT_TRUE(process.has_value());
  struct stat self {};
  ASSERT_EQ(::stat("/proc/self/exe", &self), 0);
  EXPECT_EQ(process->exe, std::filesystem::read_symlink("/proc/self/exe").string());
  EXPECT_EQ(process->exe_ino, self.st_ino);
  EXPECT_EQ(process->source, model::ProcessSource::kProc);
  ASSERT_FALSE(process->ns_pids.empty());
  ASSERT_FALSE(process->ancestors.empty());
  EXPECT_EQ(process->ancestors[0].tgid, static_cast<std::uint32_t>(::getpid()));
}

TEST(ProcessLookup, AnotherStartTimeIsAnotherProcess) {
  Child child;
  EXPECT_FALSE(read_process(child.pid(), child.start_ns() + 20'000'000).has_value());
  const std::uint32_t pid = child.pid();
  const std::uint64_t start = child.start_ns();
  child.end();
  EXPECT_FALSE(read_process(pid, start).has_value());
}

TEST(ProcessLookup, HostileProcFiles) {
  test::ScratchDir dir;
  const std::string proc = dir.file("proc");
  std::filesystem::create_directories(proc + "/7");
  EXPECT_FALSE(read_process(7, 0, proc).has_value());
  for (const std::string& text : {std::string("7"), std::string("7 (a"), std::string(") ("), std::string(8192, ')'),
                                  std::string("7 (a) S 1"), std::string(9000, ' ')}) {
    test::spill(proc + "/7/stat", text);
    EXPECT_FALSE(read_process(7, 0, proc).has_value()) << text.substr(0, 20);
  }
  // The name holds what looks like the end of it.
  test::spill(proc + "/7/stat", "7 (a) S 99 (b) R 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 42 0\n");
  test::spill(proc + "/7/status", "Name:\tx\nNSpid:\t7\t3\tq\n");
  const auto process = read_process(7, 420'000'000, proc);
  ASSERT_TRUE(process.has_value());
  EXPECT_EQ(process->ns_pids, (std::vector<std::uint32_t>{7, 3}));
}

// Each unknown process is read once, whatever the number of its calls; none is
// when definitions are there.
TEST(ProcessTable, AsksProcOncePerProcess) {
  Child child;
  ProcessTable table(16);
  table.go_live();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  const model::Process* process = nullptr;
  do {
    process = table.find(head_of(child.pid(), child.start_ns()));
    ASSERT_NE(process, nullptr);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  } while (process->source == model::ProcessSource::kNone && std::chrono::steady_clock::now() < deadline);
  EXPECT_EQ(process->source, model::ProcessSource::kProc);
  EXPECT_EQ(table.counters().proc_reads, 1U);
  // Gone before we look: nothing but the name of it, and nobody else's facts.
  for (int i = 0; i < 200; ++i) {
    process = table.find(head_of(child.pid(), child.start_ns() + 50'000'000));
    EXPECT_TRUE(process->exe.empty());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(table.counters().proc_reads, 2U);
  EXPECT_EQ(table.counters().proc_gone, 1U);
  learn(table, task({}));
  for (int i = 0; i < 10; ++i) EXPECT_NE(table.find(head_of(100, 5)), nullptr);
  EXPECT_EQ(table.counters().proc_reads, 2U);
}

TEST(UserNames, ReadsThePasswordFileOnce) {
  test::ScratchDir dir;
  test::spill(dir.file("passwd"),
              "root:x:0:0::/:/bin/sh\nbroken\nbad:x:12a:\nann:x:1000:1000::/:\nbob:x:1000:1::/:\n:x:\n");
  UserNames names(dir.file("passwd"));
  EXPECT_EQ(names.name(1000), "ann");
  EXPECT_EQ(names.name(0), "root");
  EXPECT_EQ(names.name(12), "");
  for (std::uint32_t uid = 2000; uid < 2100; ++uid) EXPECT_EQ(names.name(uid), "");
  EXPECT_EQ(names.reads(), 1U);
}

}  // namespace
}  // namespace gpuwatch::attribute
