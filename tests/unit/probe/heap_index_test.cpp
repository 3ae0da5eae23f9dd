// SPDX-License-Identifier: Apache-2.0
// What the index may pass over: nothing that is in memory, changed a little,
// relocated or cut into by something else.
#include "probe/agent/heap_index.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <random>

namespace gpuwatch::probe::agent {
namespace {

Code code_of(const char* name) {
  std::ifstream file(std::string(FATBIN_DATA) + "/" + name, std::ios::binary);
  const std::vector<std::uint8_t> bytes((std::istreambuf_iterator<char>(file)), {});
  Code code;
  EXPECT_EQ(read_code(bytes, code), "");
  EXPECT_FALSE(code.functions.empty());
  return code;
}

// A block of a heap that starts with other code and has `text` at 0x4d00.
Copy heap(const std::vector<std::uint8_t>& text) {
  Copy copy{0x7f00'0000'0000, std::vector<std::uint8_t>(1 << 20)};
  std::mt19937_64 random(7);
  for (std::size_t i = 0; i < 0x4000; ++i) copy.bytes[i] = static_cast<std::uint8_t>(random());
  std::copy(text.begin(), text.end(), copy.bytes.begin() + 0x4d00);
  return copy;
}

TEST(HeapIndex, FindsWhatIsThere) {
  const Code code = code_of("rep_a_90.cubin");
  for (const Function& function : code.functions) {
    EXPECT_TRUE(HeapIndex({heap(function.text)}).may_hold(function)) << function.name;
    EXPECT_TRUE(HeapIndex({heap(function.text)}).may_hold(code));
  }
}

TEST(HeapIndex, PassesOverWhatIsNot) {
  const Code code = code_of("rep_a_90.cubin");
  const Code other = code_of("rep_l_90.cubin");
  const HeapIndex empty({heap({})});
  EXPECT_FALSE(empty.may_hold(code));
  EXPECT_FALSE(empty.may_hold(other));
  EXPECT_FALSE(HeapIndex(std::vector<Copy>{}).may_hold(code));
}

TEST(HeapIndex, ChangesAndRelocationsDoNotHide) {
  Function function;
  function.text.resize(4096);
  std::mt19937_64 random(3);
  for (auto& byte : function.text) byte = static_cast<std::uint8_t>(random());
  for (std::uint64_t at = 0; at < 1024; at += 64) function.relocations.push_back({at, kRelocLow32, 1, 0});
  std::vector<std::uint8_t> resident = expected_text(function, {{1, 0x7f12'3456'7800}});
  for (int i = 0; i < 16; ++i)
    resident[random() % 4096 / 16 * 16] ^= 1;  // as many units as a changed function may have
  EXPECT_TRUE(HeapIndex({heap(resident)}).may_hold(function));
  // Other code of that length is no likeness.
  for (auto& byte : resident) byte = static_cast<std::uint8_t>(random());
  EXPECT_FALSE(HeapIndex({heap(resident)}).may_hold(function));
}

TEST(HeapIndex, TooShortToTell) {
  Function function;
  function.text.assign(16, 0x11);
  EXPECT_TRUE(HeapIndex(std::vector<Copy>{}).may_hold(function));
}

}  // namespace
}  // namespace gpuwatch::probe::agent
