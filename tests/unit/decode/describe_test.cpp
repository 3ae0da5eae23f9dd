// SPDX-License-Identifier: Apache-2.0
// One call of each shape, field by field: names, units, values before and
// after, and what happens to bytes nobody knows.
#include "decode/describe.h"

#include <gtest/gtest.h>

#include "decode/decoder.h"
#include "decode/driver_seen.h"
#include "unit/decode/calls.h"

namespace gpuwatch::decode {
namespace {

using model::DescribedField;
using model::DescribedPart;
using model::Description;
using test::Argument;
using test::Blob;
using test::escape_call;
using test::head_on;
using test::parsed;

const model::DriverVersion k580{580, 159, 4};

struct Described {
  model::Call call;
  Description description;
  Unnamed unnamed;

  const DescribedField& field(std::string_view name, std::string_view role = "") const {
    for (const DescribedPart& part : description.parts)
      for (const DescribedField& field : part.fields)
        if (field.name == name && (role.empty() || role == part.role)) return field;
    static const DescribedField kNone = [] {
      DescribedField none;
      none.after = model::FieldValue{{"absent"}, ""};
      return none;
    }();
    return kNone;
  }
  std::string value(std::string_view name, std::string_view role = "") const {
    return field(name, role).value().items.front();
  }
  std::string meaning(std::string_view name, std::string_view role = "") const {
    return field(name, role).value().meaning;
  }
};

Described described(const Blob& blob, model::DriverVersion version = k580) {
  const Decoder decoder(version);
  const Describer describer(version);
  Described result;
  result.call = decoder.decode(parsed(blob));
  result.description = describer.describe(result.call);
  result.unnamed = describer.unnamed();
  return result;
}

Argument alloc64(std::uint32_t rm_class) {
  return Argument(48).u32(0, 0xC1D00024).u32(4, 0xC1D00024).u32(8, 0x5C000002).u32(12, rm_class).u64(16, 0x7000);
}

TEST(Describe, AllocWithItsParameters) {
  const Argument in = alloc64(0x40);
  Argument out = in;
  out.u32(40, 0x51);
  const std::string params = Argument(128).u32(8, 0x1C101).u32(24, 0x11800000).u64(64, 2 << 20).u32(28, 5).bytes();
  const auto d = described(escape_call(head_on(GPUWATCH_NODE_CTL), 43, in, out,
                                       {{GPUWATCH_CAP_NESTED0_IN, params}, {GPUWATCH_CAP_NESTED0_OUT, params}}));
  ASSERT_EQ(d.description.parts.size(), 2U);
  EXPECT_EQ(d.description.parts[0].role, "argument");
  EXPECT_EQ(d.description.parts[0].struct_name, "NVOS64_PARAMETERS");
  EXPECT_EQ(d.description.parts[1].struct_name, "NV_MEMORY_ALLOCATION_PARAMS");
  EXPECT_EQ(d.value("hRoot"), "0xc1d00024");
  EXPECT_EQ(d.field("hRoot").type, "handle");
  EXPECT_EQ(d.meaning("hClass"), "NV01_MEMORY_LOCAL_USER");
  EXPECT_EQ(d.value("pAllocParms"), "0x7000");
  EXPECT_EQ(d.value("status"), "0x00000051");
  EXPECT_EQ(d.meaning("status"), "NV_ERR_NO_MEMORY");
  EXPECT_FALSE(d.field("status").before) << "what was there before the call is nobody's";
  EXPECT_EQ(d.value("size"), "2097152");
  EXPECT_EQ(d.field("size").unit, "bytes");
  EXPECT_EQ(d.meaning("size"), "2 MiB");
  EXPECT_EQ(d.meaning("flags", "parameters"),
            "IGNORE_BANK_PLACEMENT|ALIGNMENT_FORCE|MEMORY_HANDLE_PROVIDED|MAP_NOT_REQUIRED|PERSISTENT_VIDMEM");
  EXPECT_EQ(d.meaning("attr"), "PAGE_HUGE|VIDMEM|CONTIGUOUS|UNCACHED");
  EXPECT_EQ(d.unnamed.total(), 0U);
}

TEST(Describe, OlderFormIsToldBySize) {
  const Argument in = Argument(32).u32(0, 1).u32(12, 0x80).u32(24, 56);
  const auto d = described(escape_call(head_on(GPUWATCH_NODE_CTL), 43, in, in));
  EXPECT_EQ(d.description.parts[0].struct_name, "NVOS21_PARAMETERS");
  EXPECT_EQ(d.value("paramsSize"), "56");
}

TEST(Describe, WhatTheCallChanged) {
  const Argument in = Argument(56).u32(0, 7).u64(24, 65536).u32(44, 0x80002).u32(48, 16);
  Argument out = in;
  out.u64(32, 0x104002BB0000);
  const auto d = described(escape_call(head_on(GPUWATCH_NODE_CTL), 78, in, out));
  const DescribedField& address = d.field("params.pLinearAddress");
  EXPECT_TRUE(address.changed());
  EXPECT_EQ(address.before->items.front(), "0x0");
  EXPECT_EQ(address.after->items.front(), "0x104002bb0000");
  EXPECT_FALSE(d.field("params.length").changed());
  EXPECT_EQ(d.meaning("params.length"), "64 KiB");
  EXPECT_EQ(d.meaning("params.flags"), "WRITE_ONLY|RESERVE_ON_UNMAP");
}

TEST(Describe, AfterAnErrorNothingIsTheDrivers) {
  const Argument in = Argument(16).u32(0, 1);
  Argument out = in;
  out.u32(12, 0x1F);
  const auto d = described(escape_call(head_on(GPUWATCH_NODE_CTL), 41, in, out, {}, -EFAULT));
  EXPECT_EQ(d.value("status"), "absent");
  EXPECT_EQ(d.description.parts[0].missing, 0U);
  EXPECT_FALSE(d.field("hRoot").after);
}

TEST(Describe, UnionGoesByItsFunction) {
  const Argument alloc = Argument(184).u32(8, 2).u32(44, 0x5C000011).u64(88, 1 << 21).u32(56, 0x02000000);
  const auto d = described(escape_call(head_on(GPUWATCH_NODE_CTL), 74, alloc, alloc));
  EXPECT_EQ(d.meaning("function"), "ALLOC_SIZE");
  EXPECT_EQ(d.value("data.AllocSize.hMemory"), "0x5c000011");
  EXPECT_EQ(d.value("data.AllocSize.size"), "2097152");
  EXPECT_EQ(d.value("data.Free.hMemory"), "absent");
  const Argument other = Argument(184).u32(8, 77).u32(44, 0x5C000011);
  const auto unknown = described(escape_call(head_on(GPUWATCH_NODE_CTL), 74, other, other));
  EXPECT_EQ(unknown.value("data.AllocSize.hMemory"), "absent");
  EXPECT_EQ(unknown.value("function"), "77");
  EXPECT_EQ(unknown.unnamed.enums, 2U) << "once before the call, once after it";
}

TEST(Describe, ArrayOfStructsInBothShapes) {
  Argument cards(144);
  cards.put<std::uint8_t>(72, 1).u32(72 + 16, 0x600).u64(72 + 48, 1ULL << 38);
  const auto d = described(escape_call(head_on(GPUWATCH_NODE_CTL), 200, cards, cards));
  EXPECT_EQ(d.value("[1].valid"), "true");
  EXPECT_EQ(d.value("[1].gpu_id"), "0x600");
  EXPECT_EQ(d.meaning("[1].fb_size"), "256 GiB");
  EXPECT_EQ(d.value("[0].valid"), "absent") << "all of it is 0";
  EXPECT_EQ(d.description.parts[0].elements, 2U);

  Argument map(9264);
  map.u64(0, 0x200000000).u64(8, 2 << 20).u32(9248, 9).u32(9252, 0xC1D00024);
  map.u32(24 + 36 * 3, 0xDDCCBBAA).u32(24 + 36 * 3 + 16, 1);
  const auto m = described(test::uvm_call(33, map));
  EXPECT_EQ(m.value("perGpuAttributes[3].gpuUuid.uuid").substr(0, 8), "aabbccdd");
  EXPECT_EQ(m.meaning("perGpuAttributes[3].gpuMappingType"), "ReadWriteAtomic");
  EXPECT_EQ(m.value("perGpuAttributes[0].gpuMappingType"), "absent");
  EXPECT_EQ(m.value("hClient"), "0xc1d00024");
}

TEST(Describe, OnlyTheEndsOfALargeArgument) {
  const std::string before = Argument(256).u64(0, 0x7F0000000000).bytes();
  const std::string after = Argument(32).u32(20, 0xC1D00024).u32(28, 0x56).bytes();
  const auto d = described(
      test::ioctl_record(head_on(GPUWATCH_NODE_UVM), 33, 0,
                         {{GPUWATCH_CAP_ARG_IN, before, 0, 9264}, {GPUWATCH_CAP_ARG_OUT, after, 9232, 9264}}));
  EXPECT_EQ(d.value("base"), "0x7f0000000000");
  EXPECT_EQ(d.value("hClient"), "0xc1d00024");
  EXPECT_EQ(d.meaning("rmStatus"), "NV_ERR_NOT_SUPPORTED");
  EXPECT_EQ(d.description.parts[0].missing, 0U);
}

TEST(Describe, SizeOfAnotherBranchIsReadAsThatBranchHasIt) {
  const Argument older = Argument(56).u64(40, 0x1000).u32(48, 0);
  const auto d = described(escape_call(head_on(GPUWATCH_NODE_CTL), 87, older, older));
  EXPECT_EQ(d.description.parts[0].layout_branch, "570");
  EXPECT_EQ(d.description.parts[0].table_bytes, 64U);
  EXPECT_EQ(d.value("dmaOffset"), "0x1000");
  EXPECT_EQ(d.value("kindOverride"), "absent");
  const Argument freed = Argument(16).u64(0, 0x7000).u32(8, 0x1F);
  const auto f = described(test::uvm_call(34, freed));
  EXPECT_EQ(f.description.parts[0].layout_branch, "590");
  EXPECT_EQ(f.meaning("rmStatus"), "NV_ERR_INVALID_ARGUMENT");
}

TEST(Describe, XferIsUnwrapped) {
  gpuwatch_rec head = head_on(GPUWATCH_NODE_GPU, 2);
  head.flags = GPUWATCH_F_XFER;
  const Argument inner = Argument(32).u32(8, 0x101);
  const std::string wrapper = Argument(16).u32(0, 42).u32(4, 32).u64(8, 0x7FFE0000).bytes();
  Blob blob = escape_call(head, 211, inner, inner, {{GPUWATCH_CAP_XFER_IN, wrapper}});
  gpuwatch_rec_ioctl fixed{};
  std::memcpy(&fixed, blob.data() + sizeof head, sizeof fixed);
  fixed.cmd = 0xC01046D3;
  fixed.inner_cmd = 42;
  fixed.inner_size = 32;
  std::memcpy(blob.data() + sizeof head, &fixed, sizeof fixed);
  const auto d = described(blob);
  ASSERT_EQ(d.description.parts.size(), 2U);
  EXPECT_EQ(d.description.parts[0].role, "wrapper");
  EXPECT_EQ(d.value("ptr"), "0x7ffe0000");
  EXPECT_EQ(d.meaning("cmd", "argument"), "NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION");
}

TEST(Describe, DisplayCall) {
  const Argument argument = Argument(16).u32(0, 9).u32(4, 4).u64(8, 0x1000);
  const auto d = described(test::ioctl_record(
      head_on(GPUWATCH_NODE_MODESET), 0xC0106D00, 0,
      {{GPUWATCH_CAP_ARG_IN, argument.bytes()}, {GPUWATCH_CAP_NESTED0_IN, std::string("\x2a\0\0\1", 4)}}));
  EXPECT_EQ(d.meaning("cmd"), "NVKMS_IOCTL_SET_MODE");
  EXPECT_EQ(d.value("unknown", "parameters"), "2a000001");
  EXPECT_EQ(d.unnamed.structs, 1U);
}

TEST(Describe, ControlWithoutANameIsToldByItsFamily) {
  for (const auto& [command, family] : {std::pair{0x20809009U, "a command of CLK_LEGACY_NON_PRIVILEGED"},
                                        std::pair{0x20810108U, "a command of NV2081_BINAPI"}}) {
    const Argument in = Argument(32).u32(8, command).u32(24, 4);
    const auto d = described(
        escape_call(head_on(GPUWATCH_NODE_CTL), 42, in, in, {{GPUWATCH_CAP_NESTED0_IN, std::string("abcd")}}));
    EXPECT_EQ(d.meaning("cmd"), family);
    EXPECT_EQ(d.value("unknown", "parameters"), "61626364");
  }
}

TEST(Describe, RolesWhereTheLayoutIsNotKnown) {
  // NV2080_CTRL_CMD_DMABUF_EXPORT_OBJECTS_TO_FD: some values are known, not all fields.
  Argument in(32);
  in.u32(8, 0x20801A0B).u32(24, 8);
  const auto d =
      described(escape_call(head_on(GPUWATCH_NODE_CTL), 42, in, in, {{GPUWATCH_CAP_NESTED0_IN, std::string(8, '\1')}}));
  ASSERT_EQ(d.description.parts.size(), 2U);
  EXPECT_FALSE(d.description.parts[1].known);
  EXPECT_EQ(d.value("unknown"), "0101010101010101");
}

TEST(Describe, BytesOfNoFieldAreTold) {
  // A caller newer than the tables: 16 bytes more than the newest struct.
  Argument in(64 + 16);
  in.u64(64, 0x1122334455667788);
  const auto d = described(escape_call(head_on(GPUWATCH_NODE_CTL), 87, in, in));
  EXPECT_EQ(d.value("unknown"), "88776655443322110000000000000000");
  EXPECT_EQ(d.field("unknown").offset, 64U);
  EXPECT_EQ(d.unnamed.bytes, 16U);
  // Padding is no news.
  Argument padded(56);
  padded.u32(12, 0xDEADBEEF);
  EXPECT_EQ(described(escape_call(head_on(GPUWATCH_NODE_CTL), 78, padded, padded)).unnamed.bytes, 0U);
}

TEST(Describe, UnknownNumbersAreCounted) {
  const auto escape = described(escape_call(head_on(GPUWATCH_NODE_CTL), 250, Argument(8).u32(0, 5), Argument(8)));
  EXPECT_EQ(escape.unnamed.structs, 1U);
  EXPECT_EQ(escape.unnamed.bytes, 8U);
  EXPECT_EQ(escape.field("unknown").before->items.front(), "0500000000000000");
  Argument out(16);
  out.u32(12, 0x4242);
  EXPECT_EQ(described(escape_call(head_on(GPUWATCH_NODE_CTL), 41, Argument(16), out)).unnamed.statuses, 1U);
  EXPECT_EQ(described(escape_call(head_on(GPUWATCH_NODE_CTL), 43, alloc64(0xEEEE), alloc64(0xEEEE))).unnamed.classes,
            2U);
  Argument flags(56);
  flags.u32(44, 0x20);
  const auto bits = described(escape_call(head_on(GPUWATCH_NODE_CTL), 78, flags, flags));
  EXPECT_EQ(bits.meaning("params.flags"), "READ_WRITE|0x20");
  EXPECT_EQ(bits.unnamed.bits, 2U);
}

TEST(Describe, RecordsWithoutArgumentsHaveNoParts) {
  EXPECT_TRUE(described(test::open_record(head_on(GPUWATCH_NODE_GPU))).description.parts.empty());
  EXPECT_TRUE(described(test::ioctl_record(head_on(GPUWATCH_NODE_UVM), 0x30000002, 0)).description.parts.empty());
}

// --- files -----------------------------------------------------------------

class Files : public testing::Test {
 protected:
  gpuwatch_rec on(gpuwatch_node_kind kind, std::uint64_t file_id, std::uint32_t minor = 0) {
    gpuwatch_rec head = head_on(kind, minor);
    head.file_id = file_id;
    return head;
  }
  // Feeds a record; gives what a descriptor in it means.
  std::string see(const Blob& blob, std::string_view field = "") {
    const model::Call call = decoder.decode(parsed(blob));
    describer.observe(call);
    for (const DescribedPart& part : describer.describe(call).parts)
      for (const DescribedField& described : part.fields)
        if (described.name == field) return described.value().meaning;
    return "";
  }
  void open(gpuwatch_node_kind kind, std::uint64_t file_id, std::uint32_t minor = 0) {
    see(test::open_record(on(kind, file_id, minor)));
  }
  void close(gpuwatch_node_kind kind, std::uint64_t file_id) {
    gpuwatch_rec head = on(kind, file_id);
    head.type = GPUWATCH_REC_RELEASE;
    see(test::finish_record(head, Blob(sizeof(gpuwatch_rec_release))));
  }
  void mmap(gpuwatch_node_kind kind, std::uint64_t file_id) {
    gpuwatch_rec head = on(kind, file_id);
    head.type = GPUWATCH_REC_MMAP;
    Blob payload;
    test::append_struct(payload, gpuwatch_rec_mmap{});
    see(test::finish_record(head, payload));
  }
  std::string registered(std::uint64_t on_file, std::int32_t fd) {
    const Argument in = Argument(4).put(0, fd);
    return see(escape_call(on(GPUWATCH_NODE_GPU, on_file), 201, in, in), "ctl_fd");
  }
  std::string mapped(std::int32_t fd) {
    const Argument in = Argument(56).put(48, fd);
    return see(escape_call(on(GPUWATCH_NODE_CTL, 1, 255), 78, in, in), "fd");
  }

  Decoder decoder{k580};
  Describer describer{k580};
};

TEST_F(Files, TheOnlyOneOfItsKind) {
  open(GPUWATCH_NODE_CTL, 1, 255);
  open(GPUWATCH_NODE_GPU, 2);
  EXPECT_EQ(registered(2, 9), "nvidiactl file 0x1");
  open(GPUWATCH_NODE_CTL, 3, 255);
  EXPECT_EQ(registered(2, 9), "nvidiactl file 0x1") << "known from before";
  EXPECT_EQ(registered(2, 12), "") << "one of two";
  close(GPUWATCH_NODE_CTL, 1);
  EXPECT_EQ(registered(2, 9), "nvidiactl file 0x3") << "the number may be used anew";
  EXPECT_EQ(registered(2, -1), "");
}

TEST_F(Files, OpenedToBeMapped) {
  open(GPUWATCH_NODE_CTL, 1, 255);
  open(GPUWATCH_NODE_GPU, 2, 4);
  EXPECT_EQ(mapped(16), "nvidia4 file 0x2");
  mmap(GPUWATCH_NODE_GPU, 2);
  EXPECT_EQ(mapped(16), "nvidia4 file 0x2") << "it was mapped under this number";
  close(GPUWATCH_NODE_GPU, 2);
  EXPECT_EQ(mapped(16), "");
}

TEST_F(Files, HostileStreamsStayBounded) {
  FileTable table;
  model::Call call;
  call.kind = model::CallKind::kOpen;
  for (std::uint64_t i = 1; i < FileTable::kMostFiles + 5000; ++i) {
    call.record.head.file_id = i;
    call.record.head.tgid = static_cast<std::uint32_t>(i % 777);
    call.record.head.tid = static_cast<std::uint32_t>(i);
    call.record.head.node_kind = static_cast<std::uint8_t>(i % 12);
    table.observe(call);
  }
  EXPECT_LE(table.files(), FileTable::kMostFiles);
}

// --- the driver's version ----------------------------------------------------

std::optional<model::DriverVersion> seen(const std::string& text, std::uint32_t reply, std::int64_t ret = 0) {
  Argument in(72);
  Argument out(72);
  out.u32(4, reply);
  for (std::size_t i = 0; i < text.size() && i < 64; ++i) out.put(8 + i, text[i]);
  const Blob blob = escape_call(head_on(GPUWATCH_NODE_CTL), 210, in, out, {}, ret);
  return driver_seen(Decoder().decode(parsed(blob)));
}

TEST(DriverSeen, WhatTheDriverConfirmed) {
  EXPECT_EQ(seen("575.51.02", 1), (model::DriverVersion{575, 51, 2}));
  EXPECT_FALSE(seen("575.51.02", 0)) << "a text of the caller alone";
  EXPECT_FALSE(seen("575.51.02", 1, -EINVAL));
  EXPECT_FALSE(seen("", 1));
  EXPECT_FALSE(seen(std::string(64, '5'), 1));
  const Blob other = escape_call(head_on(GPUWATCH_NODE_CTL), 41, Argument(72), Argument(72).u32(4, 1));
  EXPECT_FALSE(driver_seen(Decoder().decode(parsed(other))));
}

}  // namespace
}  // namespace gpuwatch::decode
