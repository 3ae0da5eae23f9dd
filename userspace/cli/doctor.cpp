// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "base/io.h"
#include "cli/record_command.h"
#include "cli/selection.h"
#include "source/host_info.h"
#include "source/kmod_device.h"

namespace gpuwatch::cli {

namespace {

namespace fs = std::filesystem;

// Linux capability numbers.
constexpr unsigned kCapSysAdmin = 21;
constexpr unsigned kCapPerfmon = 38;

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator entries(directory, error);
  for (const fs::directory_iterator end; !error && entries != end; entries.increment(error))
    names.push_back(entries->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string text_or_empty(const std::string& path) {
  auto text = base::read_text_file(path);
  return text.ok() ? *text : std::string();
}

bool exists(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0;
}

std::string join(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

Check check_hardware(const std::string& root) {
  Check check{"hardware", "PCI devices of vendor 0x10de", "", Verdict::kOk, ""};
  std::vector<std::string> found;
  const std::string bus = root + "/sys/bus/pci/devices";
  for (const std::string& name : names_in(bus)) {
    // Display and 3D controllers and accelerators; their audio functions and
    // bridges are not GPUs.
    const std::string device_class = text_or_empty(bus + "/" + name + "/class");
    if (text_or_empty(bus + "/" + name + "/vendor") == "0x10de" &&
        (device_class.starts_with("0x03") || device_class.starts_with("0x12")))
      found.push_back(name + " (" + text_or_empty(bus + "/" + name + "/device") + ")");
  }
  check.found = found.empty() ? "none" : join(found);
  if (found.empty()) {
    check.verdict = Verdict::kNote;
    check.remedy = "recordings can be read here, nothing can be watched live";
  }
  return check;
}

Check check_driver(const std::string& root) {
  Check check{"driver", "/proc/driver/nvidia/version, /sys/module/nvidia", "", Verdict::kOk, ""};
  check.found = source::driver_version(root);
  if (!check.found.empty()) return check;
  check.verdict = Verdict::kNote;
  if (exists(root + "/sys/module/nouveau")) {
    check.found = "nouveau is loaded instead";
    check.remedy = "gpuwatch watches NVIDIA's own driver; install it and blacklist nouveau";
  } else {
    check.found = "not loaded";
    check.remedy = "`modprobe nvidia`; gpuwatch hooks it when it comes";
  }
  return check;
}

Check check_nodes(const std::string& root) {
  Check check{"nodes", "/dev/nvidia*", "", Verdict::kOk, ""};
  std::vector<std::string> found;
  for (const std::string& name : names_in(root + "/dev"))
    if (name.starts_with("nvidia")) found.push_back(name);
  const bool usable = std::find(found.begin(), found.end(), "nvidiactl") != found.end() &&
                      std::find(found.begin(), found.end(), "nvidia-uvm") != found.end();
  check.found = found.empty() ? "none" : join(found);
  if (!usable) {
    check.verdict = Verdict::kNote;
    check.remedy =
        "CUDA needs nvidiactl, nvidia0 and nvidia-uvm; `nvidia-modprobe -u -c 0` makes them once the driver is loaded";
  }
  return check;
}

Check check_headers(const std::string& root, const std::string& release) {
  Check check{"kernel headers", "/lib/modules/" + release + "/build", "present", Verdict::kOk, ""};
  if (exists(root + "/lib/modules/" + release + "/build/Makefile") ||
      exists(root + "/lib/modules/" + release + "/build/include"))
    return check;
  check.found = "absent";
  check.verdict = exists(root + "/sys/module/gpuwatch") ? Verdict::kNote : Verdict::kProblem;
  check.remedy = "needed to build the module: `apt-get install linux-headers-" + release + "`";
  return check;
}

Check check_secure_boot(const std::string& root) {
  Check check{"secure boot", "efivars/SecureBoot, /sys/kernel/security/lockdown", "", Verdict::kOk, ""};
  const std::string variable =
      text_or_empty(root + "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c");
  const std::string lockdown = text_or_empty(root + "/sys/kernel/security/lockdown");
  const bool on = variable.size() >= 5 && variable[4] == 1;
  const std::size_t open = lockdown.find('[');
  const std::string mode =
      open == std::string::npos ? "none" : lockdown.substr(open + 1, lockdown.find(']', open) - open - 1);
  check.found = std::string("secure boot ") + (on ? "on" : "off") + ", lockdown " + mode;
  if (on || mode != "none") {
    check.verdict = Verdict::kNote;
    check.remedy =
        "the module must be signed with an enrolled key: `mokutil --import` the key that dkms signs with, and reboot";
  }
  if (mode == "confidentiality") {
    check.verdict = Verdict::kProblem;
    check.remedy = "this lockdown mode forbids kernel probes; boot with lockdown=integrity";
  }
  return check;
}

Check check_ftrace(const std::string& root) {
  Check check{"ftrace", "/proc/sys/kernel/ftrace_enabled", "on", Verdict::kOk, ""};
  const std::string value = text_or_empty(root + "/proc/sys/kernel/ftrace_enabled");
  if (value == "1") return check;
  check.found = value.empty() ? "not in this kernel" : "off";
  check.verdict = Verdict::kNote;
  check.remedy = value.empty() ? "gpuwatch falls back to kretprobes"
                               : "`sysctl kernel.ftrace_enabled=1`, or gpuwatch falls back to kretprobes";
  return check;
}

Check check_cgroup(const std::string& root) {
  Check check{"cgroups", "/proc/self/mounts", "", Verdict::kOk, ""};
  const auto mount = cgroup2_mount(text_or_empty(root + "/proc/self/mounts"));
  check.found = mount ? "cgroup v2 at " + *mount : "no cgroup v2 mounted";
  if (!mount) {
    check.verdict = Verdict::kNote;
    check.remedy = "containers are named by the v1 memory hierarchy; --cgroup needs v2";
  }
  return check;
}

Check check_privileges(const std::string& root) {
  Check check{"privileges", "/proc/self/status, /proc/self/uid_map", "", Verdict::kOk, ""};
  const std::string status = text_or_empty(root + "/proc/self/status");
  std::uint64_t caps = 0;
  if (const std::size_t at = status.find("CapEff:"); at != std::string::npos) {
    const std::size_t from = status.find_first_not_of(" \t", at + 7);
    if (from != std::string::npos) std::from_chars(status.data() + from, status.data() + status.size(), caps, 16);
  }
  const bool admin = ((caps >> kCapSysAdmin) & 1) != 0;
  const bool perfmon = ((caps >> kCapPerfmon) & 1) != 0;
  // The initial user namespace maps every id to itself.
  const std::string map = text_or_empty(root + "/proc/self/uid_map");
  const bool initial = map.empty() || map.find("4294967295") != std::string::npos;
  check.found = std::string(admin     ? "CAP_SYS_ADMIN"
                            : perfmon ? "CAP_PERFMON"
                                      : "neither CAP_PERFMON nor CAP_SYS_ADMIN") +
                (initial ? "" : ", in a user namespace");
  if ((!admin && !perfmon) || !initial) {
    check.verdict = Verdict::kProblem;
    check.remedy = "watch live as root on the host; recordings need no privilege, nor does `gpuwatch record -- CMD`";
  } else if (!admin) {
    check.verdict = Verdict::kNote;
    check.remedy = "tail and record work; attach, detach and the capture plan need CAP_SYS_ADMIN";
  }
  return check;
}

Check check_module(const std::string& root) {
  Check check{"kernel module", "/sys/module/gpuwatch, /dev/gpuwatch", "", Verdict::kOk, ""};
  if (!exists(root + "/sys/module/gpuwatch") && !exists(root + "/dev/gpuwatch")) {
    check.found = "not loaded";
    check.verdict = Verdict::kProblem;
    check.remedy = "`modprobe gpuwatch`; when that is not found, `make dkms-install`";
    return check;
  }
  auto device = source::KmodDevice::open(root + "/dev/gpuwatch");
  if (!device) {
    check.found = "loaded, but cannot be used";
    check.verdict = Verdict::kProblem;
    check.remedy = device.error().message();
    return check;
  }
  const gpuwatch_info& info = device->info_at_open();
  check.found = "ABI " + std::to_string(info.abi_major) + "." + std::to_string(info.abi_minor) + ", schema " +
                std::to_string(info.schema) + ", " + std::to_string(info.nr_targets) + " driver functions known, " +
                (info.attached != 0 ? "attached" : "not attached");
  return check;
}

Check check_recorder() {
  Check check{"recorder library", "libgpuwatch-record.so", "", Verdict::kOk, ""};
  auto path = find_recorder();
  check.found = path.ok() ? *path : "absent";
  if (!path.ok()) {
    check.verdict = Verdict::kNote;
    check.remedy = "only `gpuwatch record -- CMD` needs it: " + path.error().message();
  }
  return check;
}

}  // namespace

std::vector<Check> examine(const std::string& root) {
  return {
      check_hardware(root),    check_driver(root), check_nodes(root),  check_headers(root, source::kernel_release()),
      check_secure_boot(root), check_ftrace(root), check_module(root), check_privileges(root),
      check_cgroup(root),      check_recorder()};
}

}  // namespace gpuwatch::cli
