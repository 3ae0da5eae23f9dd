// SPDX-License-Identifier: Apache-2.0
// Raw lines, exactly; and nothing in them that a terminal would obey.
#include <gtest/gtest.h>

#include "decode/decoder.h"
#include "publish/text.h"
#include "unit/decode/calls.h"

namespace gpuwatch::publish {
namespace {

using test::Argument;
using test::Blob;

std::string raw(const Blob& blob, const model::Actor& actor = {}, const TextOptions& options = {}) {
  const decode::Decoder decoder({580, 159, 4});
  std::string out;
  append_raw_line(out, decoder.decode(test::parsed(blob)), actor, options);
  return out;
}

gpuwatch_rec head_at(gpuwatch_node_kind kind, std::uint32_t minor = 0) {
  gpuwatch_rec head = test::head_on(kind, minor);
  head.time_ns = 3'000'000'500;
  return head;
}

TEST(RawText, Images) {
  gpuwatch_rec_image image{};
  image.id = 9;
  image.address = image.image_address = 0x7000;
  image.bytes = 5000;
  image.copied_bytes = 4096;
  image.kind = GPUWATCH_IMAGE_FATBIN;
  image.flags = GPUWATCH_IMAGEF_WRAPPED | GPUWATCH_IMAGEF_FAULT;
  image.nr_parts = 2;
  std::memcpy(image.symbol, "cuLibraryLoadData", 17);
  gpuwatch_rec head = test::make_head(GPUWATCH_REC_IMAGE, 3'000'000'500);
  Blob payload;
  test::append_struct(payload, image);
  EXPECT_EQ(
      raw(test::finish_record(head, payload)),
      "3.000000 worker/7 cuLibraryLoadData({fatbin address=0x7000 size=5000B parts=2 stored=4096B image=9 wrapped "
      "fault})\n");
  image = {};
  image.kind = GPUWATCH_IMAGE_PATH;
  image.head_len = image.bytes = 4;
  std::memcpy(image.symbol, "cuModuleLoad\x1b[2J", 16);
  payload.clear();
  test::append_struct(payload, image);
  for (const char c : std::string_view("a\n\x1b\"\0\0\0\0", 8)) payload.push_back(static_cast<std::byte>(c));
  const std::string line = raw(test::finish_record(head, payload));
  EXPECT_EQ(line.find('\x1b'), std::string::npos);
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  image.head_len = 4096;  // more than there is
  payload.clear();
  test::append_struct(payload, image);
  EXPECT_NE(raw(test::finish_record(head, payload)).find("malformed record type 8"), std::string::npos);
}

TEST(RawText, RmAlloc) {
  const Argument argument =
      Argument(48).u32(0, 0xC1D00024).u32(4, 0xC1D00024).u32(8, 0x5C000002).u32(12, 0x80).u64(16, 0x7000);
  EXPECT_EQ(raw(test::escape_call(head_at(GPUWATCH_NODE_CTL), 43, argument, argument)),
            "3.000000 worker/7 ioctl(nvidiactl, NV_ESC_RM_ALLOC, {client=0xc1d00024 class=NV01_DEVICE_0 "
            "parent=0xc1d00024 new=0x5c000002 params=56B}) = 0 NV_OK <0.500us>\n");
}

TEST(RawText, RmControlThatFails) {
  const Argument in = Argument(32).u32(0, 0xC1).u32(4, 0x5C).u32(8, 0x20800102).u64(16, 1).u32(24, 564);
  Argument out = in;
  out.u32(28, 0x56);
  EXPECT_EQ(raw(test::escape_call(head_at(GPUWATCH_NODE_CTL), 42, in, out)),
            "3.000000 worker/7 ioctl(nvidiactl, NV_ESC_RM_CONTROL, {client=0xc1 cmd=NV2080_CTRL_CMD_GPU_GET_INFO_V2 "
            "object=0x5c params=564B}) = 0 NV_ERR_NOT_SUPPORTED <0.500us>\n");
}

TEST(RawText, ControlWithoutAName) {
  const Argument argument = Argument(32).u32(0, 0xC1).u32(4, 0x5C).u32(8, 0x20809009);
  const std::string line = raw(test::escape_call(head_at(GPUWATCH_NODE_CTL), 42, argument, argument));
  EXPECT_NE(line.find("cmd=0x20809009 interface=CLK_LEGACY_NON_PRIVILEGED"), std::string::npos) << line;
}

TEST(RawText, UvmMap) {
  const Argument map = Argument(9264).u64(0, 0x7000).u64(8, 4096).u32(9248, 9).u32(9252, 0xC1).u32(9256, 0x5C);
  EXPECT_EQ(raw(test::uvm_call(33, map)),
            "0.000000 worker/7 ioctl(nvidia-uvm, UVM_MAP_EXTERNAL_ALLOCATION, {client=0xc1 object=0x5c addr=0x7000 "
            "len=4096B fd=9}) = 0 NV_OK <0.500us>\n");
}

TEST(RawText, UnknownCall) {
  const Blob blob = test::ioctl_record(head_at(GPUWATCH_NODE_GPU, 3), 0xC00846FA, -EINVAL);
  EXPECT_EQ(raw(blob),
            "3.000000 worker/7 ioctl(nvidia3, 0xc00846fa/250 /* ??? */, {size=8B}) = -22 EINVAL <0.500us>\n");
}

TEST(RawText, OpenMmapReleaseAndWho) {
  gpuwatch_rec head = head_at(GPUWATCH_NODE_GPU, 0);
  head.tid = 8;
  model::Actor actor;
  actor.runtime = "docker";
  const std::string id(64, 'b');
  actor.container_id = id;
  EXPECT_EQ(raw(test::open_record(head, -EPERM), actor),
            "3.000000 docker:bbbbbbbbbbbb worker/7:8 open(nvidia0, O_RDONLY) = -1 EPERM <0.100us>\n");

  gpuwatch_rec_mmap fixed{};
  fixed.addr = 0x1000;
  fixed.length = 65536;
  fixed.prot = 3;
  fixed.shared = 1;
  Blob payload;
  test::append_struct(payload, fixed);
  head = head_at(GPUWATCH_NODE_CTL);
  head.type = GPUWATCH_REC_MMAP;
  EXPECT_EQ(raw(test::finish_record(head, payload)),
            "3.000000 worker/7 mmap(nvidiactl, {addr=0x1000 len=65536B offset=0x0 prot=rw- shared}) = 0\n");
  head.type = GPUWATCH_REC_RELEASE;
  EXPECT_EQ(raw(test::finish_record(head, Blob(8))), "3.000000 worker/7 release(nvidiactl)\n");
  head.type = 77;
  EXPECT_EQ(raw(test::finish_record(head, Blob(8))), "3.000000 worker/7 record type 77 /* ??? */\n");
}

TEST(RawText, DefinitionsAndHostileBytes) {
  gpuwatch_rec head = head_at(GPUWATCH_NODE_CTL);
  head.type = GPUWATCH_REC_TASK;
  std::memcpy(head.comm, "a b\n\033[31m\xff/1 x", 15);
  const std::string path = "/tmp/\"x\" = 0\n\033]0;owned\007\xc3(\xe2\x80\xae";
  gpuwatch_rec_task fixed{};
  fixed.ns_tgid = 3;
  fixed.parent_tgid = 1;
  fixed.path_len = static_cast<__u32>(path.size());
  Blob payload;
  test::append_struct(payload, fixed);
  for (const char c : path) payload.push_back(static_cast<std::byte>(c));
  test::pad8(payload);
  const std::string line = raw(test::finish_record(head, payload));
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  for (const char c : line.substr(0, line.size() - 1)) {
    EXPECT_GE(static_cast<unsigned char>(c), 0x20) << line;
    EXPECT_LT(static_cast<unsigned char>(c), 0x7f) << line;
  }
  EXPECT_NE(line.find("a\\x20b\\x0a\\x1b[31m\\xff/1\\x20x/7"), std::string::npos) << line;
  EXPECT_NE(line.find("exe=\"/tmp/\\x22x\\x22 = 0\\x0a"), std::string::npos) << line;
}

TEST(RawText, ColourOnlyWhenAsked) {
  const Blob blob = test::open_record(head_at(GPUWATCH_NODE_GPU), -EPERM);
  EXPECT_EQ(raw(blob).find('\033'), std::string::npos);
  TextOptions options;
  options.colour = true;
  const std::string line = raw(blob, {}, options);
  EXPECT_NE(line.find("\033[31m-1 EPERM\033[0m"), std::string::npos);
}

TEST(RawText, WallClock) {
  TextOptions options;
  options.realtime_offset_ns = 1'000'000'000LL * (22 * 3600 + 31 * 60);
  options.utc_offset_s = -3600;
  const std::string line = raw(test::open_record(head_at(GPUWATCH_NODE_GPU)), {}, options);
  EXPECT_EQ(line.substr(0, 15), "21:31:03.000000") << line;
}

}  // namespace
}  // namespace gpuwatch::publish
