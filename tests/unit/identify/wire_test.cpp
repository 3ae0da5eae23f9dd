// SPDX-License-Identifier: Apache-2.0
// What is written is read back; what is bent gives an error and never more
// memory than its own length allows.
#include "identify/wire.h"

#include <gtest/gtest.h>

#include "unit/identify/support.h"

namespace gpuwatch::identify {
namespace {

std::string written(const Scan& scan, const std::vector<Module>& modules) {
  WireWriter out;
  write(out, scan);
  for (const Module& module : modules) write(out, module);
  return out.take();
}

TEST(Wire, RoundTripOfRealOnes) {
  for (const char* name : {"a_def.o", "d_lto_mix.o", "hostile/entry_psize_zero.fatbin", "chg_base_120.cubin"}) {
    const test::Found found = test::identify_here(test::sample(name));
    const std::string bytes = written(found.scan, found.modules);
    WireReader in(as_bytes(bytes));
    Scan scan;
    read(in, scan);
    std::vector<Module> modules(found.modules.size());
    for (Module& module : modules) read(in, module);
    EXPECT_TRUE(in.done()) << name;
    EXPECT_EQ(written(scan, modules), bytes) << name;
  }
}

TEST(Wire, EveryCutAndBendIsAnErrorOrAnotherValue) {
  const test::Found found = test::identify_here(test::sample("d_lto_mix.o"));
  const std::string bytes = written(found.scan, found.modules);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    WireReader in(as_bytes(bytes).first(size));
    Scan scan;
    read(in, scan);
    for (std::size_t i = 0; i < found.modules.size(); ++i) {
      Module module;
      read(in, module);
    }
    EXPECT_FALSE(in.done()) << size;
  }
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string bent = bytes;
    bent[at] = static_cast<char>(0xff);
    WireReader in(as_bytes(bent));
    Scan scan;
    read(in, scan);
    EXPECT_LT(scan.images.size(), bytes.size());
  }
}

TEST(Wire, Numbers) {
  for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{127}, std::uint64_t{128}, ~std::uint64_t{0}}) {
    WireWriter out;
    out.number(value);
    WireReader in(as_bytes(out.str()));
    EXPECT_EQ(in.number(), value);
    EXPECT_TRUE(in.done());
  }
  WireReader longer(as_bytes(std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10)));
  EXPECT_EQ(longer.number(), 0u);
  EXPECT_FALSE(longer.ok());
}

}  // namespace
}  // namespace gpuwatch::identify
