// SPDX-License-Identifier: Apache-2.0
// Unit tests of .gwcap files that were cut, flipped or made to harm: every
// record before the damage comes out unchanged, then one clear error.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <zstd.h>

#include <functional>

#include "base/crc32c.h"
#include "base/io.h"
#include "source/gwcap.h"
#include "source/record_delta.h"
#include "unit/support.h"

namespace gpuwatch::source {
namespace {

using test::Blob;

Blob sample(std::uint64_t i) {
  return test::ioctl_record(test::make_head(GPUWATCH_REC_IOCTL, i), static_cast<std::uint32_t>(i), 0,
                            {{GPUWATCH_CAP_ARG_IN, std::string(8 + i % 40, static_cast<char>('a' + i % 7))}});
}

// A file of several blocks of a few records; small, so that every offset can
// be tried.
class GwcapDamage : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kRecords = 24;

  void SetUp() override {
    GwcapHeader header;
    header.source = "synth";
    auto writer = GwcapWriter::create(dir_.file("good"), header);
    ASSERT_TRUE(writer.ok());
    for (std::uint64_t i = 0; i < kRecords; ++i) {
      ASSERT_TRUE(writer->append(sample(i)).ok());
      if (i % 6 == 5) {
        ASSERT_TRUE(writer->flush().ok());
      }
    }
    ASSERT_TRUE(writer->finish({}).ok());
    good_ = test::slurp(dir_.file("good"));
  }

  struct Outcome {
    std::uint64_t records = 0;
    bool footer = false;
    std::optional<base::Error> error;
  };

  // Reads all and fails the test where a record differs from what was written.
  Outcome read(const std::string& bytes) {
    base::Fd memory(::memfd_create("bad", MFD_CLOEXEC));
    EXPECT_TRUE(base::write_all(memory.get(), bytes).ok());
    EXPECT_EQ(::lseek(memory.get(), 0, SEEK_SET), 0);
    Outcome outcome;
    auto reader = GwcapReader::adopt(std::move(memory), "bad");
    if (!reader) {
      outcome.error = reader.error();
      return outcome;
    }
    for (;; ++outcome.records) {
      auto record = reader->next();
      if (!record) {
        outcome.error = record.error();
        EXPECT_EQ(reader->next().error().message(), outcome.error->message());
        break;
      }
      if (!record->has_value()) break;
      const Blob want = sample(outcome.records);
      EXPECT_EQ((*record)->head.len, want.size());
      EXPECT_EQ(std::memcmp((*record)->payload.data(), want.data() + sizeof(gpuwatch_rec), (*record)->payload.size()),
                0);
    }
    outcome.footer = reader->footer().has_value();
    return outcome;
  }

  std::size_t header_end() const {
    FilePreamble preamble;
    std::memcpy(&preamble, good_.data(), sizeof preamble);
    return sizeof preamble + preamble.header_bytes;
  }

  // Where blocks start, the footer's included.
  std::vector<std::size_t> block_starts() const {
    std::vector<std::size_t> starts;
    for (std::size_t at = header_end(); at < good_.size();) {
      starts.push_back(at);
      BlockHeader head;
      std::memcpy(&head, good_.data() + at, sizeof head);
      at += sizeof head + head.stored_bytes;
    }
    return starts;
  }

  // Changes the first block's header, with a checksum that fits.
  std::string with_block_header(const std::function<void(BlockHeader&)>& change) const {
    std::string bytes = good_;
    BlockHeader head;
    std::memcpy(&head, bytes.data() + header_end(), sizeof head);
    change(head);
    head.header_crc = base::crc32c(std::as_bytes(std::span(&head, 1)).first(offsetof(BlockHeader, header_crc)));
    std::memcpy(bytes.data() + header_end(), &head, sizeof head);
    return bytes;
  }

  // Header of the good file followed by one block of the given raw bytes.
  std::string with_one_block(const std::string& frame, std::uint32_t raw_bytes, std::uint32_t records) const {
    BlockHeader head{};
    head.magic = kGwcapBlockMagic;
    head.kind = static_cast<std::uint32_t>(BlockKind::kRecords);
    head.stored_bytes = static_cast<std::uint32_t>(frame.size());
    head.raw_bytes = raw_bytes;
    head.records = records;
    head.stored_crc = base::crc32c(std::as_bytes(std::span(frame)));
    head.header_crc = base::crc32c(std::as_bytes(std::span(&head, 1)).first(offsetof(BlockHeader, header_crc)));
    std::string bytes = good_.substr(0, header_end());
    bytes.append(reinterpret_cast<const char*>(&head), sizeof head);
    return bytes + frame;
  }

  static std::string compress(const std::string& raw) {
    std::string frame(ZSTD_compressBound(raw.size()), '\0');
    frame.resize(ZSTD_compress(frame.data(), frame.size(), raw.data(), raw.size(), 1));
    return frame;
  }

  test::ScratchDir dir_;
  std::string good_;
};

TEST_F(GwcapDamage, EveryCutKeepsTheWholeBlocksBefore) {
  const auto starts = block_starts();
  ASSERT_EQ(starts.size(), 5u);
  for (std::size_t n = 0; n < good_.size(); ++n) {
    const Outcome outcome = read(good_.substr(0, n));
    ASSERT_TRUE(outcome.error) << n;
    EXPECT_FALSE(outcome.footer);
    if (n == 0) {
      EXPECT_EQ(outcome.error->code(), base::Code::kBadInput);
      continue;
    }
    EXPECT_EQ(outcome.error->code(), base::Code::kTruncated) << n << outcome.error->message();
    EXPECT_NE(outcome.error->message().find("cut at byte " + std::to_string(n)), std::string::npos)
        << outcome.error->message();
    std::uint64_t whole = 0;
    for (std::size_t i = 0; i + 1 < starts.size(); ++i)
      if (starts[i + 1] <= n) whole += 6;
    EXPECT_EQ(outcome.records, whole) << n;
    if (n >= header_end()) {
      EXPECT_NE(outcome.error->message().find(std::to_string(whole) + " records before"), std::string::npos);
    }
  }
  const Outcome whole = read(good_);
  EXPECT_FALSE(whole.error);
  EXPECT_EQ(whole.records, kRecords);
}

TEST_F(GwcapDamage, EveryFlippedByteIsFoundAndSaysWhere) {
  const auto starts = block_starts();
  for (std::size_t n = 0; n < good_.size(); ++n)
    for (unsigned mask : {0x01u, 0xffu}) {
      std::string bad = good_;
      bad[n] = static_cast<char>(static_cast<unsigned char>(bad[n]) ^ mask);
      const Outcome outcome = read(bad);
      ASSERT_TRUE(outcome.error) << "byte " << n << " mask " << mask;
      EXPECT_FALSE(outcome.footer);
      EXPECT_NE(outcome.error->message().find("byte "), std::string::npos) << outcome.error->message();
      EXPECT_NE(outcome.error->message().find(";"), std::string::npos) << "no remedy: " << outcome.error->message();
      std::uint64_t whole = 0;
      for (std::size_t i = 0; i + 1 < starts.size(); ++i)
        if (starts[i + 1] <= n) whole += 6;
      EXPECT_EQ(outcome.records, whole) << n;
    }
}

TEST_F(GwcapDamage, AbsurdLengthsWithAGoodChecksum) {
  for (std::uint32_t value : {kGwcapStoredMax + 1, 0x7fffffffu, 0xffffffffu}) {
    const Outcome stored = read(with_block_header([&](BlockHeader& head) { head.stored_bytes = value; }));
    EXPECT_EQ(stored.error->code(), base::Code::kBadInput);
    EXPECT_NE(stored.error->message().find("limits"), std::string::npos) << stored.error->message();
    const Outcome raw = read(with_block_header([&](BlockHeader& head) { head.raw_bytes = value; }));
    EXPECT_EQ(raw.error->code(), base::Code::kBadInput);
    const Outcome count = read(with_block_header([&](BlockHeader& head) { head.records = value; }));
    EXPECT_EQ(count.error->code(), base::Code::kBadInput);
  }
  // Within limits, but not what is there.
  EXPECT_EQ(read(with_block_header([](BlockHeader& head) { head.stored_bytes = 4 << 20; })).error->code(),
            base::Code::kTruncated);
  for (std::uint32_t value : {0u, 88u, kGwcapRawMax})
    EXPECT_EQ(read(with_block_header([&](BlockHeader& head) {
                head.raw_bytes = value;
                head.records = 0;
              })).error->code(),
              base::Code::kBadInput);
}

TEST_F(GwcapDamage, HeaderLengthOverTheLimit) {
  std::string bad = good_;
  FilePreamble preamble;
  std::memcpy(&preamble, bad.data(), sizeof preamble);
  preamble.header_bytes = 0xfffffff0;
  preamble.preamble_crc =
      base::crc32c(std::as_bytes(std::span(&preamble, 1)).first(offsetof(FilePreamble, preamble_crc)));
  std::memcpy(bad.data(), &preamble, sizeof preamble);
  const Outcome outcome = read(bad);
  ASSERT_TRUE(outcome.error);
  EXPECT_NE(outcome.error->message().find("limit"), std::string::npos);
}

TEST_F(GwcapDamage, LaterVersionSaysWhatToDo) {
  std::string bad = good_;
  bad[8] = 2;
  const Outcome outcome = read(bad);
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->code(), base::Code::kUnsupported);
  EXPECT_NE(outcome.error->message().find("file format 2, this program reads 1"), std::string::npos)
      << outcome.error->message();
}

TEST_F(GwcapDamage, DecompressionBombIsRefused) {
  const std::string bomb = compress(std::string(64 << 20, '\0'));
  ASSERT_LT(bomb.size(), 10000u);
  for (std::uint32_t declared : {4096u, kGwcapRawMax}) {
    const Outcome outcome = read(with_one_block(bomb, declared, 1));
    ASSERT_TRUE(outcome.error);
    EXPECT_EQ(outcome.error->code(), base::Code::kBadInput);
    EXPECT_EQ(outcome.records, 0u);
  }
}

TEST_F(GwcapDamage, BadRecordLengthInsideAGoodBlock) {
  std::string raw;
  const Blob first = sample(0);
  raw.append(reinterpret_cast<const char*>(first.data()), first.size());
  for (std::uint32_t len : {0u, 7u, 80u, 0xffffffffu}) {
    std::string bad = raw + std::string(reinterpret_cast<const char*>(first.data()), first.size());
    std::memcpy(bad.data() + raw.size(), &len, sizeof len);
    const Outcome outcome = read(with_one_block(compress(bad), static_cast<std::uint32_t>(bad.size()), 2));
    ASSERT_TRUE(outcome.error);
    EXPECT_EQ(outcome.records, 1u);
    EXPECT_NE(outcome.error->message().find("record at byte " + std::to_string(raw.size())), std::string::npos)
        << outcome.error->message();
  }
}

TEST_F(GwcapDamage, BadDeltaInsideAGoodBlock) {
  std::vector<std::byte> raw;
  constexpr std::uint64_t kMany = 1000;  // more than one piece
  for (std::uint64_t i = 0; i < kMany; ++i) {
    const Blob record = sample(i);
    raw.insert(raw.end(), record.begin(), record.end());
  }
  std::vector<std::byte> packed;
  to_delta(raw, packed);
  const auto file_of = [&](const std::vector<std::byte>& bytes) {
    std::string file = with_one_block(compress({reinterpret_cast<const char*>(bytes.data()), bytes.size()}),
                                      static_cast<std::uint32_t>(raw.size()), kMany);
    BlockHeader head;
    std::memcpy(&head, file.data() + header_end(), sizeof head);
    head.kind = static_cast<std::uint32_t>(BlockKind::kDelta);
    head.packed_bytes = static_cast<std::uint32_t>(bytes.size());
    head.header_crc = base::crc32c(std::as_bytes(std::span(&head, 1)).first(offsetof(BlockHeader, header_crc)));
    std::memcpy(file.data() + header_end(), &head, sizeof head);
    return file;
  };
  EXPECT_EQ(read(file_of(packed)).records, kMany);
  std::vector<std::byte> bad = packed;
  bad.resize(bad.size() - 3);
  const Outcome outcome = read(file_of(bad));
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->code(), base::Code::kBadInput);
  EXPECT_EQ(outcome.records, kMany - 1);
  EXPECT_NE(outcome.error->message().find("deltas do not fit"), std::string::npos) << outcome.error->message();
}

TEST_F(GwcapDamage, HostileJsonInTheHeader) {
  const std::vector<std::string> headers = {"",
                                            "[]",
                                            "{",
                                            "{\"schema\":\"x\"}",
                                            "{\"schema\":-1}",
                                            "{\"schema\":99999999999999999999}",
                                            std::string(1 << 19, '['),
                                            "{\"schema\":1,\"gpus\":[1,[],{\"minor\":1e400}]}\xff"};
  for (const std::string& json : headers) {
    FilePreamble preamble{};
    preamble.magic = kGwcapMagic;
    preamble.version = kGwcapVersion;
    preamble.header_bytes = static_cast<std::uint32_t>(json.size());
    preamble.header_crc = base::crc32c(std::as_bytes(std::span(json)));
    preamble.preamble_crc =
        base::crc32c(std::as_bytes(std::span(&preamble, 1)).first(offsetof(FilePreamble, preamble_crc)));
    const Outcome outcome = read(std::string(reinterpret_cast<const char*>(&preamble), sizeof preamble) + json);
    ASSERT_TRUE(outcome.error) << json.substr(0, 40);
    EXPECT_EQ(outcome.error->code(), base::Code::kBadInput);
  }
}

TEST_F(GwcapDamage, BytesAfterTheFooter) {
  const Outcome outcome = read(good_ + "x");
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.records, kRecords);
  EXPECT_NE(outcome.error->message().find("after the footer"), std::string::npos);
}

TEST_F(GwcapDamage, OtherFilesAreNamedAsSuch) {
  for (const char* text : {"x", "#!/bin/sh\n",
                           "\x7f"
                           "ELF\x02\x01\x01 and much more text than a preamble has"}) {
    const Outcome outcome = read(text);
    ASSERT_TRUE(outcome.error);
    EXPECT_NE(outcome.error->message().find("not a .gwcap file"), std::string::npos) << outcome.error->message();
  }
}

}  // namespace
}  // namespace gpuwatch::source
