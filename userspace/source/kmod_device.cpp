// SPDX-License-Identifier: Apache-2.0
#include "source/kmod_device.h"

#include <fcntl.h>
#include <sys/ioctl.h>

namespace gpuwatch::source {

using base::Code;
using base::Error;
using base::Result;
using base::Status;

namespace {

constexpr const char* kNeedsAdmin = "; needs CAP_SYS_ADMIN: run it as root";

Error open_error(const std::string& path, int error) {
  switch (error) {
    case ENOENT:
    case ENXIO:
    case ENODEV:
      return Error(
          Code::kNotFound,
          path +
              ": the gpuwatch kernel module is not loaded; load it with `modprobe gpuwatch`, or see `gpuwatch doctor`",
          error);
    case EPERM:
    case EACCES:
      return Error(
          Code::kPermission,
          path +
              ": not permitted; needs CAP_PERFMON or CAP_SYS_ADMIN in the initial user namespace (in a container "
              "neither helps), and read access to the node: run it as root on the host",
          error);
    default:
      return Error::from_errno(path, error);
  }
}

Error call_error(const char* what, const char* remedy = "") {
  const int error = errno;
  Error result = Error::from_errno(what, error);
  if (error == EPERM || error == EACCES) return Error(Code::kPermission, result.message() + remedy, error);
  return result;
}

}  // namespace

Status check_versions(const gpuwatch_info& info) {
  if (info.abi_major != GPUWATCH_ABI_MAJOR)
    return Error(Code::kUnsupported,
                 "the loaded gpuwatch module speaks ABI " + std::to_string(info.abi_major) + "." +
                     std::to_string(info.abi_minor) + ", this program needs " + std::to_string(GPUWATCH_ABI_MAJOR) +
                     "." + std::to_string(GPUWATCH_ABI_MINOR) +
                     "; install module and program of the same release, then `rmmod gpuwatch && modprobe gpuwatch`",
                 EPROTO);
  if (info.schema == 0)
    return Error(Code::kUnsupported, "the loaded gpuwatch module states no record schema; install one of this release",
                 EPROTO);
  return {};
}

Result<KmodDevice> KmodDevice::open(const std::string& path) {
  KmodDevice device(base::Fd(::open(path.c_str(), O_RDWR | O_CLOEXEC)));
  // The node is 0440 by intent: a shared writable mapping then needs root's
  // override, so fall back only where that is refused.
  if (!device.fd_.valid() && errno == EACCES) device.fd_ = base::Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!device.fd_.valid()) return open_error(path, errno);
  return adopt(std::move(device.fd_));
}

Result<KmodDevice> KmodDevice::adopt(base::Fd fd) {
  KmodDevice device(std::move(fd));
  auto info = device.info();
  if (!info) return std::move(info.error());
  device.info_ = *info;
  if (Status status = check_versions(*info); !status.ok()) return std::move(status.error());
  return device;
}

Result<gpuwatch_info> KmodDevice::info() const {
  gpuwatch_info info{};
  if (::ioctl(fd_.get(), GPUWATCH_IOC_GET_INFO, &info) != 0) {
    if (errno == ENOTTY)
      return Error(Code::kUnsupported,
                   "the node does not answer GPUWATCH_IOC_GET_INFO: it is not gpuwatch's, or of an unknown release",
                   ENOTTY);
    return call_error("asking the module for its state");
  }
  return info;
}

Result<std::vector<gpuwatch_target>> KmodDevice::targets() const {
  std::vector<gpuwatch_target> targets;
  // More than any driver has, so that a module gone wrong cannot keep us here.
  for (std::uint32_t index = 0; index < 1024; ++index) {
    gpuwatch_target target{};
    target.index = index;
    if (::ioctl(fd_.get(), GPUWATCH_IOC_GET_TARGET, &target) != 0) {
      if (errno == ENOENT) break;
      return call_error("listing hooked functions", kNeedsAdmin);
    }
    targets.push_back(target);
  }
  return targets;
}

Result<gpuwatch_stats> KmodDevice::stats() const {
  gpuwatch_stats stats{};
  if (::ioctl(fd_.get(), GPUWATCH_IOC_GET_STATS, &stats) != 0) return call_error("asking the module for its counters");
  return stats;
}

Status KmodDevice::setup(std::uint64_t ring_bytes, gpuwatch_ring_mode mode, std::uint32_t watermark_bytes,
                         std::uint32_t flags) {
  gpuwatch_setup setup{};
  setup.abi_major = GPUWATCH_ABI_MAJOR;
  setup.flags = flags;
  setup.mode = mode;
  setup.watermark_bytes = watermark_bytes;
  setup.ring_bytes = ring_bytes;
  if (::ioctl(fd_.get(), GPUWATCH_IOC_SETUP, &setup) == 0) return {};
  if (errno == EPROTO) return check_versions({}).error();
  if (errno == ENOMEM)
    return Error(
        Code::kLimit,
        "no kernel memory for rings of " + std::to_string(ring_bytes) + " bytes per CPU; choose a smaller --ring-bytes",
        ENOMEM);
  if (errno == EINVAL)
    return Error(Code::kBadInput,
                 "the module refuses rings of " + std::to_string(ring_bytes) +
                     " bytes; --ring-bytes must be a power of two, from " + std::to_string(kRingMin) + " to " +
                     std::to_string(kRingMax),
                 EINVAL);
  return call_error("making rings");
}

Status KmodDevice::set_filter(const gpuwatch_filter& filter) {
  gpuwatch_filter copy = filter;
  if (::ioctl(fd_.get(), GPUWATCH_IOC_SET_FILTER, &copy) == 0) return {};
  if (errno == EINVAL || errno == EBADF)
    return Error(Code::kBadInput,
                 "the module refuses the filter; --cgroup must name a directory of the cgroup v2 hierarchy", errno);
  return call_error("setting the filter");
}

Status KmodDevice::enable() {
  if (::ioctl(fd_.get(), GPUWATCH_IOC_ENABLE) == 0) return {};
  return call_error("starting delivery");
}

Status KmodDevice::disable() {
  if (::ioctl(fd_.get(), GPUWATCH_IOC_DISABLE) == 0) return {};
  return call_error("stopping delivery");
}

Status KmodDevice::attach() {
  if (::ioctl(fd_.get(), GPUWATCH_IOC_ATTACH) == 0) return {};
  return call_error("attaching", kNeedsAdmin);
}

Result<std::uint32_t> KmodDevice::detach(std::uint32_t timeout_ms) {
  gpuwatch_detach detach{};
  detach.timeout_ms = timeout_ms;
  if (::ioctl(fd_.get(), GPUWATCH_IOC_DETACH, &detach) == 0) return 0u;
  if (errno == EBUSY && detach.in_flight > 0) return detach.in_flight;
  if (errno == EBUSY)
    return Error(Code::kIo,
                 "detaching: the hooks are in use by other consumers; end them first (`gpuwatch status` counts them)",
                 EBUSY);
  return call_error("detaching", kNeedsAdmin);
}

Result<std::uint32_t> KmodDevice::add_probe(const gpuwatch_probe& probe) const {
  gpuwatch_probe copy = probe;
  if (::ioctl(fd_.get(), GPUWATCH_IOC_ADD_PROBE, &copy) == 0) return copy.id;
  if (errno == ENOTTY)
    return Error(Code::kUnsupported, "the loaded gpuwatch module is older and captures no images; load a newer one",
                 ENOTTY);
  return call_error("setting a probe", kNeedsAdmin);
}

Status KmodDevice::remove_probe(std::uint32_t id) const {
  gpuwatch_probe_ref ref{};
  ref.id = id;
  if (::ioctl(fd_.get(), GPUWATCH_IOC_REMOVE_PROBE, &ref) == 0) return {};
  return call_error("removing a probe", kNeedsAdmin);
}

Result<ImageBytes> KmodDevice::take_image(std::uint64_t id) const {
  gpuwatch_image image{};
  image.id = id;
  image.flags = GPUWATCH_IMAGE_DROP;
  if (::ioctl(fd_.get(), GPUWATCH_IOC_GET_IMAGE, &image) != 0) {
    if (errno == ENOENT)
      return Error(Code::kNotFound,
                   "image " + std::to_string(id) +
                       " is not stored any more: it was not fetched within the module's parameter image_age_ms",
                   ENOENT);
    return call_error("fetching an image", kNeedsAdmin);
  }
  base::Fd fd(image.fd);
  const auto length = static_cast<std::size_t>(image.bytes);
  void* mapping = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (mapping == MAP_FAILED)
    return Error::from_errno("mapping " + std::to_string(length) + " bytes of image " + std::to_string(id));
  return ImageBytes(mapping, length, std::move(fd));
}

Status KmodDevice::drop_image(std::uint64_t id) const {
  gpuwatch_image image{};
  image.id = id;
  if (::ioctl(fd_.get(), GPUWATCH_IOC_DROP_IMAGE, &image) == 0) return {};
  return call_error("giving up an image", kNeedsAdmin);
}

Result<gpuwatch_image_status> KmodDevice::image_status() const {
  gpuwatch_image_status status{};
  if (::ioctl(fd_.get(), GPUWATCH_IOC_GET_IMAGE_STATUS, &status) == 0) return status;
  return call_error("asking for the state of images");
}

Result<std::uint32_t> KmodDevice::set_plan(std::span<const gpuwatch_plan_entry> entries,
                                           std::span<const gpuwatch_plan_size> sizes, std::uint32_t default_bytes) {
  gpuwatch_plan plan{};
  plan.entries = reinterpret_cast<std::uintptr_t>(entries.data());
  plan.sizes = reinterpret_cast<std::uintptr_t>(sizes.data());
  plan.nr_entries = static_cast<__u32>(entries.size());
  plan.nr_sizes = static_cast<__u32>(sizes.size());
  plan.default_bytes = default_bytes;
  if (::ioctl(fd_.get(), GPUWATCH_IOC_SET_PLAN, &plan) == 0) return plan.generation;
  return call_error("setting the capture plan", kNeedsAdmin);
}

}  // namespace gpuwatch::source
