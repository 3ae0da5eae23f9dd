// SPDX-License-Identifier: Apache-2.0
// JSON lines are valid, complete and documented: every key that the writer can
// write has its entry in gpuwatch-json(5), and every entry has a writer.
#include "nlohmann/json.hpp"

#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "decode/decoder.h"
#include "publish/json.h"
#include "unit/decode/calls.h"

namespace gpuwatch::publish {
namespace {

using Json = nlohmann::json;
using test::Argument;
using test::Blob;

Json line_of(const Blob& blob, const model::Actor& actor = {}, const JsonOptions& options = {}) {
  const decode::Decoder decoder({580, 159, 4});
  std::string out;
  append_json_line(out, decoder.decode(test::parsed(blob)), actor, options);
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 1);
  return Json::parse(out);
}

std::set<std::string> keys_written() {
  std::set<std::string> keys;
  std::string source;
  for (const char* file :
       {"alert_json.cpp", "json.cpp", "json_common.cpp", "story_json.cpp", "fields.cpp", "tree_text.cpp"})
    source += test::slurp(std::string(USERSPACE_DIR) + "/publish/" + file);
  source += test::slurp(std::string(USERSPACE_DIR) + "/netlink/print_json.cpp");
  const std::regex call(
      R"re((?:json|object)\.(?:key|number|signed_number|flag|text|text_if|number_if|hex|errno_name)\("([a-z_]+)")re");
  for (std::sregex_iterator at(source.begin(), source.end(), call), end; at != end; ++at) keys.insert((*at)[1]);
  const std::string summary = test::slurp(std::string(USERSPACE_DIR) + "/report/summary_json.cpp") +
                              test::slurp(std::string(USERSPACE_DIR) + "/report/holdings_json.cpp");
  const std::regex summary_key(
      R"re((?:json\["|one\["|put_text\((?:json|one), "|put_count\(json, "|\{")([a-z0-9_]+)")re");
  for (std::sregex_iterator at(summary.begin(), summary.end(), summary_key), end; at != end; ++at)
    keys.insert((*at)[1]);
  const std::string hashes = test::slurp(std::string(USERSPACE_DIR) + "/cli/commands/hash.cpp");
  const std::regex hash_key(R"re((?:\["|\{")([a-z0-9_]+)"(?:\]|,))re");
  for (std::sregex_iterator at(hashes.begin(), hashes.end(), hash_key), end; at != end; ++at) keys.insert((*at)[1]);
  const std::regex table(R"re(\{"([a-z_]+)", Field::k)re");
  for (std::sregex_iterator at(source.begin(), source.end(), table), end; at != end; ++at) keys.insert((*at)[1]);
  const std::string counters = test::slurp(std::string(USERSPACE_DIR) + "/cli/attribution_stats.cpp");
  const std::regex counter(R"re(\{"([a-z_]+)", stats\.)re");
  for (std::sregex_iterator at(counters.begin(), counters.end(), counter), end; at != end; ++at) keys.insert((*at)[1]);
  return keys;
}

std::set<std::string> keys_documented(const std::string& manual) {
  std::set<std::string> keys;
  const std::regex heading(R"re((?:^|\n)(`[a-z0-9_`, ]+)\n:   )re");
  const std::regex word("`([a-z0-9_]+)`");
  for (std::sregex_iterator at(manual.begin(), manual.end(), heading), end; at != end; ++at) {
    const std::string names = (*at)[1];
    for (std::sregex_iterator name(names.begin(), names.end(), word); name != end; ++name) keys.insert((*name)[1]);
  }
  return keys;
}

TEST(Json, EveryKeyIsDocumentedAndEveryEntryIsWritten) {
  const auto written = keys_written();
  const std::string manual = test::slurp(std::string(USERSPACE_DIR) + "/man/gpuwatch-json.5.md");
  const auto documented = keys_documented(manual);
  EXPECT_GT(written.size(), 60U);
  for (const std::string& key : written)
    EXPECT_TRUE(documented.contains(key)) << key << " is not in gpuwatch-json.5.md";
  // What stands behind is no line of these sources: tests/golden/check-outputs checks real ones.
  const std::size_t others = manual.find("\n# CONTROL SOCKET\n");
  ASSERT_NE(others, std::string::npos);
  for (const std::string& key : keys_documented(manual.substr(0, others)))
    EXPECT_TRUE(written.contains(key)) << key << " is written nowhere";
}

TEST(Json, Image) {
  gpuwatch_rec_image image{};
  image.id = 9;
  image.address = 0x7000;
  image.image_address = 0x8000;
  image.bytes = 5000;
  image.copied_bytes = 4096;
  image.kind = GPUWATCH_IMAGE_ELF;
  image.flags = GPUWATCH_IMAGEF_SIZED | GPUWATCH_IMAGEF_DEADLINE;
  image.nr_parts = 1;
  image.probe = 3;
  image.library_ino = 77;
  image.duration_ns = 12;
  image.head_len = 4;
  std::memcpy(image.symbol, "cuLinkAddData_v2", 16);
  Blob payload;
  test::append_struct(payload, image);
  for (const char c : std::string_view("\x7f"
                                       "ELF\0\0\0\0",
                                       8))
    payload.push_back(static_cast<std::byte>(c));
  const Json json = line_of(test::finish_record(test::make_head(GPUWATCH_REC_IMAGE), payload));
  EXPECT_EQ(json["type"], "image");
  EXPECT_EQ(json["symbol"], "cuLinkAddData_v2");
  EXPECT_EQ(json["image_kind"], "elf");
  EXPECT_EQ(json["image_id"], 9);
  EXPECT_EQ(json["address"], "0x7000");
  EXPECT_EQ(json["image_address"], "0x8000");
  EXPECT_EQ(json["image_bytes"], 5000);
  EXPECT_EQ(json["stored_bytes"], 4096);
  EXPECT_EQ(json["parts"], 1);
  EXPECT_EQ(json["head_hex"], "7f454c46");
  EXPECT_EQ(json["image_flags"], "sized deadline");
  EXPECT_EQ(json["probe"], 3);
  EXPECT_EQ(json["library_inode"], 77);
  EXPECT_EQ(json["duration_ns"], 12);
  EXPECT_EQ(json["pid"], 7);
  EXPECT_FALSE(json.contains("node"));
}

TEST(Json, Ioctl) {
  const Argument in = Argument(48).u32(0, 0xC1D00024).u32(4, 0xC1D00024).u32(8, 0x5C000002).u32(12, 0x80);
  Argument out = in;
  out.u32(40, 0x1B);
  model::Actor actor;
  const std::string id(64, 'd');
  actor.runtime = "docker";
  actor.container_id = id;
  actor.exe = "/bin/app";
  const Json json = line_of(test::escape_call(test::head_on(GPUWATCH_NODE_GPU, 2), 43, in, out), actor, {1'000'000});
  EXPECT_EQ(json["schema"], kJsonSchema);
  EXPECT_EQ(json["type"], "ioctl");
  EXPECT_EQ(json["time_ns"], 1000);
  EXPECT_EQ(json["time_unix_ns"], 1'001'000);
  EXPECT_EQ(json["node"], "nvidia2");
  EXPECT_EQ(json["name"], "NV_ESC_RM_ALLOC");
  EXPECT_EQ(json["class_id"], "0x80");
  EXPECT_EQ(json["class_name"], "NV01_DEVICE_0");
  EXPECT_EQ(json["client"], "0xc1d00024");
  EXPECT_EQ(json["status"], 0x1B);
  EXPECT_EQ(json["status_name"], "NV_ERR_INSUFFICIENT_PERMISSIONS");
  EXPECT_EQ(json["failed"], true);
  EXPECT_EQ(json["denied"], true);
  EXPECT_EQ(json["duration_ns"], 500);
  EXPECT_EQ(json["container_id"], id);
  EXPECT_EQ(json["exe_path"], "/bin/app");
  EXPECT_FALSE(json.contains("pod_uid"));
  EXPECT_FALSE(json.contains("recorder"));
}

TEST(Json, HostileBytesStayValid) {
  gpuwatch_rec head = test::head_on(GPUWATCH_NODE_CTL);
  std::memcpy(head.comm, "\"\\\n\x01\xff\xc3(\xed\xa0\x80z", 12);
  head.flags = GPUWATCH_F_PRELOAD;
  const Json json = line_of(test::open_record(head, -EPERM));
  EXPECT_EQ(json["errno_name"], "EPERM");
  EXPECT_EQ(json["recorder"], "preload");
  EXPECT_EQ(json["comm"].get<std::string>().substr(0, 4), std::string("\"\\\n\x01"));
}

TEST(Json, NoKeyTwice) {
  const std::vector<Blob> blobs = {
      test::open_record(test::head_on(GPUWATCH_NODE_GPU)),
      test::escape_call(test::head_on(GPUWATCH_NODE_CTL), 42, Argument(32).u32(8, 0x101), Argument(32)),
      test::uvm_call(33, Argument(9264)), test::ioctl_record(test::head_on(GPUWATCH_NODE_CAPS), 1, -5)};
  const decode::Decoder decoder({580, 159, 4});
  for (const Blob& blob : blobs) {
    std::string out;
    append_json_line(out, decoder.decode(test::parsed(blob)), {});
    std::set<std::string> seen;
    const auto callback = [&](int, Json::parse_event_t event, Json& value) {
      if (event == Json::parse_event_t::key) {
        EXPECT_TRUE(seen.insert(value.get<std::string>()).second) << value << " twice in " << out;
      }
      return true;
    };
    const Json parsed = Json::parse(out, callback);
    EXPECT_FALSE(parsed.empty());
  }
}

TEST(Json, Story) {
  model::StoryEvent event;
  event.kind = model::StoryKind::kContextCreated;
  event.head = test::make_head(GPUWATCH_REC_IOCTL);
  event.gpu_minor = 1;
  model::ContextBody context;
  context.id = 3;
  context.channels = 20;
  context.compute = 8;
  context.copy = 12;
  event.body = context;
  std::string out;
  append_json_line(out, event, {});
  Json json = Json::parse(out);
  EXPECT_EQ(json["type"], "story");
  EXPECT_EQ(json["event"], "context.created");
  EXPECT_EQ(json["compute_channels"], 8);
  EXPECT_EQ(json["copy_channels"], 12);
  EXPECT_EQ(json["gpu_minor"], 1);
  EXPECT_FALSE(json.contains("device_instance"));
  EXPECT_FALSE(json.contains("is_detail"));

  event.kind = model::StoryKind::kMemoryAllocated;
  event.view = model::StoryView::kDetail;
  model::MemoryBody memory;
  memory.bytes = 1ULL << 40;
  event.body = memory;
  out.clear();
  append_json_line(out, event, {});
  json = Json::parse(out);
  EXPECT_EQ(json["bytes"], 1ULL << 40);
  EXPECT_EQ(json["location"], "gpu");
  EXPECT_EQ(json["is_detail"], true);

  event.kind = model::StoryKind::kSecurityFinding;
  model::FindingBody finding;
  finding.reason = "debugger";
  finding.target = {{5, 77}, 0xc1d00099, 0x5c};
  event.body = finding;
  out.clear();
  append_json_line(out, event, {});
  json = Json::parse(out);
  EXPECT_EQ(json["reason"], "debugger");
  EXPECT_EQ(json["target_pid"], 77);
  EXPECT_EQ(json["target_client"], "0xc1d00099");
}

// A body of the type that story_kinds.def gives the kind.
template <typename Body>
model::StoryEvent event_with_body(model::StoryKind kind) {
  model::StoryEvent event;
  event.kind = kind;
  event.body = Body{};
  return event;
}

TEST(Json, EveryStoryKindIsDocumentedAndValid) {
  using namespace model;
  const StoryEvent events[] = {
#define STORY(enumerator, name, body, view) event_with_body<body>(StoryKind::enumerator),
#include "model/story_kinds.def"
#undef STORY
  };
  std::set<std::string> names;
  const std::string manual = test::slurp(std::string(USERSPACE_DIR) + "/man/gpuwatch-json.5.md");
  for (const StoryEvent& event : events) {
    std::string out;
    append_json_line(out, event, {});
    const std::string name = Json::parse(out)["event"];
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_NE(manual.find("\n**" + name + "**\n:   "), std::string::npos) << name << " is not in gpuwatch-json.5.md";
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(StoryKind::kCount));
  // And no kind in the manual that does not exist.
  const std::regex entry(R"re((?:^|\n)\*\*([a-z]+\.[a-z_]+)\*\*\n:   )re");
  for (std::sregex_iterator at(manual.begin(), manual.end(), entry), end; at != end; ++at)
    EXPECT_TRUE(names.contains((*at)[1])) << (*at)[1] << " is no kind of event";
}

TEST(Json, DefinitionsAndState) {
  gpuwatch_rec head = test::make_head(GPUWATCH_REC_CGROUP);
  gpuwatch_rec_cgroup fixed{};
  fixed.version = 2;
  fixed.path_len = 8;
  Blob payload;
  test::append_struct(payload, fixed);
  for (const char c : std::string("/a/\"b\x01/c")) payload.push_back(static_cast<std::byte>(c));
  Json json = line_of(test::finish_record(head, payload));
  EXPECT_EQ(json["type"], "cgroup");
  EXPECT_EQ(json["cgroup_version"], 2);
  EXPECT_EQ(json["cgroup_path"], "/a/\"b\x01/c");

  gpuwatch_rec_state state{};
  state.event = 77;
  state.error = -EBUSY;
  Blob state_payload;
  test::append_struct(state_payload, state);
  head.type = GPUWATCH_REC_STATE;
  json = line_of(test::finish_record(head, state_payload));
  EXPECT_EQ(json["state_number"], 77);
  EXPECT_EQ(json["errno_name"], "EBUSY");
  head.type = 55;
  json = line_of(test::finish_record(head, Blob(8)));
  EXPECT_EQ(json["type"], "unknown");
  EXPECT_EQ(json["record_type"], 55);
}

}  // namespace
}  // namespace gpuwatch::publish
