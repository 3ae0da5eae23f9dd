// SPDX-License-Identifier: Apache-2.0
// The front door: paths, directories, choice by SM, the order of results.
#include <gtest/gtest.h>

#include "identify/identify.h"
#include "unit/identify/support.h"

namespace gpuwatch::identify {
namespace {

std::vector<std::uint32_t> sms_of(const std::string& file, Options options) {
  options.workers = 1;
  Identifier identifier(options);
  Collector found;
  EXPECT_TRUE(identifier.path(file, found).ok());
  std::vector<std::uint32_t> out;
  for (const auto& part : found.report.parts)
    if (part.entry) out.push_back(part.entry->image.sm);
  return out;
}

TEST(Identifier, WhatSuitsADeviceComesFirst) {
  const std::string file = test::data_path("a_cm_size.o");  // elf 80, 90, 120 and ptx 120
  Options options;
  EXPECT_EQ(sms_of(file, options), (std::vector<std::uint32_t>{80, 90, 120, 120}));
  options.sm = 90;
  EXPECT_EQ(sms_of(file, options), (std::vector<std::uint32_t>{90}));
  options.all = true;
  EXPECT_EQ(sms_of(file, options), (std::vector<std::uint32_t>{90, 80, 120, 120}));
}

TEST(Identifier, Suits) {
  const auto image = [](Kind kind, std::uint32_t sm, char suffix = 0) {
    Image out;
    out.kind = kind;
    out.sm = sm;
    out.sm_suffix = suffix;
    return out;
  };
  EXPECT_TRUE(suits(image(Kind::kElf, 80), 86));
  EXPECT_FALSE(suits(image(Kind::kElf, 86), 80));
  EXPECT_FALSE(suits(image(Kind::kElf, 80), 90));
  EXPECT_FALSE(suits(image(Kind::kElf, 100, 'a'), 103));
  EXPECT_TRUE(suits(image(Kind::kElf, 100, 'f'), 103));
  EXPECT_TRUE(suits(image(Kind::kPtx, 52), 90));
  EXPECT_FALSE(suits(image(Kind::kPtx, 120), 90));
}

TEST(Identifier, DirectoriesWithoutLinksAndTwins) {
  test::ScratchDir dir;
  std::filesystem::create_directories(dir.file("a/b"));
  test::spill(dir.file("a/b/k.cubin"), test::sample("chg_base_80.cubin"));
  std::filesystem::create_hard_link(dir.file("a/b/k.cubin"), dir.file("a/twin.cubin"));
  std::filesystem::create_symlink(dir.file("a/b/k.cubin"), dir.file("a/link.cubin"));
  std::filesystem::create_symlink(dir.file("a"), dir.file("a/b/loop"));
  EXPECT_EQ(sms_of(dir.file("a"), {}).size(), 1u);
  EXPECT_EQ(sms_of(dir.file("a/link.cubin"), {}).size(), 1u);
}

TEST(Identifier, PathsThatCannotBeRead) {
  Identifier identifier({});
  Collector found;
  EXPECT_FALSE(identifier.path("/nowhere/at/all", found).ok());
  EXPECT_FALSE(identifier.path("/dev/null", found).ok());
  EXPECT_TRUE(found.report.parts.empty());
}

}  // namespace
}  // namespace gpuwatch::identify
