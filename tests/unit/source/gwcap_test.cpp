// SPDX-License-Identifier: Apache-2.0
// Unit tests of .gwcap files in good order: round trips, block borders,
// flushing, overwriting, full disks.
#include "source/gwcap.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>

#include "unit/support.h"

namespace gpuwatch::source {
namespace {

using test::Blob;

GwcapHeader sample_header() {
  GwcapHeader header;
  header.source = "synth";
  header.kernel_release = "6.1.0";
  header.driver_version = "550.54.15";
  header.gpus = {{0, "0000:41:00.0", "NVIDIA H200", "GPU-01234567-89ab-cdef-0123-456789abcdef"}};
  header.realtime_minus_monotonic_ns = 1'700'000'000'123'456'789;
  header.boottime_minus_monotonic_ns = -5;
  header.started_realtime_ns = 42;
  return header;
}

Blob sample(std::uint64_t i) {
  return test::ioctl_record(
      test::make_head(GPUWATCH_REC_IOCTL, 1000 + i), 0xc0304627u + static_cast<std::uint32_t>(i % 5), 0,
      {{GPUWATCH_CAP_ARG_IN, std::string(i % 60, 'a')}, {GPUWATCH_CAP_ARG_OUT, std::string(i % 300, 'b')}});
}

TEST(Gwcap, RoundTripOverManyBlocks) {
  test::ScratchDir dir;
  GwcapOptions options;
  options.block_bytes = 4096;
  auto writer = GwcapWriter::create(dir.file("a.gwcap"), sample_header(), options);
  ASSERT_TRUE(writer.ok());
  for (std::uint64_t i = 0; i < 3000; ++i) ASSERT_TRUE(writer->append(sample(i)).ok());
  GwcapFooter footer;
  footer.lost.by_reason[GPUWATCH_LOSS_RING_FULL] = 9;
  footer.notes = {"one child is static"};
  ASSERT_TRUE(writer->finish(footer).ok());
  EXPECT_EQ(writer->records(), 3000u);

  auto reader = GwcapReader::open(dir.file("a.gwcap"));
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(reader->header(), sample_header());
  for (std::uint64_t i = 0; i < 3000; ++i) {
    auto record = reader->next();
    ASSERT_TRUE(record.ok());
    ASSERT_TRUE(record->has_value());
    const Blob want = sample(i);
    ASSERT_EQ((*record)->head.time_ns, 1000 + i);
    ASSERT_EQ((*record)->payload.size(), want.size() - sizeof(gpuwatch_rec));
    ASSERT_EQ(std::memcmp((*record)->payload.data(), want.data() + sizeof(gpuwatch_rec), (*record)->payload.size()), 0);
  }
  for (int again = 0; again < 2; ++again) {
    auto end = reader->next();
    ASSERT_TRUE(end.ok());
    EXPECT_FALSE(end->has_value());
  }
  ASSERT_TRUE(reader->footer());
  EXPECT_EQ(reader->footer()->records, 3000u);
  EXPECT_EQ(reader->footer()->lost.total(), 9u);
  EXPECT_EQ(reader->footer()->notes, footer.notes);
  EXPECT_TRUE(reader->footer()->clean_end);
}

TEST(Gwcap, BlocksGiveTheSameAsRecords) {
  test::ScratchDir dir;
  GwcapOptions options;
  options.block_bytes = 5000;
  auto writer = GwcapWriter::create(dir.file("a"), sample_header(), options);
  for (std::uint64_t i = 0; i < 500; ++i) ASSERT_TRUE(writer->append(sample(i)).ok());
  ASSERT_TRUE(writer->finish({}).ok());
  auto reader = GwcapReader::open(dir.file("a"));
  std::vector<model::RawRecord> block;
  std::uint64_t seen = 0;
  do {
    ASSERT_TRUE(reader->next_batch(block).ok());
    for (const auto& record : block) EXPECT_EQ(record.head.time_ns, 1000 + seen++);
  } while (!block.empty());
  EXPECT_EQ(seen, 500u);
  EXPECT_TRUE(reader->footer());
}

TEST(Gwcap, LargestRecordFits) {
  test::ScratchDir dir;
  GwcapOptions options;
  options.block_bytes = 4096;
  auto writer = GwcapWriter::create(dir.file("a"), sample_header(), options);
  const Blob big =
      test::finish_record(test::make_head(GPUWATCH_REC_IOCTL), Blob(GPUWATCH_REC_MAX - sizeof(gpuwatch_rec)));
  ASSERT_TRUE(writer->append(sample(1)).ok());
  ASSERT_TRUE(writer->append(big).ok());
  ASSERT_TRUE(writer->append(sample(2)).ok());
  ASSERT_TRUE(writer->finish({}).ok());
  auto reader = GwcapReader::open(dir.file("a"));
  ASSERT_TRUE(reader->next().ok());
  auto record = reader->next();
  ASSERT_TRUE(record.ok() && record->has_value());
  EXPECT_EQ((*record)->head.len, static_cast<unsigned>(GPUWATCH_REC_MAX));
}

TEST(Gwcap, EmptyRecordingIsWhole) {
  test::ScratchDir dir;
  auto writer = GwcapWriter::create(dir.file("a"), sample_header());
  ASSERT_TRUE(writer->finish({}).ok());
  auto reader = GwcapReader::open(dir.file("a"));
  ASSERT_TRUE(reader.ok());
  auto end = reader->next();
  ASSERT_TRUE(end.ok());
  EXPECT_FALSE(end->has_value());
  EXPECT_TRUE(reader->footer());
}

TEST(Gwcap, BadRecordsAreNotWritten) {
  test::ScratchDir dir;
  auto writer = GwcapWriter::create(dir.file("a"), sample_header());
  Blob record = sample(3);
  record.push_back(std::byte{0});
  EXPECT_FALSE(writer->append(record).ok());
  EXPECT_FALSE(writer->append(Blob(8)).ok());
  EXPECT_FALSE(writer->append(Blob()).ok());
  EXPECT_TRUE(writer->append(sample(3)).ok());
}

TEST(Gwcap, DoesNotReplaceAFileUnlessForced) {
  test::ScratchDir dir;
  test::spill(dir.file("a"), "precious");
  auto refused = GwcapWriter::create(dir.file("a"), sample_header());
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("--force"), std::string::npos);
  EXPECT_EQ(test::slurp(dir.file("a")), "precious");
  GwcapOptions options;
  options.force = true;
  EXPECT_TRUE(GwcapWriter::create(dir.file("a"), sample_header(), options).ok());
  EXPECT_NE(test::slurp(dir.file("a")), "precious");
}

TEST(Gwcap, FilesAreForTheOwnerOnly) {
  test::ScratchDir dir;
  ASSERT_TRUE(GwcapWriter::create(dir.file("a"), sample_header()).ok());
  struct stat info {};
  ASSERT_EQ(::stat(dir.file("a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 077, 0u);
}

TEST(Gwcap, StaleRecordsReachTheFile) {
  test::ScratchDir dir;
  GwcapOptions options;
  options.flush_after_ns = 0;
  auto writer = GwcapWriter::create(dir.file("a"), sample_header(), options);
  const std::uint64_t before = writer->file_bytes();
  ASSERT_TRUE(writer->append(sample(1)).ok());
  EXPECT_EQ(writer->file_bytes(), before);
  ASSERT_TRUE(writer->flush_stale().ok());
  EXPECT_GT(writer->file_bytes(), before);
}

TEST(Gwcap, UnfinishedWriterKeepsItsRecords) {
  test::ScratchDir dir;
  {
    auto writer = GwcapWriter::create(dir.file("a"), sample_header());
    ASSERT_TRUE(writer->append(sample(1)).ok());
  }
  auto reader = GwcapReader::open(dir.file("a"));
  auto record = reader->next();
  ASSERT_TRUE(record.ok() && record->has_value());
  auto end = reader->next();
  ASSERT_FALSE(end.ok());
  EXPECT_EQ(end.error().code(), base::Code::kTruncated);
}

// A file size limit stands in for a full disk: write fails in the middle of a
// block, and the file must end with the block before.
TEST(Gwcap, FullDiskKeepsWholeBlocks) {
  test::ScratchDir dir;
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  GwcapOptions options;
  options.block_bytes = 4096;
  auto writer = GwcapWriter::create(dir.file("a"), sample_header(), options);
  rlimit tight = old;
  tight.rlim_cur = 3000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  base::Status status;
  std::uint64_t tried = 0;
  while (status.ok() && tried < 5000) status = writer->append(sample(tried++));
  const base::Status again = writer->append(sample(0));
  ::setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().sys_errno(), EFBIG);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().message(), status.error().message());

  auto reader = GwcapReader::open(dir.file("a"));
  ASSERT_TRUE(reader.ok());
  std::uint64_t seen = 0;
  for (;; ++seen) {
    auto record = reader->next();
    if (!record) {
      EXPECT_EQ(record.error().code(), base::Code::kTruncated);
      EXPECT_NE(record.error().message().find("before a footer"), std::string::npos) << record.error().message();
      break;
    }
    ASSERT_TRUE(record->has_value());
  }
  EXPECT_GT(seen, 0u);
  EXPECT_LT(seen, tried);
}

TEST(Gwcap, FullDeviceNamesTheRemedy) {
  GwcapOptions options;
  options.force = true;
  auto writer = GwcapWriter::create("/dev/full", sample_header(), options);
  ASSERT_FALSE(writer.ok());
  EXPECT_NE(writer.error().message().find("free space"), std::string::npos) << writer.error().message();
}

}  // namespace
}  // namespace gpuwatch::source
