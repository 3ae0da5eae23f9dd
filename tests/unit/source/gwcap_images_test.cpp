// SPDX-License-Identifier: Apache-2.0
// Module images in .gwcap files: back byte for byte, within bounds, and no
// trouble where they are not wanted, cut or damaged.
#include <gtest/gtest.h>

#include "source/gwcap.h"
#include "source/kept_images.h"
#include "source/replay_source.h"
#include "unit/support.h"

namespace gpuwatch::source {
namespace {

using test::Blob;

std::vector<std::byte> content(std::size_t size, unsigned seed) {
  std::vector<std::byte> out(size);
  std::uint64_t x = seed * 2 + 1;
  for (std::byte& byte : out) {
    x = x * 6364136223846793005ull + 1442695040888963407ull;
    byte = static_cast<std::byte>(x >> 56);
  }
  return out;
}

Blob image_record(std::uint64_t id, std::uint64_t bytes) {
  gpuwatch_rec_image image{};
  image.id = id;
  image.bytes = image.copied_bytes = bytes;
  image.kind = GPUWATCH_IMAGE_ELF;
  Blob payload;
  test::append_struct(payload, image);
  return test::finish_record(test::make_head(GPUWATCH_REC_IMAGE), payload);
}

std::string recording(const test::ScratchDir& dir, const std::vector<std::size_t>& sizes, GwcapOptions options = {}) {
  const std::string path = dir.file("a.gwcap");
  options.force = true;
  GwcapHeader header;
  header.source = "synth";
  auto writer = GwcapWriter::create(path, header, options);
  EXPECT_TRUE(writer.ok());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_TRUE(writer->append_image(i + 1, content(sizes[i], static_cast<unsigned>(i))).ok());
    EXPECT_TRUE(writer->append(image_record(i + 1, sizes[i])).ok());
  }
  EXPECT_TRUE(writer->finish({}).ok());
  return path;
}

TEST(GwcapImages, RoundTrip) {
  const test::ScratchDir dir;
  const std::vector<std::size_t> sizes = {1, 4096, kGwcapPieceMax, kGwcapPieceMax + 1, 3 * kGwcapPieceMax - 7};
  auto source = ReplaySource::open(recording(dir, sizes));
  ASSERT_TRUE(source.ok());
  (*source)->keep_images();
  std::vector<model::RawRecord> batch;
  std::size_t seen = 0;
  while (!(*source)->ended()) {
    ASSERT_TRUE((*source)->next_batch(batch).ok());
    for (const model::RawRecord& record : batch) {
      const auto image = model::read_at<gpuwatch_rec_image>(record.payload, 0);
      auto bytes = (*source)->take_image(*image);
      ASSERT_TRUE(bytes.ok()) << bytes.error().message();
      const auto want = content(sizes[seen], static_cast<unsigned>(seen));
      ASSERT_EQ(bytes->bytes().size(), want.size());
      EXPECT_EQ(std::memcmp(bytes->bytes().data(), want.data(), want.size()), 0);
      EXPECT_FALSE((*source)->take_image(*image).ok());  // once
      ++seen;
    }
  }
  EXPECT_EQ(seen, sizes.size());
}

TEST(GwcapImages, NotAskedFor) {
  const test::ScratchDir dir;
  auto reader = GwcapReader::open(recording(dir, {5000, 70000}));
  ASSERT_TRUE(reader.ok());
  std::size_t records = 0;
  for (auto record = reader->next(); record.ok() && record->has_value(); record = reader->next()) ++records;
  EXPECT_EQ(records, 2u);
  EXPECT_TRUE(reader->footer());
  EXPECT_FALSE(reader->take_image(1).ok());
}

TEST(GwcapImages, BudgetOfTheFile) {
  const test::ScratchDir dir;
  GwcapOptions options;
  options.force = true;
  options.image_budget_bytes = 100'000;
  auto writer = GwcapWriter::create(dir.file("b.gwcap"), {}, options);
  ASSERT_TRUE(writer.ok());
  auto first = writer->append_image(1, content(60'000, 1));
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(*first);
  auto second = writer->append_image(2, content(60'000, 2));
  ASSERT_TRUE(second.ok());
  EXPECT_FALSE(*second);
  auto third = writer->append_image(3, content(100, 3));
  ASSERT_TRUE(third.ok());
  EXPECT_TRUE(*third);
  auto none = writer->append_image(4, {});
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(*none);
}

TEST(GwcapImages, CutAtAnyByte) {
  const test::ScratchDir dir;
  const std::string whole = test::slurp(recording(dir, {300, 500}));
  for (std::size_t size = 1; size < whole.size(); ++size) {
    test::spill(dir.file("cut.gwcap"), whole.substr(0, size));
    auto reader = GwcapReader::open(dir.file("cut.gwcap"));
    if (!reader.ok()) continue;
    reader->keep_images();
    auto record = reader->next();
    if (!record.ok() || !record->has_value()) continue;
    // Where the record is there, so is its image, or it says that it is not.
    auto bytes = reader->take_image(1);
    if (bytes.ok()) {
      EXPECT_EQ(*bytes, content(300, 0));
    }
  }
}

std::vector<std::byte> piece(std::uint64_t id, std::uint64_t bytes, std::uint64_t at, std::string_view frame) {
  const ImagePieceHead head{id, bytes, at};
  std::vector<std::byte> out(sizeof head + frame.size());
  std::memcpy(out.data(), &head, sizeof head);
  std::memcpy(out.data() + sizeof head, frame.data(), frame.size());
  return out;
}

TEST(KeptImages, PiecesThatDoNotFit) {
  KeptImages images;
  images.add({}, 1);
  images.add(piece(0, 10, 0, "frame"), 10);
  EXPECT_FALSE(images.take(0).ok());
  images.add(piece(1, 10, 5, "frame"), 5);  // does not begin at 0
  EXPECT_FALSE(images.take(1).ok());
  images.add(piece(2, 10, 0, "frame"), 11);  // more than said
  EXPECT_FALSE(images.take(2).ok());
  images.add(piece(3, ~0ull, 0, "frame"), 4);  // absurd size
  EXPECT_FALSE(images.take(3).ok());
  images.add(piece(4, 10, 0, "frame"), 5);
  images.add(piece(4, 11, 5, "frame"), 6);  // another size than before
  EXPECT_FALSE(images.take(4).ok());
  images.add(piece(5, 10, 0, "frame"), 5);  // not whole
  EXPECT_FALSE(images.take(5).ok());
  images.add(piece(6, 10, 0, "no frame at all"), 10);
  auto bytes = images.take(6);
  ASSERT_FALSE(bytes.ok());
  EXPECT_NE(bytes.error().message().find("does not decompress"), std::string::npos);
}

}  // namespace
}  // namespace gpuwatch::source
