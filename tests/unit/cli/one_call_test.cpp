// SPDX-License-Identifier: Apache-2.0
// One call from texts: every form people have them in, and what each mistake
// is told.
#include "cli/one_call.h"

#include <gtest/gtest.h>

#include <random>

#include "decode/decoder.h"
#include "decode/describe.h"

namespace gpuwatch::cli {
namespace {

std::string error_of(const OneCallTexts& texts) {
  auto made = make_one_call(texts);
  return made ? "no error" : made.error().message();
}

std::string bytes_error(std::string_view text) {
  const auto bytes = bytes_from_text(text);
  return bytes ? "no error" : bytes.error().message();
}

OneCallTexts free_call() {
  OneCallTexts texts;
  texts.device = "nvidiactl";
  texts.request = "0xc0104629";
  texts.arg = "2400d0c1 2400d0c1 0200005c 00000000";
  return texts;
}

model::Call decoded(const OneCall& call) {
  return decode::Decoder({580, 159, 4}).decode(model::parse_record(call.record).value());
}

TEST(OneCall, Hex) {
  const std::string wanted("\x24\x00\xc1\xd0", 4);
  for (const char* text : {"2400c1d0", "2400C1D0", "24 00 c1 d0", "0x24,0x00,0xc1,0xd0", "24:00:c1:d0", "2400\nc1d0\n",
                           "0x2400c1d0", "\"\\x24\\x00\\xc1\\xd0\"", "\\x24\\x00\\xc1\\xd0", "\"$\\0\\301\\320\""})
    EXPECT_EQ(*bytes_from_text(text), wanted) << text;
  EXPECT_EQ(*bytes_from_text("\"a\\n\\\"\\\\\\177\""), "a\n\"\\\x7f");
}

TEST(OneCall, WrongBytesNameTheColumn) {
  EXPECT_NE(bytes_error("2400c").find("column 1: 5 hex digits, an odd number"), std::string::npos);
  EXPECT_NE(bytes_error("24 0 c1").find("column 4: 1 hex digits"), std::string::npos);
  EXPECT_NE(bytes_error("24zz").find("column 3: 'z' is no hex digit"), std::string::npos);
  EXPECT_NE(bytes_error("").find("no bytes"), std::string::npos);
  EXPECT_NE(bytes_error(" , ").find("no bytes"), std::string::npos);
  EXPECT_NE(bytes_error("0x").find("0 hex digits"), std::string::npos);
  EXPECT_NE(bytes_error("\"\\x24\"...").find("run it again with -s 65536"), std::string::npos);
  EXPECT_NE(bytes_error("\"\\x24").find("closing quote"), std::string::npos);
  EXPECT_NE(bytes_error("\"\\x2\"").find("two hex digits"), std::string::npos);
  EXPECT_NE(bytes_error("\"\\777\"").find("octal"), std::string::npos);
  EXPECT_NE(bytes_error("\"\\q\"").find("unknown escape"), std::string::npos);
  EXPECT_NE(bytes_error("\\").find("backslash"), std::string::npos);
  EXPECT_NE(bytes_error("\"").find("closing quote"), std::string::npos);
}

TEST(OneCall, RequestsAndDevices) {
  for (const char* request : {"0xc0104629", "3222292009", "0xffffffffc0104629", "41", "0x29",
                              "_IOC(_IOC_READ|_IOC_WRITE, 0x46, 0x29, 0x10)"}) {
    OneCallTexts texts = free_call();
    texts.request = request;
    auto made = make_one_call(texts);
    ASSERT_TRUE(made) << request << ": " << made.error().message();
    EXPECT_EQ(decoded(*made).name, "NV_ESC_RM_FREE") << request;
    EXPECT_EQ(decoded(*made).request, 0xC0104629U);
  }
  for (const char* request : {"", "free", "0xc01046290", "-1", "_IOC(1,2,3)", "_IOC(_IOC_READ, 0x46, 0x129, 0x10)",
                              "_IOC(_IOC_READ, 0x46, 0x29, 0x10, 1)", "0x"}) {
    OneCallTexts texts = free_call();
    texts.request = request;
    EXPECT_NE(error_of(texts).find("--request: '"), std::string::npos) << request;
  }
  for (const char* device : {"/dev/nvidia0", "nvidia12", "nvidiactl"}) {
    OneCallTexts texts = free_call();
    texts.device = device;
    EXPECT_TRUE(make_one_call(texts)) << device;
  }
  for (const char* device : {"", "/dev/null", "nvidia", "nvidia255", "nvidia0x", "nvidia-uvm0", "nvidia-1", "/dev/"}) {
    OneCallTexts texts = free_call();
    texts.device = device;
    EXPECT_NE(error_of(texts).find("--device: unknown device '" + std::string(device) + "'; devices are: nvidiactl"),
              std::string::npos);
  }
}

TEST(OneCall, SizesMustFit) {
  OneCallTexts texts = free_call();
  texts.arg = "2400d0c1";
  EXPECT_NE(error_of(texts).find("--arg: 4 bytes, but the request's argument has 16"), std::string::npos);
  texts = free_call();
  texts.out = "00";
  EXPECT_NE(error_of(texts).find("--out: 1 bytes"), std::string::npos);
  texts.arg.reset();
  texts.out.reset();
  EXPECT_NE(error_of(texts).find("no argument; give its bytes"), std::string::npos);
  texts = free_call();
  texts.params = std::string(140000, 'a');
  EXPECT_NE(error_of(texts).find("more than 64 KiB"), std::string::npos);
}

TEST(OneCall, ReturnValues) {
  for (const auto& [text, value] : {std::pair{"0", 0}, std::pair{"-13", -13}, std::pair{"EACCES", -13}}) {
    OneCallTexts texts = free_call();
    texts.ret = text;
    auto made = make_one_call(texts);
    ASSERT_TRUE(made);
    EXPECT_EQ(decoded(*made).ret, value);
    EXPECT_TRUE(made->outcome_known);
  }
  EXPECT_FALSE(make_one_call(free_call())->outcome_known);
  OneCallTexts texts = free_call();
  texts.ret = "maybe";
  EXPECT_NE(error_of(texts).find("--ret: 'maybe'"), std::string::npos);
}

TEST(OneCall, Xfer) {
  OneCallTexts texts = free_call();
  texts.request = "0xc01046d3";
  texts.arg = "29000000 10000000 0000000000000000";
  texts.params = free_call().arg;
  auto made = make_one_call(texts);
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_EQ(decoded(*made).name, "NV_ESC_RM_FREE");
  texts.params = "00";
  EXPECT_NE(error_of(texts).find("--params: 1 bytes, but the wrapper in --arg says 16"), std::string::npos);
  texts.request = "211";
  texts.arg = "2900";
  EXPECT_NE(error_of(texts).find("16 bytes of its wrapper"), std::string::npos);
}

// Whatever the texts, there is an error or a record that decodes.
TEST(OneCall, HostileTexts) {
  std::mt19937 random(3);
  const std::string alphabet("\"\\x0123456789abcdefgz ,:;-.\n\t\0\xff/_IOC()|", 43);
  const auto text = [&](std::size_t most) {
    std::string out(random() % most, ' ');
    for (char& c : out) c = alphabet[random() % alphabet.size()];
    return out;
  };
  const char* devices[] = {"nvidiactl", "nvidia0", "nvidia-uvm", "nvidia-modeset", "nvidia-nvswitch0"};
  int made_some = 0;
  for (int round = 0; round < 20000; ++round) {
    OneCallTexts texts;
    texts.device = random() % 8 == 0 ? text(12) : devices[random() % 5];
    texts.request = random() % 8 == 0 ? text(40) : std::to_string(random() % 220);
    std::string hex(2 * (random() % 80), '0');
    for (char& c : hex) c = "0123456789abcdef"[random() % 16];
    texts.arg = random() % 4 == 0 ? text(60) : hex;
    if (random() % 2 == 0) texts.params = text(60);
    if (random() % 2 == 0) texts.ret = text(4);
    auto made = make_one_call(texts);
    if (!made) {
      EXPECT_FALSE(made.error().message().empty());
      continue;
    }
    ++made_some;
    const model::Call call = decoded(*made);
    (void)decode::Describer({580, 1, 1}).describe(call);
  }
  EXPECT_GT(made_some, 1000);
}

}  // namespace
}  // namespace gpuwatch::cli
