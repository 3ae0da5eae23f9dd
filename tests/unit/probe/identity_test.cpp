// SPDX-License-Identifier: Apache-2.0
// Names of confirmed code: a form that placing does not change, and an image's hashes.
#include "probe/identity.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "identify/sha256.h"

namespace gpuwatch::probe {
namespace {

std::vector<std::uint8_t> bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {(std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>()};
}

Code code_of_one() {
  Code code;
  code.symbols = {{"", 0, 0}, {"printf", 0, 0}, {"table", 7, 0}, {"", 1, 64}};
  Function function;
  function.name = "f";
  function.section = 1;
  function.text.resize(256);
  for (std::size_t i = 0; i < function.text.size(); ++i) function.text[i] = static_cast<std::uint8_t>(i * 7);
  function.relocations = {
      {16, kRelocLow32, 1, 8}, {32, kRelocHigh32, 1, 8}, {64, kRelocCall55, 2, 0}, {96, kReloc64, 3, 0}};
  code.functions = {function};
  return code;
}

TEST(Form, PlacesAndSymbolNumbersDoNotMatter) {
  const Code code = code_of_one();
  const Function& function = code.functions[0];
  const auto form = [&](const Addresses& addresses) {
    return form_of(code, function, expected_text(function, addresses));
  };
  const Addresses here{{1, 0x7f00'1234'5600}, {2, 0x7f00'0020'0100}, {3, 0x7f00'9999'0000}};
  const Addresses there{{1, 0x7f22'0000'1100}, {2, 0x7f01'7777'0000}, {3, 0x7f44'1111'2200}};
  EXPECT_NE(expected_text(function, here), expected_text(function, there));
  EXPECT_EQ(form(here), form(there));
  Code renumbered = code;
  renumbered.symbols.insert(renumbered.symbols.begin(), {"first", 0, 0});
  for (Relocation& relocation : renumbered.functions[0].relocations) ++relocation.symbol;
  std::reverse(renumbered.functions[0].relocations.begin(), renumbered.functions[0].relocations.end());
  EXPECT_EQ(form_of(renumbered, renumbered.functions[0], expected_text(function, here)), form(here));
}

TEST(Form, CodeSymbolsAndAddendsDoMatter) {
  const Code code = code_of_one();
  const auto form = form_of(code, code.functions[0], code.functions[0].text);
  std::vector<std::uint8_t> text = code.functions[0].text;
  text[0] ^= 1;
  EXPECT_NE(form_of(code, code.functions[0], text), form);
  Code other = code;
  other.symbols[1].name = "system";
  EXPECT_NE(form_of(other, other.functions[0], code.functions[0].text), form);
  other = code;
  other.functions[0].relocations[0].addend = 16;
  EXPECT_NE(form_of(other, other.functions[0], code.functions[0].text), form);
  other = code;
  other.symbols[3].value = 65;
  EXPECT_NE(form_of(other, other.functions[0], code.functions[0].text), form);
}

// Without relocations it is what sha256sum says of the bytes, as T is.
TEST(Form, PlainCodeIsItsOwnForm) {
  Code code = code_of_one();
  code.functions[0].relocations.clear();
  EXPECT_EQ(form_of(code, code.functions[0], code.functions[0].text), identify::sha256(code.functions[0].text));
}

TEST(ImageIdentity, HashesOfACubin) {
  const std::string path = std::string(FATBINS) + "/abi_13_80.cubin";
  const nlohmann::json truth = nlohmann::json::parse(bytes_of(path + ".json"));
  const ImageIdentity identity(false, bytes_of(path), {});
  EXPECT_EQ(identify::to_hex(identity.r()), truth.at("sha256"));
  for (const auto& function : truth.at("cubin").at("funcs")) {
    const FunctionHashes* hashes = identity.of(function.at("name"));
    ASSERT_NE(hashes, nullptr);
    EXPECT_EQ(identify::to_hex(hashes->t), function.at("text_sha256"));
    EXPECT_NE(hashes->k, identify::Digest{});
  }
  EXPECT_EQ(identity.of("nothing"), nullptr);
}

// R is of the text as it lies in the file, K and T of what was made of it.
TEST(ImageIdentity, HashesOfPtx) {
  const std::string text = ".version 8.0\n.target sm_80\n";
  std::vector<std::uint8_t> image(text.begin(), text.end());
  image.push_back(0);
  const std::vector<std::uint8_t> cubin = bytes_of(std::string(FATBINS) + "/abi_13_80.cubin");
  const ImageIdentity made(true, image, cubin);
  EXPECT_EQ(made.r(), identify::sha256(identify::as_bytes(text)));
  const ImageIdentity same(false, cubin, {});
  ASSERT_NE(made.of("k"), nullptr);
  EXPECT_EQ(made.of("k")->k, same.of("k")->k);
  EXPECT_EQ(ImageIdentity(true, image, {}).of("k"), nullptr);
  // What is half there vouches for nothing.
  EXPECT_EQ(ImageIdentity(false, {cubin.begin(), cubin.begin() + 900}, {}).of("k"), nullptr);
}

}  // namespace
}  // namespace gpuwatch::probe
