// SPDX-License-Identifier: Apache-2.0
// One call of each shape: names, values, status at the branch's offset, and
// what happens to numbers nobody knows.
#include "decode/decoder.h"

#include <gtest/gtest.h>

#include "unit/decode/calls.h"

namespace gpuwatch::decode {
namespace {

using model::Call;
using model::CallKind;
using model::Category;
using model::Field;
using model::Tag;
using test::Argument;
using test::Blob;
using test::escape_call;
using test::head_on;
using test::parsed;

const model::DriverVersion k580{580, 159, 4};

Argument alloc64(std::uint32_t rm_class) {
  return Argument(48).u32(0, 0xC1D00024).u32(4, 0xC1D00024).u32(8, 0x5C000002).u32(12, rm_class).u64(16, 0x7000);
}

TEST(Decoder, RmAllocInBothForms) {
  const Decoder decoder(k580);
  const std::string params = Argument(56).u32(0, 3).bytes();
  const Blob newer =
      escape_call(head_on(GPUWATCH_NODE_CTL), 43, alloc64(0x80), alloc64(0x80), {{GPUWATCH_CAP_NESTED0_IN, params}});
  const Call call = decoder.decode(parsed(newer));
  EXPECT_EQ(call.kind, CallKind::kIoctl);
  EXPECT_EQ(call.name, "NV_ESC_RM_ALLOC");
  EXPECT_EQ(call.detail, "NV01_DEVICE_0");
  EXPECT_EQ(call.category, Category::kDevice);
  EXPECT_EQ(call.tag, Tag::kAlloc);
  EXPECT_EQ(call.get(Field::kClient), 0xC1D00024U);
  EXPECT_EQ(call.get(Field::kObject), 0x5C000002U);
  EXPECT_EQ(call.get(Field::kDevice), 3U);
  EXPECT_EQ(call.params_expected_bytes, 56U);
  EXPECT_EQ(call.status_name, "NV_OK");
  EXPECT_FALSE(call.failed);
  EXPECT_TRUE(call.named);

  const Argument old_in = Argument(32).u32(0, 1).u32(4, 1).u32(8, 2).u32(12, 0x2080).u32(24, 4);
  Argument old_out = old_in;
  old_out.u32(28, 0x56);
  const Blob older = escape_call(head_on(GPUWATCH_NODE_CTL), 43, old_in, old_out);
  const Call refused = decoder.decode(parsed(older));
  EXPECT_EQ(refused.detail, "NV20_SUBDEVICE_0");
  EXPECT_EQ(refused.get(Field::kParamsSize), 4U);
  EXPECT_EQ(refused.status_name, "NV_ERR_NOT_SUPPORTED");
  EXPECT_TRUE(refused.failed);
  EXPECT_FALSE(refused.denied);
  EXPECT_EQ(decoder.stats().size_mismatches, 0U);
}

TEST(Decoder, HandleChosenByTheDriverIsTaken) {
  Argument out = alloc64(0);
  out.u32(8, 0xC1D00099);
  const Blob blob = escape_call(head_on(GPUWATCH_NODE_CTL), 43, Argument(48), out);
  const Call call = Decoder(k580).decode(parsed(blob));
  EXPECT_EQ(call.detail, "NV01_ROOT");
  EXPECT_EQ(call.get(Field::kObject), 0xC1D00099U);
}

TEST(Decoder, RmControl) {
  const Argument in = Argument(32).u32(0, 1).u32(4, 2).u32(8, 0x20800102).u64(16, 0x1000).u32(24, 564);
  Argument out = in;
  out.u32(28, 0x1B);
  const Decoder decoder(k580);
  const Blob blob = escape_call(head_on(GPUWATCH_NODE_CTL), 42, in, out);
  const Call call = decoder.decode(parsed(blob));
  EXPECT_EQ(call.name, "NV_ESC_RM_CONTROL");
  EXPECT_EQ(call.detail, "NV2080_CTRL_CMD_GPU_GET_INFO_V2");
  EXPECT_EQ(call.interface, "GPU");
  EXPECT_EQ(call.privilege, "user");
  EXPECT_EQ(call.get(Field::kParamsSize), 564U);
  EXPECT_EQ(call.params_expected_bytes, 564U);
  EXPECT_EQ(call.status_name, "NV_ERR_INSUFFICIENT_PERMISSIONS");
  EXPECT_TRUE(call.failed);
  EXPECT_TRUE(call.denied);
}

TEST(Decoder, WarningIsNoFailure) {
  Argument out(16);
  out.u32(12, 0x10006);
  const Blob blob = escape_call(head_on(GPUWATCH_NODE_CTL), 41, Argument(16), out);
  const Call call = Decoder(k580).decode(parsed(blob));
  EXPECT_EQ(call.status_name, "NV_WARN_NOTHING_TO_DO");
  EXPECT_FALSE(call.failed);
}

TEST(Decoder, FailedSystemCallHasNoStatus) {
  Argument out(16);
  out.u32(12, 0x1B);
  const Blob blob = escape_call(head_on(GPUWATCH_NODE_CTL), 41, Argument(16), out, {}, -EFAULT);
  const Call call = Decoder(k580).decode(parsed(blob));
  EXPECT_FALSE(call.has(Field::kStatus));
  EXPECT_TRUE(call.failed);
  EXPECT_FALSE(call.denied);
  EXPECT_EQ(call.ret, -EFAULT);
}

TEST(Decoder, XferIsUnwrapped) {
  gpuwatch_rec head = head_on(GPUWATCH_NODE_GPU, 2);
  head.flags = GPUWATCH_F_XFER;
  const Argument inner = Argument(32).u32(8, 0x101);
  Blob blob = escape_call(head, 211, inner, inner);
  gpuwatch_rec_ioctl fixed{};
  std::memcpy(&fixed, blob.data() + sizeof head, sizeof fixed);
  fixed.cmd = 0xC01046D3;
  fixed.inner_cmd = 42;
  fixed.inner_size = 32;
  std::memcpy(blob.data() + sizeof head, &fixed, sizeof fixed);
  const Decoder decoder(k580);
  const Call call = decoder.decode(parsed(blob));
  EXPECT_EQ(call.name, "NV_ESC_RM_CONTROL");
  EXPECT_EQ(call.detail, "NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION");
  EXPECT_EQ(call.request, 0xC01046D3U);
  EXPECT_EQ(call.number, 42U);
  EXPECT_EQ(call.minor, 2U);
  EXPECT_EQ(decoder.stats().size_mismatches, 0U);
}

TEST(Decoder, UvmStatusIsWhereTheBranchHasIt) {
  const Argument older = Argument(24).u64(0, 0x7000).u64(8, 4096).u32(16, 0x1F);
  const Blob old_blob = test::uvm_call(34, older);
  const Call before = Decoder(k580).decode(parsed(old_blob));
  EXPECT_EQ(before.name, "UVM_FREE");
  EXPECT_EQ(before.get(Field::kLength), 4096U);
  EXPECT_EQ(before.status_name, "NV_ERR_INVALID_ARGUMENT");

  const Argument newer = Argument(16).u64(0, 0x7000).u32(8, 0);
  const Blob new_blob = test::uvm_call(34, newer);
  const Call after = Decoder({590, 0, 0}).decode(parsed(new_blob));
  EXPECT_FALSE(after.has(Field::kLength));
  EXPECT_EQ(after.status_name, "NV_OK");
}

TEST(Decoder, UvmMapNamesItsMemory) {
  const Argument map =
      Argument(9264).u64(0, 0x200000000).u64(8, 2 << 20).u32(9248, 9).u32(9252, 0xC1D00024).u32(9256, 0x5C00000E);
  const Blob blob = test::uvm_call(33, map);
  const Call call = Decoder(k580).decode(parsed(blob));
  EXPECT_EQ(call.name, "UVM_MAP_EXTERNAL_ALLOCATION");
  EXPECT_EQ(call.tag, Tag::kMapGpu);
  EXPECT_EQ(call.get(Field::kClient), 0xC1D00024U);
  EXPECT_EQ(call.get(Field::kObject), 0x5C00000EU);
  EXPECT_EQ(call.get(Field::kLength), 2U << 20);
  EXPECT_EQ(call.get(Field::kFd), 9U);
}

// What a plan that takes both ends of the large argument leaves of such a call.
Blob map_by_ends(std::uint32_t status, std::uint32_t offset = 9232, std::int64_t ret = 0) {
  const std::string before = Argument(256).u64(0, 0x7F0000000000).u64(8, 0x200000).bytes();
  const std::string after = Argument(32).u32(16, 7).u32(20, 0xC1D00024).u32(24, 0x5C000011).u32(28, status).bytes();
  return test::ioctl_record(head_on(GPUWATCH_NODE_UVM), 33, ret,
                            {{GPUWATCH_CAP_ARG_IN, before, 0, 9264}, {GPUWATCH_CAP_ARG_OUT, after, offset, 9264}});
}

TEST(Decoder, FieldsOfALargeArgumentComeFromBothEnds) {
  const Decoder decoder(k580);
  const Blob blob = map_by_ends(0x56);
  const Call call = decoder.decode(parsed(blob));
  EXPECT_EQ(call.get(Field::kAddress), 0x7F0000000000U);
  EXPECT_EQ(call.get(Field::kLength), 0x200000U);
  EXPECT_EQ(call.get(Field::kFd), 7U);
  EXPECT_EQ(call.get(Field::kClient), 0xC1D00024U);
  EXPECT_EQ(call.get(Field::kObject), 0x5C000011U);
  EXPECT_EQ(call.get(Field::kStatus), 0x56U);
  EXPECT_TRUE(call.failed);
  EXPECT_FALSE(call.truncated) << "the plan wanted no more";
}

TEST(Decoder, FieldsBesideTheWindowAreLeftOut) {
  const Decoder decoder(k580);
  const Blob before_it = map_by_ends(0, 9200);
  const Call early = decoder.decode(parsed(before_it));
  EXPECT_FALSE(early.has(Field::kStatus));
  EXPECT_FALSE(early.has(Field::kClient));
  EXPECT_TRUE(early.has(Field::kAddress));
  EXPECT_TRUE(early.truncated);
  const Blob cuts_client = map_by_ends(0, 9254);
  EXPECT_FALSE(decoder.decode(parsed(cuts_client)).has(Field::kClient)) << "its first two bytes are missing";
  const Blob at_start = map_by_ends(0x56, 0);  // as recordings without offsets have it
  EXPECT_FALSE(decoder.decode(parsed(at_start)).has(Field::kStatus));
  const Blob far = map_by_ends(0, 0xFFFFFFF0);
  EXPECT_FALSE(decoder.decode(parsed(far)).has(Field::kStatus));
}

TEST(Decoder, AfterAnErrorTheTailIsTheCallers) {
  const Decoder decoder(k580);
  const Blob blob = map_by_ends(0x56, 9232, -14);
  const Call call = decoder.decode(parsed(blob));
  EXPECT_FALSE(call.has(Field::kStatus));
  EXPECT_EQ(call.get(Field::kClient), 0xC1D00024U);
}

TEST(Decoder, UvmNumberThatLooksEncoded) {
  const Blob blob = test::uvm_call(0x30000001, Argument(16));
  const Call call = Decoder(k580).decode(parsed(blob));
  EXPECT_EQ(call.name, "UVM_INITIALIZE");
  EXPECT_EQ(call.arg_bytes, 16U);
}

TEST(Decoder, NvkmsCommandIsInTheArgument) {
  const Argument argument = Argument(16).u32(0, 0).u32(4, 100).u64(8, 0x1000);
  const Blob blob =
      test::ioctl_record(head_on(GPUWATCH_NODE_MODESET), 0xC0106D00, 0, {{GPUWATCH_CAP_ARG_IN, argument.bytes()}});
  const Call call = Decoder(k580).decode(parsed(blob));
  EXPECT_EQ(call.name, "NVKMS_IOCTL_ALLOC_DEVICE");
  EXPECT_EQ(call.get(Field::kParamsSize), 100U);
}

TEST(Decoder, RegisterFdGivesTheFd) {
  const Argument argument = Argument(4).u32(0, 9);
  const Blob blob = escape_call(head_on(GPUWATCH_NODE_GPU), 201, argument, argument);
  const Call call = Decoder(k580).decode(parsed(blob));
  EXPECT_EQ(call.name, "NV_ESC_REGISTER_FD");
  EXPECT_EQ(call.get(Field::kFd), 9U);
  EXPECT_TRUE(call.status_name.empty());
}

TEST(Decoder, ArrayOfAnyLengthFits) {
  const Argument argument(2304);
  const Decoder decoder(k580);
  const Blob blob = escape_call(head_on(GPUWATCH_NODE_CTL), 200, argument, argument);
  EXPECT_EQ(decoder.decode(parsed(blob)).name, "NV_ESC_CARD_INFO");
  EXPECT_EQ(decoder.stats().size_mismatches, 0U);
}

TEST(Decoder, UnknownNumbersAreCountedNotLost) {
  const Decoder decoder(k580);
  const Blob escape = escape_call(head_on(GPUWATCH_NODE_CTL), 250, Argument(8), Argument(8));
  const Call call = decoder.decode(parsed(escape));
  EXPECT_TRUE(call.name.empty());
  EXPECT_EQ(call.number, 250U);
  EXPECT_FALSE(call.named);

  const Blob uvm = test::uvm_call(0x7777, Argument(8));
  EXPECT_FALSE(decoder.decode(parsed(uvm)).named);
  const Blob rm_class = escape_call(head_on(GPUWATCH_NODE_CTL), 43, alloc64(0xEEEE), alloc64(0xEEEE));
  EXPECT_EQ(decoder.decode(parsed(rm_class)).get(Field::kClass), 0xEEEEU);
  const Argument control = Argument(32).u32(8, 0x20809009);
  const Blob unnamed = escape_call(head_on(GPUWATCH_NODE_CTL), 42, control, control);
  const Call legacy = decoder.decode(parsed(unnamed));
  EXPECT_TRUE(legacy.detail.empty());
  EXPECT_EQ(legacy.interface, "CLK_LEGACY_NON_PRIVILEGED");
  Argument odd(16);
  odd.u32(12, 0x4242);
  const Blob status = escape_call(head_on(GPUWATCH_NODE_CTL), 41, Argument(16), odd);
  EXPECT_TRUE(decoder.decode(parsed(status)).failed);
  const Blob other = test::ioctl_record(head_on(GPUWATCH_NODE_CAPS, 1), 0xC0044301, 0);
  EXPECT_FALSE(decoder.decode(parsed(other)).named);

  EXPECT_EQ(decoder.stats().records, 6U);
  EXPECT_EQ(decoder.stats().unknown_escapes, 1U);
  EXPECT_EQ(decoder.stats().unknown_uvm, 1U);
  EXPECT_EQ(decoder.stats().unknown_classes, 1U);
  EXPECT_EQ(decoder.stats().unknown_controls, 1U);
  EXPECT_EQ(decoder.stats().unknown_status, 1U);
  EXPECT_EQ(decoder.stats().unknown_other, 1U);
}

TEST(Decoder, ShortCaptureLeavesFieldsOut) {
  const Decoder decoder(k580);
  const Blob blob = test::ioctl_record(head_on(GPUWATCH_NODE_CTL), test::escape_request(43, 48), 0,
                                       {{GPUWATCH_CAP_ARG_IN, alloc64(0x80).bytes().substr(0, 14)}});
  const Call call = decoder.decode(parsed(blob));
  EXPECT_EQ(call.name, "NV_ESC_RM_ALLOC");
  EXPECT_TRUE(call.has(Field::kObject));
  EXPECT_FALSE(call.has(Field::kClass));
  EXPECT_FALSE(call.has(Field::kStatus));
}

TEST(Decoder, OpenMmapReleaseAndDefinitions) {
  const Decoder decoder(k580);
  const Blob open = test::open_record(head_on(GPUWATCH_NODE_GPU, 1), -EPERM);
  const Call opened = decoder.decode(parsed(open));
  EXPECT_EQ(opened.name, "open");
  EXPECT_EQ(opened.minor, 1U);
  EXPECT_TRUE(opened.denied);

  gpuwatch_rec_mmap fixed{};
  fixed.addr = 0x1000;
  fixed.length = 8192;
  fixed.prot = 3;
  fixed.shared = 1;
  Blob payload;
  test::append_struct(payload, fixed);
  gpuwatch_rec head = head_on(GPUWATCH_NODE_CTL);
  head.type = GPUWATCH_REC_MMAP;
  const Blob mmap = test::finish_record(head, payload);
  const Call mapped = decoder.decode(parsed(mmap));
  EXPECT_EQ(mapped.get(Field::kLength), 8192U);
  EXPECT_EQ(mapped.get(Field::kFlags), 3U | model::kMmapShared);

  head.type = 99;
  const Blob strange = test::finish_record(head, payload);
  EXPECT_EQ(decoder.decode(parsed(strange)).kind, CallKind::kUnknown);
  head.type = GPUWATCH_REC_OPEN;
  const Blob tiny = test::finish_record(head, Blob(8));
  EXPECT_EQ(decoder.decode(parsed(tiny)).kind, CallKind::kMalformed);
  EXPECT_EQ(decoder.stats().malformed, 1U);
  EXPECT_EQ(decoder.stats().unknown_types, 1U);
}

TEST(DriverVersion, Parses) {
  EXPECT_EQ(model::parse_driver_version("580.159.04"), (model::DriverVersion{580, 159, 4}));
  EXPECT_EQ(model::parse_driver_version("595.45"), (model::DriverVersion{595, 45, 0}));
  for (const char* bad :
       {"", "580", "580.", "580..1", "a.b", "580.1.2.3", "580.1.2 ", "-1.2", "0.1", "99999999999.1", "580.1x"})
    EXPECT_FALSE(model::parse_driver_version(bad)) << bad;
}

}  // namespace
}  // namespace gpuwatch::decode
