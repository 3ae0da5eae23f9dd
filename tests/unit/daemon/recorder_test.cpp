// SPDX-License-Identifier: Apache-2.0
// Unit tests of the flight recorder: the newest records within the bound, with
// the definitions of earlier ones, as a recording that can be read.
#include "daemon/recorder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "source/gwcap.h"
#include "unit/support.h"

namespace gpuwatch::daemon {
namespace {

using test::Blob;

void feed(Intake& intake, Recorder& recorder, const Blob& blob) {
  intake.push({*model::parse_record(blob)});
  Intake::Batch batch;
  intake.pop(batch, 100, std::chrono::milliseconds(0));
  recorder.add(batch);
}

std::vector<model::RawRecord> read(const std::string& path, std::vector<std::string>& kept) {
  auto reader = source::GwcapReader::open(path);
  EXPECT_TRUE(reader.ok());
  std::vector<model::RawRecord> all;
  for (;;) {
    auto record = reader->next();
    EXPECT_TRUE(record.ok());
    if (!record.ok() || !*record) return all;
    all.push_back(**record);
    kept.emplace_back();
  }
}

TEST(Recorder, KeepsTheNewestAndTheirDefinitions) {
  const std::string path = ::testing::TempDir() + "dump-" + std::to_string(::getpid()) + ".gwcap";
  Intake intake(64 << 20);
  Recorder recorder(1 << 20);
  gpuwatch_rec head = test::make_head(GPUWATCH_REC_TASK);
  head.tgid = 4711;
  gpuwatch_rec_task task{};
  Blob payload;
  test::append_struct(payload, task);
  feed(intake, recorder, test::finish_record(head, payload));
  head = test::make_head(GPUWATCH_REC_RELEASE);
  for (std::uint64_t i = 0; i < 5000; ++i) {
    head.seq = i;
    feed(intake, recorder, test::finish_record(head, Blob(1000)));
  }
  EXPECT_LE(recorder.bytes(), 1u << 20);
  source::GwcapHeader header;
  header.source = "kmod";
  auto dump = recorder.dump(path, header);
  ASSERT_TRUE(dump.ok()) << dump.error().message();
  std::vector<std::string> kept;
  const auto records = read(path, kept);
  EXPECT_EQ(records.size(), dump->records);
  ASSERT_GT(records.size(), 500u);
  EXPECT_LT(records.size(), 1200u);
  EXPECT_EQ(records.front().head.type, GPUWATCH_REC_TASK);
  EXPECT_EQ(records.front().head.tgid, 4711u);
  for (std::size_t i = 1; i < records.size(); ++i)
    EXPECT_EQ(records[i].head.seq, 5000 - (records.size() - i)) << "without holes, to the newest";
  EXPECT_FALSE(recorder.dump("/no/such/directory/x.gwcap", header).ok());
  recorder.set_limit(0);
  EXPECT_EQ(recorder.bytes(), 0u);
  EXPECT_FALSE(recorder.dump(path, header).ok());
  ::unlink(path.c_str());
}

TEST(Recorder, OldDumpsGo) {
  const std::string directory = ::testing::TempDir() + "dumps-" + std::to_string(::getpid());
  ::mkdir(directory.c_str(), 0700);
  for (int i = 0; i < 5; ++i) {
    const std::string path = directory + "/" + std::to_string(i) + ".gwcap";
    std::ofstream(path) << "x";
    const timespec times[2] = {{1000 + i, 0}, {1000 + i, 0}};
    ::utimensat(AT_FDCWD, path.c_str(), times, 0);
  }
  std::ofstream(directory + "/other.txt") << "x";
  keep_newest(directory, 2);
  EXPECT_NE(::access((directory + "/2.gwcap").c_str(), F_OK), 0);
  for (const char* name : {"/3.gwcap", "/4.gwcap", "/other.txt"}) {
    EXPECT_EQ(::access((directory + name).c_str(), F_OK), 0) << name;
    ::unlink((directory + name).c_str());
  }
  ::rmdir(directory.c_str());
}

}  // namespace
}  // namespace gpuwatch::daemon
