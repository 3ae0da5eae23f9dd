// SPDX-License-Identifier: Apache-2.0
// Who gets which place: functions with equal text, told apart by what their
// relocations say, in heaps with changed code and with leftovers.
#include "probe/locate.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

#include "probe/verdict.h"

namespace gpuwatch::probe {
namespace {

constexpr std::uint64_t kHeap = 0x7f0000000000;

Function random_function(unsigned seed, std::size_t bytes, std::uint32_t section) {
  std::mt19937_64 random(seed);
  Function function;
  function.name = "f" + std::to_string(section);
  function.section = section;
  function.text.resize(bytes);
  for (auto& byte : function.text) byte = static_cast<std::uint8_t>(random());
  return function;
}

// A heap in which modules lie, each with a `user` (section 1) that refers to data
// (symbol 0) and calls a `helper` (section 2, symbol 1), which is equal in all.
class Heap {
 public:
  struct Module {
    Code code;
    Addresses known;
    std::uint64_t user = 0, helper = 0;
  };

  Module& load(std::uint64_t user, std::uint64_t helper, std::uint64_t data) {
    Module& module = modules_.emplace_back();
    Function caller = random_function(1, 1024, 1);
    caller.relocations = {{64, kRelocLow32, 0, 8}, {80, kRelocHigh32, 0, 8}, {512, kRelocCall55, 1, 0}};
    module.code.functions = {caller, random_function(2, 768, 2)};
    module.code.symbols = {{"data", 9, 0}, {"helper", 2, 0}};
    module.known = {{0, data}};
    module.user = user;
    module.helper = helper;
    write(module, data);
    return module;
  }

  void write(const Module& module, std::uint64_t data) {
    put(module.user, expected_text(module.code.functions[0], {{0, data}, {1, module.helper}}));
    put(module.helper, module.code.functions[1].text);
  }
  void put(std::uint64_t address, const std::vector<std::uint8_t>& bytes) {
    std::copy(bytes.begin(), bytes.end(), now.bytes.begin() + static_cast<long>(address - kHeap));
  }
  std::uint8_t& at(std::uint64_t address) { return now.bytes[address - kHeap]; }

  // Two for each module: its user, its helper.
  std::vector<Place> find(const std::vector<Copy>& before = {}) const {
    std::vector<Sought> sought;
    for (std::size_t i = 0; i < modules_.size(); ++i)
      for (const Function& function : modules_[i].code.functions)
        sought.push_back({&function, &modules_[i].code, i, &modules_[i].known});
    return locate(sought, {now}, before);
  }
  void expect_all_found() const {
    const std::vector<Place> places = find();
    for (std::size_t i = 0; i < modules_.size(); ++i) {
      EXPECT_EQ(places[2 * i].address, modules_[i].user) << i;
      EXPECT_EQ(places[2 * i + 1].address, modules_[i].helper) << i;
      EXPECT_TRUE(places[2 * i].exact && places[2 * i + 1].exact) << i;
    }
  }
  std::string reason_of(const Module& module, std::uint64_t helper_place, std::size_t& different) const {
    FunctionVerdict verdict;
    std::vector<std::uint8_t> expected;
    const FunctionPlaces places{{1, module.user}, {2, helper_place}};
    const std::vector<Copy> copies{now};
    const identify::Bytes resident = resident_at(copies, module.user, 1024);
    settle_function(
        module.code, module.code.functions[0], resident, copies, [](std::uint64_t) { return true; }, module.known,
        verdict, expected, &places);
    different = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) different += expected[i] != resident[i] ? 1 : 0;
    return verdict.reason;
  }

  Copy now{kHeap, std::vector<std::uint8_t>(256 * 1024, 0)};

 private:
  std::deque<Module> modules_;
};

TEST(Locate, TwinsBelongToTheModuleWhoseSymbolsTheyName) {
  Heap heap;
  // In the reverse of the order that addresses suggest; helpers crosswise.
  heap.load(kHeap + 0x8000, kHeap + 0x1000, 0x7e0000000300);
  heap.load(kHeap + 0x4000, kHeap + 0x3000, 0x7e0000000200);
  heap.load(kHeap + 0x0800, kHeap + 0x2000, 0x7e0000000100);
  heap.expect_all_found();
}

TEST(Locate, AChangedTwinIsTheOneWithoutAPlace) {
  Heap heap;
  heap.load(kHeap + 0x8000, kHeap + 0x1000, 0x7e0000000300);
  heap.load(kHeap + 0x4000, kHeap + 0x3000, 0x7e0000000200);
  heap.load(kHeap + 0x0800, kHeap + 0x2000, 0x7e0000000100);
  heap.at(kHeap + 0x4000 + 700) ^= 4;
  std::vector<Place> places = heap.find();
  EXPECT_EQ(places[2].address, kHeap + 0x4000);
  EXPECT_FALSE(places[2].exact);
  EXPECT_EQ(places[2].first, 700u);
  for (const std::size_t other : {0u, 1u, 3u, 4u, 5u}) EXPECT_TRUE(places[other].exact) << other;
  EXPECT_EQ(places[0].address, kHeap + 0x8000);
  EXPECT_EQ(places[4].address, kHeap + 0x0800);
}

// Nothing but its callers tells whose helper a helper is.
TEST(Locate, AChangedHelperIsThatOfItsCaller) {
  Heap heap;
  heap.load(kHeap + 0x8000, kHeap + 0x1000, 0x7e0000000300);
  Heap::Module& second = heap.load(kHeap + 0x4000, kHeap + 0x3000, 0x7e0000000200);
  heap.at(kHeap + 0x3000 + 100) ^= 1;
  const std::vector<Place> places = heap.find();
  EXPECT_EQ(places[3].address, kHeap + 0x3000);
  EXPECT_FALSE(places[3].exact);
  EXPECT_EQ(places[3].first, 100u);
  EXPECT_TRUE(places[0].exact && places[1].exact && places[2].exact);
  EXPECT_EQ(places[1].address, kHeap + 0x1000);
  std::size_t different = 0;
  EXPECT_EQ(heap.reason_of(second, places[3].address, different), "") << "the caller is as it should be";
  EXPECT_EQ(different, 0u);
}

TEST(Locate, ARedirectedCallIsSeen) {
  Heap heap;
  Heap::Module& first = heap.load(kHeap + 0x8000, kHeap + 0x1000, 0x7e0000000300);
  std::vector<std::uint8_t> text = expected_text(first.code.functions[0], {{0, 0x7e0000000300}, {1, kHeap + 0x6000}});
  heap.put(first.user, text);
  const std::vector<Place> places = heap.find();
  EXPECT_EQ(places[0].address, first.user);
  EXPECT_EQ(places[1].address, first.helper);
  std::size_t different = 0;
  EXPECT_NE(heap.reason_of(first, places[1].address, different).find("helper"), std::string::npos);
}

TEST(Locate, AChangedAddressOfDataIsSeen) {
  Heap heap;
  Heap::Module& first = heap.load(kHeap + 0x8000, kHeap + 0x1000, 0x7e0000000300);
  heap.write(first, 0x7e0000000380);
  const std::vector<Place> places = heap.find();
  EXPECT_EQ(places[0].address, first.user);
  std::size_t different = 0;
  EXPECT_NE(heap.reason_of(first, places[1].address, different), "");
}

// A batch before this one left the same code, with symbols of its own, and some
// of it was there already when this one came.
TEST(Locate, LeftoversOfAFormerBatch) {
  Heap heap;
  Heap::Module& old = heap.load(kHeap + 0x0800, kHeap + 0x1000, 0x7e0000000100);
  const std::vector<Copy> before = {heap.now};
  Heap fresh;
  fresh.now = heap.now;
  fresh.load(kHeap + 0x8000, kHeap + 0x7000, 0x7e0000000900);
  std::vector<Place> places = fresh.find(before);
  EXPECT_EQ(places[0].address, kHeap + 0x8000);
  EXPECT_EQ(places[1].address, kHeap + 0x7000);
  // Without that knowledge symbols still tell.
  EXPECT_EQ(fresh.find()[0].address, kHeap + 0x8000);
  EXPECT_EQ(fresh.find()[1].address, kHeap + 0x7000) << "by its caller";
  // Changed code is not excused by a clean leftover.
  fresh.at(kHeap + 0x8000 + 300) ^= 2;
  fresh.at(kHeap + 0x7000 + 200) ^= 2;
  places = fresh.find(before);
  EXPECT_EQ(places[0].address, kHeap + 0x8000);
  EXPECT_EQ(places[0].first, 300u);
  EXPECT_EQ(places[1].address, kHeap + 0x7000);
  EXPECT_EQ(places[1].first, 200u);
  (void)old;
}

// Loaded again where its last copy lay, with the same helper in the same place.
TEST(Locate, LoadedAgainInPlace) {
  Heap old;
  old.load(kHeap + 0x0800, kHeap + 0x1000, 0x7e0000000100);
  Heap heap;
  heap.now = old.now;
  heap.load(kHeap + 0x0800, kHeap + 0x1000, 0x7e0000000500);
  const std::vector<Place> places = heap.find({old.now});
  EXPECT_EQ(places[0].address, kHeap + 0x0800);
  EXPECT_EQ(places[1].address, kHeap + 0x1000);
  EXPECT_TRUE(places[0].exact && places[1].exact);
}

// Of what is absent and what is changed the changed one gets the place that is
// like both.
TEST(Locate, LeastChangedFirst) {
  const Function present = random_function(7, 2048, 1);
  Function absent = present;
  for (std::size_t at = 0; at < 800; ++at) absent.text[at] = static_cast<std::uint8_t>(absent.text[at] + 1);
  Copy copy{kHeap, std::vector<std::uint8_t>(64 * 1024, 0)};
  std::copy(present.text.begin(), present.text.end(), copy.bytes.begin() + 0x4000);
  copy.bytes[0x4000 + 1500] ^= 1;
  const std::vector<Place> places = locate({&absent, &present}, {copy});
  EXPECT_EQ(places[1].address, kHeap + 0x4000);
  EXPECT_EQ(places[1].first, 1500u);
  EXPECT_EQ(places[0].address, 0u);
}

TEST(Locate, ExactOnlyTakesNothingElse) {
  const Function function = random_function(8, 1024, 1);
  Copy copy{kHeap, std::vector<std::uint8_t>(64 * 1024, 0)};
  std::copy(function.text.begin(), function.text.end(), copy.bytes.begin() + 0x4000);
  EXPECT_EQ(locate({&function}, {copy}, {}, Search::kExact)[0].address, kHeap + 0x4000);
  copy.bytes[0x4000 + 500] ^= 1;
  EXPECT_EQ(locate({&function}, {copy}, {}, Search::kExact)[0].address, 0u);
  EXPECT_EQ(locate({&function}, {copy}, {}, Search::kAll)[0].first, 500u);
}

// Texts that match everywhere must not take all memory and time.
TEST(Locate, UniformText) {
  Function function = random_function(9, 4096, 1);
  std::fill(function.text.begin(), function.text.end(), 0);
  const Copy copy{kHeap, std::vector<std::uint8_t>(8 << 20, 0)};
  EXPECT_TRUE(locate({&function}, {copy})[0].exact);
}

}  // namespace
}  // namespace gpuwatch::probe
