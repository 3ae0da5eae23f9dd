// SPDX-License-Identifier: Apache-2.0
// Containers whose headers lie: what is kept, what is named, where the scan
// goes on. The samples cover well-formed ones.
#include "identify/container.h"

#include <gtest/gtest.h>

#include "unit/identify/support.h"

namespace gpuwatch::identify {
namespace {

using test::EntrySpec;

struct Walk {
  Container container;
  std::vector<Image> images;
  std::uint64_t end = 0;
};

Walk walk(const std::string& bytes, std::uint64_t offset = 0) {
  Walk out;
  const MemorySource source(as_bytes(bytes));
  out.container = walk_container(source, offset, {}, out.images, out.end);
  return out;
}

TEST(ContainerWalk, Empty) {
  const Walk out = walk(test::make_container({}));
  EXPECT_TRUE(out.container.errors.empty());
  EXPECT_EQ(out.end, 16u);
}

TEST(ContainerWalk, BodySizesThatWrap) {
  for (const std::uint64_t body : {~std::uint64_t{0}, ~std::uint64_t{15}, std::uint64_t{1} << 63}) {
    std::string bytes = test::make_container({{1, test::make_ptx()}});
    test::put<std::uint64_t>(bytes, 8, body);
    const Walk out = walk(bytes);
    ASSERT_EQ(out.container.errors.size(), 1u);
    EXPECT_TRUE(out.container.errors[0].starts_with("body past end by "));
    EXPECT_EQ(out.images.size(), 1u);
  }
}

TEST(ContainerWalk, PayloadSizesThatWrap) {
  for (const std::uint64_t payload : {~std::uint64_t{0}, ~std::uint64_t{0} - 63, std::uint64_t{1} << 40}) {
    std::string bytes = test::make_container({{1, test::make_ptx()}, {1, test::make_ptx()}});
    test::put<std::uint64_t>(bytes, 16 + 8, payload);
    const Walk out = walk(bytes);
    EXPECT_TRUE(out.images.empty());
    EXPECT_EQ(out.container.errors.size(), 1u);
    EXPECT_EQ(out.container.unparsed_bytes, bytes.size() - 16);
    EXPECT_EQ(out.end, 16u);
  }
}

TEST(ContainerWalk, TextsOutsideOfTheHeaderAreIgnored) {
  std::string bytes = test::make_container({{1, test::make_ptx(), "source.cu"}});
  EXPECT_EQ(walk(bytes).images[0].identifier, "source.cu");
  test::put<std::uint32_t>(bytes, 16 + 36, 10'000);
  EXPECT_EQ(walk(bytes).images[0].identifier, "");
  test::put<std::uint32_t>(bytes, 16 + 32, 0xfffffff0);
  EXPECT_EQ(walk(bytes).images[0].identifier, "");
}

TEST(ContainerWalk, UnknownKindsAndVersions) {
  std::string bytes = test::make_container({{77, "whatever that is"}});
  EXPECT_TRUE(walk(bytes).images[0].opaque);
  test::put<std::uint16_t>(bytes, 4, 9);
  const Walk out = walk(bytes);
  EXPECT_EQ(out.container.errors, std::vector<std::string>{"container version 9"});
  EXPECT_EQ(out.images.size(), 1u);
}

TEST(ContainerWalk, LimitsOfSizes) {
  const auto error_of = [](std::uint64_t flags, std::uint32_t compressed, std::uint64_t inflated) {
    return walk(test::make_container({{2, std::string(128, 'x'), "", flags, compressed, inflated}})).images[0].error;
  };
  EXPECT_EQ(error_of(0x8011, 100, 100 * 1000), "");
  EXPECT_EQ(error_of(0x8011, 100, 101 * 1000 + 100), "declared size");
  EXPECT_EQ(error_of(0x2011, 100, 1ull << 40), "declared size");
  EXPECT_EQ(error_of(0x2011, 129, 200), "compressed size");
  EXPECT_EQ(error_of(0xa011, 100, 200), "both compression bits");
}

TEST(ContainerWalk, PlausibleOrNot) {
  const std::string good = test::make_container({{1, test::make_ptx()}});
  const auto plausible = [](const std::string& bytes) { return container_plausible(MemorySource(as_bytes(bytes)), 0); };
  EXPECT_TRUE(plausible(good));
  EXPECT_FALSE(plausible(std::string(200, 'x')));
  EXPECT_FALSE(plausible(good.substr(0, 8)));
  // The magic as an immediate in code, with code behind.
  std::string code(200, '\x48');
  test::put<std::uint32_t>(code, 0, kContainerMagic);
  EXPECT_FALSE(plausible(code));
  test::put<std::uint64_t>(code, 0, kContainerKey);
  EXPECT_FALSE(plausible(code));
}

}  // namespace
}  // namespace gpuwatch::identify
