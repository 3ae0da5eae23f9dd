// SPDX-License-Identifier: Apache-2.0
// Malformed samples give the error that is named for each, and nothing worse.
#include <gtest/gtest.h>

#include "unit/identify/support.h"

namespace gpuwatch::identify {
namespace {

using nlohmann::json;
using test::Found;

// The number in a codec's error is its library's business.
std::string without_number(const std::string& error) {
  return error.starts_with("lz4 error") ? "lz4 error" : error;
}

TEST(Hostile, EachGivesItsNamedError) {
  const json all = test::sample_json("hostile_expected.json");
  ASSERT_GE(all.size(), 30u);
  for (const auto& [name, want] : all.items()) {
    const Found found = test::identify_here(test::sample("hostile/" + name));
    if (want.contains("exception")) {
      // A cubin that cannot be read: one image, its R, and the reason.
      std::string reason = want["exception"];
      reason = reason.substr(std::string("ValueError: ").size());
      ASSERT_EQ(found.modules.size(), 1u) << name;
      ASSERT_EQ(found.modules[0].errors.size(), 1u) << name;
      EXPECT_EQ(found.modules[0].errors[0], reason) << name;
      EXPECT_EQ(to_hex(found.modules[0].r), to_hex(sha256(as_bytes(test::sample("hostile/" + name))))) << name;
      EXPECT_TRUE(found.modules[0].kernels.empty()) << name;
      continue;
    }
    if (want["cubin"] == "funcs 0") {
      ASSERT_EQ(found.modules.size(), 1u) << name;
      EXPECT_TRUE(found.modules[0].kernels.empty()) << name;
      continue;
    }
    EXPECT_EQ(found.scan.containers.size(), want["containers"]) << name;
    std::vector<std::string> errors;
    for (const Container& container : found.scan.containers)
      errors.insert(errors.end(), container.errors.begin(), container.errors.end());
    EXPECT_EQ(errors, want["errors"].get<std::vector<std::string>>()) << name;
    ASSERT_EQ(found.modules.size(), want["entries"].size()) << name;
    for (std::size_t i = 0; i < found.modules.size(); ++i) {
      const Module& module = found.modules[i];
      const std::string got = module.errors.empty() ? "ok" : module.errors[0];
      EXPECT_EQ(without_number(got), without_number(want["entries"][i])) << name << " entry " << i;
      EXPECT_NE(module.r, Digest{}) << name << " entry " << i;
    }
  }
}

TEST(Hostile, EveryTruncationIsSurvived) {
  for (const std::string name : {"chg_base_120.cubin", "fb12.fatbin", "d_90a.fatbin", "d_lto_mix.o"}) {
    const std::string whole = test::sample(name);
    for (std::size_t size = 0; size < whole.size(); size += 1 + size / 64) {
      const Found found = test::identify_here(whole.substr(0, size));
      EXPECT_EQ(found.modules.size(), found.scan.images.size());
    }
  }
}

TEST(Hostile, EveryByteOfACubinMatters) {
  const std::string whole = test::sample("chg_base_80.cubin");
  const Digest r = test::identify_here(whole).modules[0].r;
  for (std::size_t at = 64; at < whole.size(); at += 97) {
    std::string bent = whole;
    bent[at] = static_cast<char>(bent[at] ^ 0x10);
    const Found found = test::identify_here(bent);
    ASSERT_EQ(found.modules.size(), 1u) << at;
    EXPECT_NE(found.modules[0].r, r) << at;
  }
}

}  // namespace
}  // namespace gpuwatch::identify
