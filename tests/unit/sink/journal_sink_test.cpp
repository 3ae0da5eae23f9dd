// SPDX-License-Identifier: Apache-2.0
// Entries reach a journal's socket with all their fields, over the real library:
// in a mount namespace of its own with a socket where journald has its. And the
// page of entries is that of the table.
#include "sink/journal_sink.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <set>

#include "base/fd.h"
#include "unit/sink/items.h"
#include "unit/support.h"

namespace gpuwatch::sink {
namespace {

enum : int { kFine = 0, kNoNamespace = 77 };

#define REQUIRE(what)                                  \
  if (!(what)) {                                       \
    std::fprintf(stderr, "not true: %s\n", #what);     \
    std::fprintf(stderr, "entry: %s\n", entry.data()); \
    return 1;                                          \
  }

// Runs in a child, in namespaces of its own.
int send_and_check() {
  std::string entry;
  if (::unshare(CLONE_NEWNS | (::geteuid() == 0 ? 0 : CLONE_NEWUSER)) != 0) return kNoNamespace;
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("none", "/run", "tmpfs", 0, nullptr) != 0)
    return kNoNamespace;
  REQUIRE(!JournalSink::open({}).ok());  // nobody listens
  ::mkdir("/run/systemd", 0755);
  ::mkdir("/run/systemd/journal", 0755);
  const base::Fd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, "/run/systemd/journal/socket");
  REQUIRE(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);

  auto sink = JournalSink::open({});
  REQUIRE(sink.ok());
  auto item = std::make_shared<Item>();
  item->kind = ItemKind::kAlert;
  item->severity = Severity::kError;
  item->text = "two\nPRIORITY=0";  // a value cannot become a field
  item->json = "{\"type\":\"alert\"}";
  item->event = "module.load";
  item->rule = "unknown-code";
  item->attack = "T1496";
  item->gpu_minor = 0;
  item->pid = 4711;
  REQUIRE((*sink)->wants(*item));
  REQUIRE(!(*sink)->wants(Item{}));
  const std::vector<ItemPtr> items = {item};
  REQUIRE((*sink)->write(items).sent == Outcome::kAll);
  entry.resize(65536);
  const ssize_t n = ::recv(fd.get(), entry.data(), entry.size(), MSG_DONTWAIT);
  REQUIRE(n > 0);
  entry.resize(static_cast<std::size_t>(n));
  const auto has = [&](const std::string& field) {
    return ("\n" + entry).find("\n" + field + "\n") != std::string::npos;
  };
  REQUIRE(has("MESSAGE_ID=" + std::string(message_info(MessageId::kAlertMessage).id)));
  REQUIRE(has("PRIORITY=3"));
  REQUIRE(has("GPUWATCH_KIND=alert"));
  REQUIRE(has("GPUWATCH_EVENT=module.load"));
  REQUIRE(has("GPUWATCH_RULE=unknown-code"));
  REQUIRE(has("GPUWATCH_ATTACK=T1496"));
  REQUIRE(has("GPUWATCH_GPU=0"));
  REQUIRE(has("GPUWATCH_PID=4711"));
  REQUIRE(has("GPUWATCH_JSON={\"type\":\"alert\"}"));
  REQUIRE(entry.find("GPUWATCH_VERDICT") == std::string::npos);
  REQUIRE(entry.find("CODE_FILE") == std::string::npos);
  // Text of several lines goes with its length, so it holds no field of its own.
  const std::string length("\x0e\0\0\0\0\0\0\0", 8);
  REQUIRE(entry.find("MESSAGE\n" + length + "two\nPRIORITY=0\n") != std::string::npos);
  REQUIRE(journal_note(MessageId::kSinkFailing, 4, "output x fails", "x").ok());
  entry.assign(65536, '\0');
  const ssize_t note = ::recv(fd.get(), entry.data(), entry.size(), MSG_DONTWAIT);
  REQUIRE(note > 0);
  entry.resize(static_cast<std::size_t>(note));
  REQUIRE(has("MESSAGE_ID=" + std::string(message_info(MessageId::kSinkFailing).id)));
  REQUIRE(has("MESSAGE=output x fails") && has("PRIORITY=4") && has("GPUWATCH_SINK=x"));
  ::unlink(address.sun_path);
  REQUIRE(!journal_note(MessageId::kDaemonStopped, 6, "nobody listens").ok());
  const Outcome gone = (*sink)->write(items);
  REQUIRE(gone.retry && gone.error.has_value());
  return kFine;
}

TEST(JournalSink, EntryOnTheWire) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(send_and_check());
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoNamespace) GTEST_SKIP() << "mount namespaces are not allowed here";
  EXPECT_EQ(WEXITSTATUS(status), kFine);
}

TEST(JournalSink, Priorities) {
  EXPECT_EQ(priority_of(Severity::kInfo), 6);
  EXPECT_EQ(priority_of(Severity::kNotice), 5);
  EXPECT_EQ(priority_of(Severity::kWarning), 4);
  EXPECT_EQ(priority_of(Severity::kError), 3);
  EXPECT_EQ(priority_of(Severity::kCritical), 2);
}

TEST(JournalPage, IsThatOfTheTable) {
  std::set<std::string_view> ids;
  for (std::size_t i = 0; i < static_cast<std::size_t>(MessageId::kCount); ++i) {
    const MessageInfo& info = message_info(static_cast<MessageId>(i));
    EXPECT_EQ(info.id.size(), 32U);
    EXPECT_EQ(info.id.find_first_not_of("0123456789abcdef"), std::string_view::npos);
    EXPECT_TRUE(ids.insert(info.id).second) << info.name;
  }
  const std::string path = std::string(USERSPACE_DIR) + "/sink/JOURNAL.md";
  if (std::getenv("GPUWATCH_REGEN") != nullptr) gpuwatch::test::spill(path, journal_page());
  EXPECT_EQ(gpuwatch::test::slurp(path), journal_page())
      << "make it again: GPUWATCH_REGEN=1 unit-sink --gtest_filter='JournalPage.*'";
  // Every field that the sink writes is on the page.
  const std::string source = gpuwatch::test::slurp(std::string(USERSPACE_DIR) + "/sink/journal_sink.cpp");
  std::size_t fields = 0;
  for (std::size_t at = source.find("entry.add(\""); at != std::string::npos;
       at = source.find("entry.add(\"", at + 1)) {
    const std::string name = source.substr(at + 11, source.find('"', at + 11) - at - 11);
    EXPECT_NE(journal_page().find("`" + name + "`"), std::string::npos) << name;
    ++fields;
  }
  EXPECT_GT(fields, 15U);
}

}  // namespace
}  // namespace gpuwatch::sink
