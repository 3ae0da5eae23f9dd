// SPDX-License-Identifier: Apache-2.0
#include "judge/compare.h"

#include "make.h"

namespace gpuwatch::judge {
namespace {

TEST_F(WithBaselines, DiffTellsModulesAndKernels) {
  Baseline first = make("a", {entry(cubin("same", {kernel("s", "s")})), entry(cubin("old", {kernel("x", "x1")}))});
  Baseline second = make("b", {entry(cubin("same", {kernel("s", "s")})),
                               entry(cubin("new", {kernel("x", "x2"), kernel("y", "y"), kernel("s", "s")}))});
  std::vector<std::string> lines;
  auto counts = diff(first, second, [&](const DiffLine& line) {
    lines.push_back(std::to_string(static_cast<int>(line.kind)) + (line.kernel != nullptr ? line.kernel->name : ""));
    if (line.kind == DiffKind::kChanged) {
      EXPECT_EQ(line.before->k, digest("kx1"));
    }
    return base::Status();
  });
  ASSERT_TRUE(counts.ok());
  EXPECT_EQ(lines, (std::vector<std::string>{"0", "1", "2x"}));
  EXPECT_EQ(counts->common, 1u);
  auto same = diff(first, first, [](const DiffLine&) { return base::Status(); });
  EXPECT_FALSE(same->any());
  auto stopped =
      diff(first, second, [](const DiffLine&) { return base::Status(base::Error(base::Code::kIo, "stop")); });
  EXPECT_FALSE(stopped.ok());
}

TEST_F(WithBaselines, MergeIsAUnion) {
  Baseline first = make("a", {entry(cubin("one", {kernel("a", "a")}), "/a")});
  std::vector<Entry> many = {entry(cubin("one", {kernel("a", "a")}), "/b")};
  for (int i = 0; i < 600; ++i) many.push_back(entry(cubin("m" + std::to_string(i), {kernel("k", std::to_string(i))})));
  Baseline second = make("b", many);
  EXPECT_EQ(*merge(first, second), 600u);
  EXPECT_EQ(first.counts()->modules, 601u);
  EXPECT_EQ((**first.by_r(digest("rone"))).sources.size(), 2u);
  EXPECT_EQ(*merge(first, second), 0u);
  Baseline denied = make("c", {}, Stance::kDenied);
  const auto mixed = merge(first, denied);
  ASSERT_FALSE(mixed.ok());
  EXPECT_NE(mixed.error().message().find("they do not mix"), std::string::npos);
}

}  // namespace
}  // namespace gpuwatch::judge
