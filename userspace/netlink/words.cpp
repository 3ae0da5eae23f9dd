// SPDX-License-Identifier: Apache-2.0
// The names, and the proof that the types have the kernel's numbers.
#include "netlink/words.h"

#include <linux/gpuwatch.h>
#include <linux/gpuwatch_genl.h>

#include <iterator>

namespace gpuwatch::netlink {

namespace {

template <typename A, typename B>
constexpr bool same(A a, B b) {
  return static_cast<std::uint32_t>(a) == static_cast<std::uint32_t>(b);
}

static_assert(same(Group::kVerdicts, GPUWATCH_GROUP_VERDICTS) && same(Group::kEvents, GPUWATCH_GROUP_EVENTS));
static_assert(same(VerdictKind::kNone, GPUWATCH_VERDICT_NONE) && same(VerdictKind::kKnown, GPUWATCH_VERDICT_KNOWN));
static_assert(same(VerdictKind::kKnownKernels, GPUWATCH_VERDICT_KNOWN_KERNELS));
static_assert(same(VerdictKind::kJit, GPUWATCH_VERDICT_JIT) &&
              same(VerdictKind::kUnverified, GPUWATCH_VERDICT_UNVERIFIED));
static_assert(same(VerdictKind::kUnknown, GPUWATCH_VERDICT_UNKNOWN) &&
              same(VerdictKind::kModified, GPUWATCH_VERDICT_MODIFIED));
static_assert(same(VerdictKind::kDenied, GPUWATCH_VERDICT_DENIED) &&
              same(VerdictKind::kTampered, GPUWATCH_VERDICT_TAMPERED));
static_assert(same(Severity::kInfo, GPUWATCH_SEVERITY_INFO) && same(Severity::kCritical, GPUWATCH_SEVERITY_CRITICAL));
static_assert(same(EventKind::kOpen, GPUWATCH_EVENT_OPEN) && same(EventKind::kLoss, GPUWATCH_EVENT_LOSS));
static_assert(same(EventKind::kDriverLive, GPUWATCH_EVENT_DRIVER_LIVE) && same(EventKind::kPlan, GPUWATCH_EVENT_PLAN));

template <std::size_t N>
std::string_view at(const std::string_view (&names)[N], std::uint32_t number, std::uint32_t first = 0) {
  return number >= first && number - first < N ? names[number - first] : std::string_view();
}

}  // namespace

std::string_view group_name(Group group) {
  constexpr std::string_view kNames[] = {GPUWATCH_GENL_GROUP_EVENTS, GPUWATCH_GENL_GROUP_VERDICTS};
  return at(kNames, static_cast<std::uint32_t>(group));
}

std::string_view verdict_word(VerdictKind verdict) {
  constexpr std::string_view kNames[] = {"none",    "known",    "known-kernels", "jit",     "unverified",
                                         "unknown", "modified", "denied",        "tampered"};
  return at(kNames, static_cast<std::uint32_t>(verdict));
}

std::string_view severity_word(Severity severity) {
  constexpr std::string_view kNames[] = {"info", "notice", "warning", "error", "critical"};
  return at(kNames, static_cast<std::uint32_t>(severity), 1);
}

std::string_view event_word(EventKind event) {
  constexpr std::string_view kNames[] = {"open",        "close",        "image",        "attached",
                                         "detached",    "driver-live",  "driver-going", "hooked",
                                         "hook-failed", "capture-plan", "loss"};
  return at(kNames, static_cast<std::uint32_t>(event), 1);
}

std::string_view cause_word(std::uint32_t cause) {
  constexpr std::string_view kNames[] = {"ring-full",         "too-big",         "probe-missed",    "overwritten",
                                         "stage-exhausted",   "image-fault",     "image-malformed", "image-too-big",
                                         "image-over-budget", "image-no-memory", "image-deadline",  "image-killed",
                                         "image-expired",     "event-queue",     "event-memory"};
  static_assert(std::size(kNames) == GPUWATCH_CAUSE_EVENT_MEMORY + 1);
  return at(kNames, cause);
}

std::string_view node_word(std::uint32_t node_kind) {
  constexpr std::string_view kNames[] = {"other",   "ctl",  "gpu",  "uvm",      "uvm-tools",
                                         "modeset", "caps", "imex", "nvswitch", "nvlink"};
  static_assert(std::size(kNames) == GPUWATCH_NODE_MAX);
  return at(kNames, node_kind);
}

std::string_view image_word(std::uint32_t image_kind) {
  constexpr std::string_view kNames[] = {"unknown", "fatbin", "elf", "text", "path", "call"};
  static_assert(std::size(kNames) == GPUWATCH_IMAGE_CALL + 1);
  return at(kNames, image_kind);
}

std::string_view op_word(std::uint32_t op) {
  constexpr std::string_view kNames[] = {"open", "ioctl", "compat_ioctl", "mmap", "mmap_prepare", "release"};
  static_assert(std::size(kNames) == GPUWATCH_OP_RELEASE + 1);
  return at(kNames, op);
}

std::string_view method_word(std::uint32_t method) {
  constexpr std::string_view kNames[] = {"none", "redirect", "kretprobe"};
  return at(kNames, method);
}

std::string named(std::string_view name, std::uint32_t number) {
  return name.empty() ? "number-" + std::to_string(number) : std::string(name);
}

}  // namespace gpuwatch::netlink
