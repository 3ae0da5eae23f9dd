// SPDX-License-Identifier: Apache-2.0
// Real argument bytes of a real program, with names another decoder gave them.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "decode/decoder.h"
#include "unit/decode/calls.h"

namespace gpuwatch::decode {
namespace {

gpuwatch_rec head_of(const std::string& node) {
  if (node == "nvidiactl") return test::head_on(GPUWATCH_NODE_CTL, 255);
  if (node == "nvidia-uvm") return test::head_on(GPUWATCH_NODE_UVM);
  return test::head_on(GPUWATCH_NODE_GPU);
}

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

TEST(H200Log, EveryNameAgrees) {
  std::ifstream log(std::string(DECODE_DATA) + "/h200-580-torch.txt");
  ASSERT_TRUE(log) << "data file is missing";
  const Decoder decoder({580, 159, 4});
  std::string line;
  int calls = 0;
  int unnamed_controls = 0;
  while (std::getline(log, line)) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string node, request, hex, name, detail;
    std::int64_t ret = 0;
    words >> node >> request >> ret >> hex >> name >> detail;
    std::vector<test::CaptureSpec> captures;
    if (hex != "-") captures.push_back({GPUWATCH_CAP_ARG_IN, from_hex(hex)});
    const auto blob =
        test::ioctl_record(head_of(node), static_cast<std::uint32_t>(std::stoul(request, nullptr, 16)), ret, captures);
    const model::Call call = decoder.decode(test::parsed(blob));
    EXPECT_EQ(call.name, name) << line;
    EXPECT_EQ(call.detail.empty() ? "-" : std::string(call.detail), detail) << line;
    unnamed_controls += call.has(model::Field::kControl) && call.detail.empty();
    ++calls;
  }
  EXPECT_GE(calls, 275);
  EXPECT_EQ(decoder.stats().unknown_escapes, 0U);
  EXPECT_EQ(decoder.stats().unknown_uvm, 0U);
  EXPECT_EQ(decoder.stats().unknown_classes, 0U);
  EXPECT_EQ(decoder.stats().size_mismatches, 0U);
  RecordProperty("unnamed_controls", unnamed_controls);
  std::printf("%d calls, %d controls without a name\n", calls, unnamed_controls);
}

}  // namespace
}  // namespace gpuwatch::decode
