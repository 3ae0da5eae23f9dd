// SPDX-License-Identifier: Apache-2.0
// `gpuwatch status`: what wants attention, that unseen is never told as fine,
// that keys are those of the manual, and that a daemon's words stay words.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "cli/status_report.h"
#include "judge/baseline.h"
#include "unit/support.h"

namespace gpuwatch::cli {
namespace {

using nlohmann::json;

StatusReport healthy() {
  StatusReport report;
  report.kernel_release = "6.1.0-test";
  report.driver_version = "580.159.04";
  report.now_unix = 1'800'000'000;
  gpuwatch_info info{};
  info.abi_major = GPUWATCH_ABI_MAJOR;
  info.abi_minor = GPUWATCH_ABI_MINOR;
  info.schema = GPUWATCH_SCHEMA;
  info.attached = 1;
  info.nr_consumers = 2;
  info.nr_cpus = 8;
  std::memcpy(info.release, "0.1.0", 5);
  report.module = info;
  gpuwatch_target target{};
  std::memcpy(target.module, "nvidia", 6);
  target.op = 1;
  target.method = 1;
  target.calls = 77;
  report.functions.push_back(target);
  gpuwatch_image_status images{};
  images.nr_probes = 3;
  images.stored = 5;
  images.total_max_bytes = 256 << 20;
  report.images = images;
  report.daemon_running = true;
  report.daemon_status =
      R"({"version":"0.1.0","pid":812,"started_unix_ns":1799999000000000000,"config_files":["/etc/gpuwatch/gpuwatch.yaml"],
    "rules":9,"records_total":1000,"lost_total":0,"lost":{},"last_reload_good":true,"last_end":"clean",
    "queue":{"items":3,"bytes":2048,"limit_bytes":67108864},
    "sinks":[{"name":"file","items":1,"sent_total":9,"dropped_full_total":0,"failing":false}]})";
  BaselineState baseline;
  baseline.path = "/var/lib/gpuwatch/baseline.db";
  baseline.label = "prod";
  baseline.modified_unix = 1'799'900'000;
  baseline.modules = 4;
  baseline.signed_by = std::string(64, 'a');
  report.baselines.push_back(baseline);
  return report;
}

bool has(const std::vector<Attention>& found, const std::string& word) {
  for (const Attention& attention : found)
    if (attention.what.find(word) != std::string::npos) return true;
  return false;
}

TEST(Status, FineIsZero) {
  EXPECT_TRUE(attention_of(healthy()).empty());
  EXPECT_EQ(exit_code_of(healthy()), 0);
  const std::string text = status_text(healthy());
  for (const char* part :
       {"module and program fit", "yes, by a consumer", "nvidia ioctl: redirect, 77 calls", "5 stored from 3 probes",
        "gpuwatchd 0.1.0, pid 812, since 2027-01-15T07:43:20Z (16 minutes)", "/etc/gpuwatch/gpuwatch.yaml; 9 rules",
        "file: 9 sent, 1 wait, 0 dropped", "\"prod\", changed 2027-01-14", "signed by aaaaaaaaaaaaaaaa, not verified"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_EQ(text.find("attention"), std::string::npos);
}

TEST(Status, NoModuleIsTroubleAndTheRestIsToldAllTheSame) {
  StatusReport report = healthy();
  report.module.reset();
  report.functions.clear();
  report.images.reset();
  report.module_error = "/dev/gpuwatch: not permitted";
  EXPECT_EQ(exit_code_of(report), 2);
  EXPECT_NE(status_text(report).find("module        cannot be seen: /dev/gpuwatch: not permitted"), std::string::npos);
  EXPECT_NE(status_text(report).find("pid 812"), std::string::npos);
  const json line = json::parse(status_json(report));
  EXPECT_EQ(line["module_seen"], false);
  EXPECT_FALSE(line.contains("attached")) << "what was not seen is not told as no";
  EXPECT_FALSE(line.contains("images"));
}

TEST(Status, WhatWantsAttention) {
  const auto with = [](auto change) {
    StatusReport report = healthy();
    change(report);
    EXPECT_EQ(exit_code_of(report), 1);
    EXPECT_NE(status_text(report).find("attention"), std::string::npos);
    return attention_of(report);
  };
  EXPECT_TRUE(has(with([](StatusReport& r) { r.module->probe_missed = 4; }), "4 calls were not seen"));
  EXPECT_TRUE(has(with([](StatusReport& r) { r.module->stage_exhausted = 4; }), "without what they point to"));
  EXPECT_TRUE(has(with([](StatusReport& r) { r.module->schema = 99; }), "schema 99"));
  EXPECT_TRUE(has(with([](StatusReport& r) { r.module->attached = 0; }), "the driver is not hooked"));
  EXPECT_TRUE(
      has(with([](StatusReport& r) { r.functions[0].error = -16; }), "a function of nvidia could not be hooked"));
  EXPECT_TRUE(has(with([](StatusReport& r) { r.images->lost[GPUWATCH_IMAGE_LOSS_OVER_BUDGET] = 2; }), "over_budget"));
  EXPECT_TRUE(has(with([](StatusReport& r) { r.images->lost[12] = 2; }), "reason 12"));
  EXPECT_TRUE(has(with([](StatusReport& r) { r.daemon_error = "no answer"; }), "no answer"));
  EXPECT_TRUE(has(with([](StatusReport& r) { r.daemon_status = R"({"lost_total":7})"; }), "the daemon lost 7"));
  EXPECT_TRUE(
      has(with([](StatusReport& r) { r.daemon_status = R"({"last_reload_good":false,"last_reload_error":"line 3"})"; }),
          "line 3"));
  EXPECT_TRUE(has(with([](StatusReport& r) { r.daemon_status = R"({"last_end":"killed"})"; }), "was killed"));
  EXPECT_TRUE(has(with([](StatusReport& r) {
                    r.daemon_status = R"({"sinks":[{"name":"webhook","failing":true,"last_error":"refused"}]})";
                  }),
                  "output webhook fails: refused"));
  EXPECT_TRUE(
      has(with([](StatusReport& r) { r.daemon_status = R"({"sinks":[{"name":"file","dropped_full_total":3}]})"; }),
          "output file dropped 3"));
  EXPECT_TRUE(has(with([](StatusReport& r) { r.baselines[0].error = "torn"; }), "a baseline cannot be read: torn"));
}

TEST(Status, WithoutDaemonBaselineOrDriverIsFine) {
  StatusReport report = healthy();
  report.daemon_running = false;
  report.daemon_status.clear();
  report.baselines.clear();
  report.driver_version.clear();
  report.module->attached = 0;
  EXPECT_EQ(exit_code_of(report), 0) << status_text(report);
  EXPECT_NE(status_text(report).find("does not run"), std::string::npos);
}

TEST(Status, ADaemonsWordsStayWords) {
  StatusReport report = healthy();
  report.baselines[0].label = "x\x1b[31m\ny";
  report.daemon_status = R"({"version":"\u001b[2J","pid":-4,"config_files":{"a":1},"lost":[1],"lost_total":"many",
    "sinks":[5,{"name":7,"failing":"yes","last_error":"\u001b]0;x\u0007"}],"queue":3,"last_end":1,"last_reload_good":"no"})";
  const std::string text = status_text(report);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find('\x07'), std::string::npos);
  EXPECT_TRUE(json::parse(status_json(report)).is_object());
  report.daemon_status = "not json";
  EXPECT_TRUE(json::parse(status_json(report)).is_object());
  EXPECT_FALSE(json::parse(status_json(report)).contains("daemon"));
}

// Every key of ours is in the manual, and what the manual names is written.
void collect(const json& value, std::set<std::string>& keys) {
  if (value.is_array())
    for (const json& each : value) collect(each, keys);
  if (!value.is_object()) return;
  for (const auto& [key, below] : value.items()) {
    keys.insert(key);
    if (key != "daemon" && key != "lost") collect(below, keys);
  }
}

TEST(Status, KeysAreThoseOfTheManual) {
  StatusReport report = healthy();
  report.module->probe_missed = 1;
  std::set<std::string> keys;
  collect(json::parse(status_json(report)), keys);
  report.functions_error = report.images_error = report.daemon_error = report.baselines[0].error = "x";
  report.images.reset();
  collect(json::parse(status_json(report)), keys);
  report.module.reset();
  collect(json::parse(status_json(report)), keys);
  keys.erase("type");
  const std::string manual = test::slurp(GPUWATCH_JSON_MANUAL);
  const std::size_t begin = manual.find("\n# STATUS\n");
  ASSERT_NE(begin, std::string::npos);
  const std::string section = manual.substr(begin, manual.find("\n# ", begin + 2) - begin);
  std::set<std::string> documented;
  for (std::size_t at = section.find("**"); at != std::string::npos;) {
    const std::size_t end = section.find("**", at + 2);
    documented.insert(section.substr(at + 2, end - at - 2));
    at = section.find("**", end + 2);
  }
  for (const char* value : {"status", "none", "redirect", "kretprobe"}) documented.erase(value);  // no keys
  EXPECT_EQ(keys, documented);
}

TEST(Status, OldKeysStay) {
  const json line = json::parse(status_json(healthy()));
  for (const char* key :
       {"release", "abi_major", "abi_minor", "schema", "features", "driver_version", "attached", "pinned", "consumers",
        "in_flight", "plan_generation", "probe_missed_total", "stage_exhausted_total", "functions"})
    EXPECT_TRUE(line.contains(key)) << key;
  EXPECT_EQ(line["functions"][0]["method"], "redirect");
}

// Answers one request on a socket.
class OneAnswer {
 public:
  OneAnswer(const std::string& path, std::string answer)
      : answer_(std::move(answer)), fd_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    if (::bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || ::listen(fd_, 1) != 0) std::abort();
    thread_ = std::thread([this] {
      const int peer = ::accept(fd_, nullptr, nullptr);
      char byte = 0;
      while (peer >= 0 && ::read(peer, &byte, 1) == 1 && byte != '\n') request_ += byte;
      if (peer >= 0 && ::write(peer, answer_.data(), answer_.size()) < 0) std::perror("answer");
      ::close(peer);
    });
  }
  ~OneAnswer() {
    thread_.join();
    ::close(fd_);
  }
  OneAnswer(const OneAnswer&) = delete;
  OneAnswer& operator=(const OneAnswer&) = delete;
  const std::string& request() const { return request_; }

 private:
  std::string answer_, request_;
  int fd_;
  std::thread thread_;
};

TEST(Status, LooksAtDaemonAndBaselines) {
  test::ScratchDir dir;
  judge::BaselineInfo info;
  info.label = "lab";
  ASSERT_TRUE(judge::Baseline::open_or_make(dir.file("b.db"), info).ok());
  test::spill(dir.file("torn.db"), "nothing of the kind");
  StatusPlaces places;
  places.device = dir.file("no-device");
  places.socket = dir.file("c.sock");
  places.baselines = {dir.file("torn.db")};
  StatusReport report;
  {
    OneAnswer daemon(places.socket, "{\"ok\":true,\"status\":{\"pid\":4,\"baselines\":[{\"path\":\"" +
                                        dir.file("b.db") + "\"},5,{}]}}\n");
    report = look_at_status(places);
  }
  EXPECT_EQ(report.daemon_running, true);
  EXPECT_TRUE(report.daemon_error.empty()) << report.daemon_error;
  ASSERT_EQ(report.baselines.size(), 2U);
  EXPECT_FALSE(report.baselines[0].error.empty());
  EXPECT_EQ(report.baselines[1].label, "lab");
  EXPECT_GT(report.baselines[1].modified_unix, 0);
  EXPECT_TRUE(report.baselines[1].signed_by.empty());
  EXPECT_NE(status_text(report).find("not signed"), std::string::npos);
  // Nobody there any more: no error, unless the user named the place.
  EXPECT_EQ(look_at_status(places).daemon_running, false);
  EXPECT_TRUE(look_at_status(places).daemon_error.empty());
  places.socket_asked = true;
  EXPECT_FALSE(look_at_status(places).daemon_error.empty());
}

TEST(Status, ADaemonThatTalksNonsense) {
  test::ScratchDir dir;
  StatusPlaces places;
  places.device = dir.file("no-device");
  int number = 0;
  for (const char* answer :
       {"\n", "{}\n", "{\"ok\":true}\n", "{\"ok\":true,\"status\":[]}\n", "{\"ok\":false,\"error\":\"no\"}\n", ""}) {
    places.socket = dir.file("c" + std::to_string(number++));
    OneAnswer daemon(places.socket, answer);
    const StatusReport report = look_at_status(places);
    EXPECT_FALSE(report.daemon_error.empty()) << answer;
    EXPECT_TRUE(report.daemon_status.empty()) << answer;
  }
}

}  // namespace
}  // namespace gpuwatch::cli
