// SPDX-License-Identifier: Apache-2.0
// Batches of real cubins on a GPU that is memory (fake/loader.cpp): verdicts, what
// is refused, memory that runs out, changed code, leftovers.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>

#include "probe/file_run.h"
#include "probe/verify.h"

namespace gpuwatch::probe {
namespace {

using Range = std::size_t (*)(std::size_t, std::uint64_t*, std::uint64_t*);

template <typename F>
F fake(const char* name) {
  F function;
  void* const symbol = ::dlsym(::dlopen(FAKE_LOADER, RTLD_NOW), name);
  if (symbol == nullptr) std::abort();
  std::memcpy(&function, &symbol, sizeof function);
  return function;
}

// What the fake has mapped, by calls as it would make them.
RangeRecord fake_ranges() {
  static const Range range = fake<Range>("fake_range");
  static const auto changes = fake<std::size_t (*)()>("fake_changes");
  static RangeRecord record;
  static std::size_t known = ~std::size_t{0};
  if (known == changes()) return record;
  known = changes();
  std::uint64_t address = 0, bytes = 0;
  const std::size_t all = range(~std::size_t{0}, &address, &bytes);
  record = {};
  std::vector<std::uint8_t> allocate(48), parameters(12), map(9264);
  const auto put = [](std::vector<std::uint8_t>& out, std::size_t at, std::uint64_t value, std::size_t size) {
    std::memcpy(out.data() + at, &value, size);
  };
  put(allocate, 12, kClassVideoMemory, 4);
  record.call(RangeRecord::Node::kControl, 0xc030462b, allocate, parameters);
  for (std::size_t i = 0; i < all; ++i) {
    (void)range(i, &address, &bytes);
    put(map, 0, address, 8);
    put(map, 8, bytes, 8);
    record.call(RangeRecord::Node::kUvm, 33, map, {});
  }
  return record;
}

std::vector<std::uint8_t> file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

class Images : public ImageList {
 public:
  explicit Images(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      LoadableImage image;
      image.label = std::to_string(images_.size()) + " " + name;
      image.bytes = file(name == "tables_90.cubin"         ? BANK_CUBIN
                         : name == "shared_names_90.cubin" ? SHARED_NAMES_CUBIN
                                                           : std::string(FATBINS) + "/" + name);
      if (image.bytes.empty()) image.error = "not to be taken";
      images_.push_back(std::move(image));
    }
  }
  std::size_t size() const override { return images_.size(); }
  LoadableImage take(std::size_t number) const override {
    ++taken;
    return images_[number];
  }
  mutable std::size_t taken = 0;

 private:
  std::vector<LoadableImage> images_;
};

struct Seen : RunSink {
  void module(const std::string& label, const ModuleVerdict& verdict) override {
    EXPECT_TRUE(labels.insert(label).second) << label << " twice";
    for (const FunctionVerdict& function : verdict.functions)
      lines.push_back(label + " " + function.name + " " + to_string(function.verdict) +
                      (function.verdict == Verdict::kDiffer ? " " + std::to_string(function.first_offset) : "") +
                      (function.reason.empty() ? "" : ": " + function.reason));
    for (const FunctionVerdict& function : verdict.functions) unchecked += function.unchecked;
    for (const FunctionVerdict& bank : verdict.banks) banks += bank.verdict == Verdict::kNotResident ? 0 : 1;
    for (const FunctionVerdict& function : verdict.functions)
      good += function.verdict == Verdict::kMatch || function.verdict == Verdict::kMatchRelocated ? 1 : 0;
  }
  void not_probed(const std::string& label, const Failure& failure) override {
    EXPECT_TRUE(labels.insert(label).second) << label << " twice";
    refused.push_back(label + ": " + failure.text);
  }
  void batch(const BatchFigures& figures) override {
    sizes.push_back(figures.modules);
    hashed += figures.hashed_bytes;
  }
  std::set<std::string> labels;
  std::vector<std::string> lines, refused;
  std::vector<std::size_t> sizes;
  std::size_t good = 0, banks = 0, unchecked = 0;
  std::uint64_t hashed = 0;
};

class Batches : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = open_driver(FAKE_LOADER);
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    api_ = *opened;
    ASSERT_EQ(api_.init(0), kCuOk);
    session_ = std::make_unique<Session>(api_, fake_ranges);
    DeviceFacts facts;
    ASSERT_FALSE(Session::facts(api_, 0, facts));
    ASSERT_FALSE(session_->open(facts));
  }
  void TearDown() override {
    for (const char* name : {"FAKE_REFUSE", "FAKE_TEXT_MAX", "FAKE_CHANGE"}) ::unsetenv(name);
  }
  static Nonce nonce() {
    static std::uint8_t count = 0;
    Nonce out{};
    out[0] = ++count;
    return out;
  }
  Failure run(const std::vector<std::string>& names, Seen& seen, BatchLimits limits = {}) {
    const Images images(names);
    Failure failure = run_images(*session_, nonce, images, "", limits, seen);
    taken_ = images.taken;
    return failure;
  }

  DriverApi api_;
  std::unique_ptr<Session> session_;
  std::size_t taken_ = 0;
};

// Equal text, relocations to each module's own data: rep_g; without any: rep_a.
const std::vector<std::string> kMany = {"rep_g_90.cubin", "rep_g2_90.cubin", "rep_g_90.cubin", "rep_a_90.cubin",
                                        "rep_c_90.cubin", "rep_a_90.cubin",  "tables_90.cubin"};

TEST_F(Batches, OfModulesThatShareTwins) {
  Seen seen;
  ASSERT_FALSE(run(kMany, seen));
  EXPECT_EQ(seen.sizes, std::vector<std::size_t>{7});
  EXPECT_EQ(seen.good, 20u) << ::testing::PrintToString(seen.lines);
  EXPECT_EQ(seen.lines.size(), 20u);
  EXPECT_GE(seen.banks, 5u);
  EXPECT_EQ(taken_, 7u);
}

// Of symbols with one name the driver tells one: no function that uses another is
// taken for a changed one, and none for its twin.
TEST_F(Batches, SymbolsThatShareAName) {
  Seen seen;
  ASSERT_FALSE(run({"shared_names_90.cubin", "shared_names_90.cubin"}, seen));
  EXPECT_EQ(seen.lines.size(), 6u);
  EXPECT_EQ(seen.good, 6u) << ::testing::PrintToString(seen.lines);
  // Their addresses, and the driver's own printf, are told by the code alone, and that is said: 7 uses in each module.
  EXPECT_EQ(seen.unchecked, 14u);
  ::setenv("FAKE_CHANGE", "second:72", 1);
  Seen changed;
  ASSERT_FALSE(run({"shared_names_90.cubin"}, changed));
  EXPECT_EQ(changed.good, 2u) << ::testing::PrintToString(changed.lines);
}

TEST_F(Batches, AsManyAsAreWanted) {
  for (const std::size_t modules : {1u, 3u}) {
    Seen seen;
    ASSERT_FALSE(run(kMany, seen, {64 << 20, modules}));
    EXPECT_EQ(seen.sizes.size(), (7 + modules - 1) / modules);
    EXPECT_EQ(seen.good, 20u) << ::testing::PrintToString(seen.lines);
  }
  Seen seen;
  ASSERT_FALSE(run(kMany, seen, {3000, 100}));
  EXPECT_GT(seen.sizes.size(), 3u);
  EXPECT_EQ(seen.good, 20u);
}

TEST_F(Batches, WhatIsRefusedIsNamedAndTheRestGoesOn) {
  std::vector<std::string> names = kMany;
  names.insert(names.begin() + 1, "absent.cubin");
  names.push_back("rep_r_90.cubin");  // relocatable
  // The fake counts what it is asked to load over all tests.
  Seen count;
  ASSERT_FALSE(run({"rep_a_90.cubin"}, count));
  ASSERT_EQ(count.good, 3u);
  Seen seen;
  const std::size_t loads = fake<std::size_t (*)()>("fake_loads")();
  ::setenv("FAKE_REFUSE", std::to_string(loads + 2).c_str(), 1);
  ASSERT_FALSE(run(names, seen));
  ASSERT_EQ(seen.refused.size(), 3u) << ::testing::PrintToString(seen.refused);
  EXPECT_EQ(seen.refused[0], "1 absent.cubin: not to be taken");
  EXPECT_TRUE(seen.refused[1].starts_with("3 rep_g_90.cubin: loading")) << seen.refused[1];
  EXPECT_TRUE(seen.refused[2].starts_with("8 rep_r_90.cubin: relocatable")) << seen.refused[2];
  EXPECT_EQ(seen.good, 17u);
  EXPECT_EQ(seen.sizes, std::vector<std::size_t>{6});
}

TEST_F(Batches, SmallerOnesWhenMemoryRunsOut) {
  std::size_t largest = 0;
  for (const std::string& name : kMany) {
    Code code;
    ASSERT_EQ(read_code(Images({name}).take(0).bytes, code), "");
    std::size_t text = 0;
    for (const Function& function : code.functions) text += function.text.size();
    largest = std::max(largest, text);
  }
  ::setenv("FAKE_TEXT_MAX", std::to_string(largest + 1000).c_str(), 1);
  Seen seen;
  ASSERT_FALSE(run(kMany, seen));
  EXPECT_GT(seen.sizes.size(), 3u);
  EXPECT_EQ(seen.good, 20u);
  EXPECT_EQ(seen.lines.size(), 20u);
  ::setenv("FAKE_TEXT_MAX", "100", 1);
  Seen none;
  const Failure failure = run(kMany, none);
  EXPECT_EQ(failure.outcome, Outcome::kOutOfMemory) << "not even one module";
}

TEST_F(Batches, ChangedCodeIsNamedAtItsOffset) {
  ::setenv("FAKE_CHANGE", "jump:100", 1);
  Seen seen;
  ASSERT_FALSE(run(kMany, seen));
  EXPECT_EQ(seen.good, 19u) << ::testing::PrintToString(seen.lines);
  EXPECT_EQ(std::count(seen.lines.begin(), seen.lines.end(), "6 tables_90.cubin jump differ 100"), 1);
}

// All three twins of it: no clean one to stand in.
TEST_F(Batches, ChangedTwinsAreAllNamed) {
  ::setenv("FAKE_CHANGE", "_Z2stPi:24", 1);
  Seen seen;
  ASSERT_FALSE(run({"rep_g_90.cubin", "rep_g2_90.cubin", "rep_g_90.cubin"}, seen));
  EXPECT_EQ(std::count_if(seen.lines.begin(), seen.lines.end(),
                          [](const std::string& line) { return line.ends_with("_Z2stPi differ 24"); }),
            3)
      << ::testing::PrintToString(seen.lines);
  EXPECT_EQ(seen.good, 6u);
}

TEST_F(Batches, AChangedTwinAmongCleanOnes) {
  const Images images(kMany);
  Batch batch(*session_, nonce);
  for (std::size_t i = 0; i < images.size(); ++i) ASSERT_FALSE(batch.add(images.take(i)));
  std::vector<ModuleVerdict> clean;
  ASSERT_FALSE(batch.check("", clean));
  for (std::size_t module = 0; module < 3; ++module)
    for (std::size_t function = 0; function < 3; ++function) {
      const std::uint64_t address = clean[module].functions[function].address;
      auto* byte = reinterpret_cast<std::uint8_t*>(address + 40);
      *byte ^= 1;
      std::vector<ModuleVerdict> verdicts;
      ASSERT_FALSE(batch.check("", verdicts));
      *byte ^= 1;
      for (std::size_t m = 0; m < verdicts.size(); ++m)
        for (std::size_t f = 0; f < verdicts[m].functions.size(); ++f) {
          const FunctionVerdict& verdict = verdicts[m].functions[f];
          if (m == module && f == function) {
            EXPECT_EQ(verdict.verdict, Verdict::kDiffer);
            EXPECT_EQ(verdict.first_offset, 40u);
            EXPECT_EQ(verdict.address, address);
          } else {
            EXPECT_NE(verdict.verdict, Verdict::kDiffer) << verdict.name << verdict.reason;
          }
        }
    }
  ASSERT_FALSE(batch.unload());
}

// A module that was unloaded without a wipe leaves its code where the next comes.
TEST_F(Batches, LeftoversAreNoAlarm) {
  for (int i = 0; i < 3; ++i) {
    {
      ImageProbe leaves(*session_, nonce);
      ASSERT_FALSE(leaves.load(Images({"rep_a_90.cubin"}).take(0)));
    }
    Seen seen;
    ASSERT_FALSE(run({"rep_a_90.cubin", "rep_g_90.cubin", "rep_a_90.cubin"}, seen));
    EXPECT_EQ(seen.good, 9u) << ::testing::PrintToString(seen.lines);
  }
}

TEST_F(Batches, OneModuleAlone) {
  ImageProbe one(*session_, nonce), two(*session_, nonce);
  ASSERT_FALSE(one.load(Images({"rep_g_90.cubin"}).take(0)));
  ModuleVerdict first, second;
  ASSERT_FALSE(one.check("", first));
  ASSERT_FALSE(two.load(Images({"rep_g_90.cubin"}).take(0)));
  ASSERT_FALSE(two.check("plain", second));
  ASSERT_EQ(second.functions.size(), 1u);
  EXPECT_EQ(second.functions[0].verdict, Verdict::kMatchRelocated) << second.functions[0].reason;
  EXPECT_NE(second.functions[0].address, first.functions[0].address);
  ASSERT_FALSE(one.check("", first));
  for (const FunctionVerdict& verdict : first.functions) EXPECT_EQ(verdict.verdict, Verdict::kMatchRelocated);
  EXPECT_EQ(one.code().functions.size(), 3u);
  EXPECT_NE(one.module(), nullptr);
  EXPECT_GT(one.figures().gpu_ms[1], 0);
  ASSERT_FALSE(two.unload());
  ASSERT_FALSE(one.unload());
}

}  // namespace
}  // namespace gpuwatch::probe
