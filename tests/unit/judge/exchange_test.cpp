// SPDX-License-Identifier: Apache-2.0
#include "judge/exchange.h"

#include "make.h"

namespace gpuwatch::judge {
namespace {

std::string exported(Baseline& baseline) {
  std::string text;
  EXPECT_TRUE(export_baseline(baseline, [&](std::string_view line) {
                text += line;
                return base::Status();
              }).ok());
  return text;
}

base::Result<Import> import_text(std::string_view text, std::vector<Entry>& entries, const ExchangeLimits& limits = {},
                                 std::size_t step = 7) {
  return import_lines(
      [&](std::span<char> out) -> base::Result<std::size_t> {
        const std::size_t n = std::min({step, out.size(), text.size()});
        std::copy_n(text.begin(), n, out.begin());
        text.remove_prefix(n);
        return n;
      },
      "f",
      [&](const BaselineInfo&, std::span<const Entry> batch) {
        entries.insert(entries.end(), batch.begin(), batch.end());
        return base::Status();
      },
      limits);
}

TEST_F(WithBaselines, ExportAndImportGiveTheSameBytes) {
  const std::string odd("tab\t nl\n quote\" \xff\xc3 \x01latin1:", 27);
  auto suffixed = cubin("two", {kernel(odd, "z"), kernel("a", "a", false)});
  suffixed.sm_suffix = 'a';
  suffixed.origin = model::CodeOrigin::kMemory;
  Baseline first = make("x", {with_resident(entry(suffixed, odd), odd, "c"),
                              with_resident(with_resident(entry(ptx("p")), "580.1", "z"), "580.1", "a")});
  const std::string text = exported(first);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
  std::vector<Entry> entries;
  auto import = import_text(text, entries);
  ASSERT_TRUE(import.ok()) << import.error().message();
  EXPECT_EQ(import->info, first.info());
  EXPECT_EQ(import->modules, 2u);
  auto second = Baseline::open_or_make(file("y"), import->info);
  ASSERT_TRUE(second->add(entries).ok());
  EXPECT_EQ(exported(*second), text);
  EXPECT_EQ(*contents_digest(first), *contents_digest(*second));
  EXPECT_EQ(*contents_digest(first), digest(text)) << "what sha256sum says of the unsigned export";
  // The order in which modules came is no part of the contents.
  Baseline third = make("z", {entry(ptx("p")), entry(suffixed, odd)});
  EXPECT_EQ(exported(third).find("residents"), std::string::npos) << "none: nothing is said of them";
  EXPECT_NE(*contents_digest(third), *contents_digest(first)) << "its label differs";
}

TEST_F(WithBaselines, HostileText) {
  Baseline baseline = make("x", {entry(cubin("one", {kernel("a", "a")}))});
  const std::string text = exported(baseline);
  const std::string head = text.substr(0, text.find('\n') + 1);
  const std::string line = text.substr(head.size());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string out = line;
    const std::size_t at = out.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return head + out.replace(at, from.size(), to);
  };
  const std::string r = model::hex_of(digest("rone"));
  struct Case {
    std::string text;
    const char* expect;
  };
  const Case cases[] = {
      {"", "f: empty, not an exported baseline"},
      {"\n", "f:1: not JSON"},
      {"{}", "f:1: not an exported baseline"},
      {"[]", "f:1: not an exported baseline"},
      {"{\"gpuwatch_baseline\":2,\"stance\":\"known\"}", "form 2 of exported baselines"},
      {"{\"gpuwatch_baseline\":1,\"stance\":\"maybe\",\"label\":\"\",\"created_unix\":0}",
       "stance: must be known or denied"},
      {"{\"gpuwatch_baseline\":1,\"stance\":\"known\",\"label\":\"\",\"created_unix\":-1}",
       "created_unix: not a whole number"},
      {head + "{}", "f:2: lacks r"},
      {head + "nonsense", "f:2: not JSON"},
      {head + std::string(100000, '['), "f:2: nested deeper"},
      {head + "\xff\xfe", "f:2: not JSON"},
      {with(r, r.substr(1)), "r: not 64 lower-case"},
      {with(r, "A" + r.substr(1)), "r: not 64 lower-case"},
      {with("\"sm\":90", "\"sm\":90.5"), "sm: not a whole number"},
      {with("\"sm\":90", "\"sm\":-1"), "sm: not a whole number"},
      {with("\"sm\":90", "\"sm\":99999999999999999999"), "sm: not a whole number"},
      {with("\"sm\":90", "\"sm\":90,\"sm\":80"), "a key is given twice"},
      {with("\"sm\":90", "\"sm\":90,\"smm\":80"), "unknown key 'smm'"},
      {with("\"kind\":\"elf\"", "\"kind\":\"exe\""), "kind: must be"},
      {with("\"origin\":\"file\"", "\"origin\":\"net\""), "origin: must be"},
      {with("\"sm_suffix\":\"\"", "\"sm_suffix\":\"ab\""), "sm_suffix: at most"},
      {with("\"entry\":true", "\"entry\":1"), "kernel 0: entry: not true or false"},
      {with("\"registers\":16", "\"registers\":4294967296"), "kernel 0: registers: not a whole number"},
      {with("\"name\":\"a\"", "\"name\":7"), "kernel 0: name: not a string"},
      {with("\"name\":\"a\"", "\"name\":\"\\u0001x\""), "kernel 0: name: text that is not written"},
      {with("\"name\":\"a\"", "\"name\":\"\\u0001latin1:a\""), "kernel 0: name: text that is not written"},
      {with("\"path\":\"/usr/lib/libx.so\"", "\"path\":null"), "source 0: path: not a string"},
      {with("\"sources\":[", "\"sources\":[{},"), "source 0: lacks path"},
      {with("\"sm\":90", "\"sm\":90,\"residents\":[{}]"), "resident 0: lacks name"},
      {with("\"sm\":90", "\"sm\":90,\"residents\":7"), "residents: not an array"},
      {text + "{\"signature\":{\"algorithm\":\"rsa\",\"public_key\":\"\",\"value\":\"\"}}", "must be ed25519"},
      {text + "{\"signature\":7}", "f:3:"},
      {text + "{\"signature\":{\"algorithm\":\"ed25519\",\"public_key\":\"\",\"value\":\"\"}}\n" + line,
       "f:4: nothing may follow the signature"},
  };
  for (const Case& c : cases) {
    std::vector<Entry> entries;
    const auto import = import_text(c.text, entries, {}, 4096);
    ASSERT_FALSE(import.ok()) << c.text.substr(0, 200) << " wanted " << c.expect;
    EXPECT_NE(import.error().message().find(c.expect), std::string::npos) << import.error().message();
  }
  ExchangeLimits small;
  small.line_bytes = 100;
  std::vector<Entry> entries;
  EXPECT_EQ(import_text(text, entries, small).error().code(), base::Code::kLimit);
  small = {};
  small.modules = 0;
  EXPECT_EQ(import_text(text, entries, small).error().code(), base::Code::kLimit);
  small = {};
  small.kernels_per_module = 0;
  EXPECT_FALSE(import_text(text, entries, small).ok());
  // Without the last newline it is whole all the same.
  EXPECT_TRUE(import_text(std::string_view(text).substr(0, text.size() - 1), entries).ok());
}

}  // namespace
}  // namespace gpuwatch::judge
