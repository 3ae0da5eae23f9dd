// SPDX-License-Identifier: Apache-2.0
#include "daemon/dumper.h"

#include <atomic>
#include <ctime>
#include <filesystem>

#include "base/clock.h"
#include "base/escape.h"
#include "daemon/log.h"

namespace gpuwatch::daemon {

namespace {

std::string name_in(const std::string& directory, const std::string& why) {
  static std::atomic<unsigned> number{0};
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  char text[32];
  ::gmtime_r(&now, &parts);
  std::strftime(text, sizeof text, "%Y%m%dT%H%M%SZ", &parts);
  return directory + "/" + text + "-" + std::to_string(++number) + "-" + why + ".gwcap";
}

}  // namespace

Dumper::Dumper(const Recorder& recorder, source::GwcapHeader header)
    : recorder_(recorder), header_(std::move(header)), thread_([this] { run(); }) {}

Dumper::~Dumper() {
  {
    const std::lock_guard hold(lock_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Dumper::use(const Settings& settings) {
  const std::lock_guard hold(lock_);
  directory_ = settings.text(Key::kRecorderDirectory);
  keep_ = settings.number(Key::kRecorderFiles);
  interval_ns_ = static_cast<std::uint64_t>(settings.duration(Key::kRecorderInterval).count()) * 1'000'000;
}

void Dumper::want(const std::string& why) {
  const std::lock_guard hold(lock_);
  const std::uint64_t now = base::monotonic_ns();
  if (wanted_ || (last_ns_ != 0 && now - last_ns_ < interval_ns_)) return;
  last_ns_ = now;
  wanted_ = true;
  why_ = why;
  wake_.notify_all();
}

base::Result<Dump> Dumper::now(std::string path) {
  std::string directory;
  std::size_t keep = 0;
  {
    const std::lock_guard hold(lock_);
    directory = directory_;
    keep = keep_;
  }
  if (path.empty()) path = name_in(directory, "request");
  auto dump = recorder_.dump(path, header_);
  if (dump && std::filesystem::path(path).parent_path() == directory) keep_newest(directory, keep);
  return dump;
}

void Dumper::run() {
  std::unique_lock hold(lock_);
  for (;;) {
    wake_.wait(hold, [this] { return stop_ || wanted_; });
    if (!wanted_) return;
    wanted_ = false;
    const std::string path = name_in(directory_, why_);
    hold.unlock();
    auto dump = now(path);
    if (dump)
      say(Level::kNotice, "wrote the last " + std::to_string(dump->records) + " records to " + path);
    else
      say(Level::kError, "no dump: " + base::escaped(dump.error().message()));
    hold.lock();
  }
}

}  // namespace gpuwatch::daemon
