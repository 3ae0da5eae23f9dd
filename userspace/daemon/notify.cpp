// SPDX-License-Identifier: Apache-2.0
#include "daemon/notify.h"

#include <fcntl.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <cstdlib>

#include "base/clock.h"

namespace gpuwatch::daemon {

namespace {

// A status line is one line, whatever is in it.
std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  return text;
}

}  // namespace

void Notify::ready(const std::string& status) {
  ::sd_notify(0, ("READY=1\nSTATUS=" + one_line(status)).c_str());
}

void Notify::reloading() {
  ::sd_notify(0, ("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(base::monotonic_ns() / 1000)).c_str());
}

void Notify::stopping() {
  ::sd_notify(0, "STOPPING=1");
}

void Notify::status(const std::string& text) {
  ::sd_notify(0, ("STATUS=" + one_line(text)).c_str());
}

void Notify::alive() {
  ::sd_notify(0, "WATCHDOG=1");
}

std::uint64_t Notify::watchdog_ns() const {
  std::uint64_t usec = 0;
  return ::sd_watchdog_enabled(0, &usec) > 0 ? usec * 1000 : 0;
}

bool Notify::keeps() const {
  return std::getenv("NOTIFY_SOCKET") != nullptr;
}

// FDPOLL=0: a ring that is not enabled would look like a dead descriptor.
bool Notify::keep(const char* name, int fd) {
  const std::string text = std::string("FDSTORE=1\nFDPOLL=0\nFDNAME=") + name;
  return ::sd_pid_notify_with_fds(0, 0, text.c_str(), &fd, 1) > 0;
}

void Notify::forget(const char* name) {
  ::sd_notify(0, (std::string("FDSTOREREMOVE=1\nFDNAME=") + name).c_str());
}

std::vector<KeptFd> take_kept() {
  std::vector<KeptFd> kept;
  char** names = nullptr;
  const int count = ::sd_listen_fds_with_names(1, &names);
  for (int i = 0; i < count; ++i) {
    base::Fd fd(SD_LISTEN_FDS_START + i);
    ::fcntl(fd.get(), F_SETFD, FD_CLOEXEC);
    const std::string name = names != nullptr && names[i] != nullptr ? names[i] : "";
    if (name == kRingName || name == kProgressName) kept.push_back({name, std::move(fd)});
    if (names != nullptr) std::free(names[i]);
  }
  std::free(names);
  return kept;
}

}  // namespace gpuwatch::daemon
