// SPDX-License-Identifier: Apache-2.0
#include "cli/record_command.h"

#include <poll.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/scope_exit.h"
#include "cli/commands.h"
#include "cli/live.h"
#include "cli/output.h"
#include "cli/signals.h"
#include "decode/capture_plan.h"
#include "preload/images.h"
#include "preload/plan_file.h"
#include "preload/shard_format.h"
#include "preload/shards.h"
#include "source/host_info.h"

extern char** environ;

namespace gpuwatch::cli {

using base::Code;
using base::Error;
using base::Result;
using base::Status;

namespace {

std::string directory_of_self() {
  char path[4096];
  const ssize_t n = ::readlink("/proc/self/exe", path, sizeof path);
  const std::string self(path, n > 0 ? static_cast<std::size_t>(n) : 0);
  const std::size_t slash = self.rfind('/');
  return slash == std::string::npos ? "." : self.substr(0, slash);
}

Result<std::string> make_shard_directory() {
  const char* base = std::getenv("TMPDIR");
  std::string path = std::string(base != nullptr && *base != '\0' ? base : "/tmp") + "/gpuwatch-record-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) return Error::from_errno(path);
  return path;
}

// Environment of the command: ours, with the recorder put in front.
std::vector<std::string> environment_with(const std::string& library, const std::string& directory,
                                          const std::string& plan, std::optional<std::uint64_t> images_mib) {
  std::vector<std::string> result;
  std::string preload = "LD_PRELOAD=" + library;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (text.starts_with(GW_ENV_DIR "=") || text.starts_with(GW_ENV_PLAN "=")) continue;
    if (images_mib && text.starts_with(GW_ENV_IMAGES "=")) continue;
    if (text.starts_with("LD_PRELOAD=")) {
      if (text.size() > 11) preload += ":" + std::string(text.substr(11));
      continue;
    }
    result.emplace_back(text);
  }
  result.push_back(preload);
  result.push_back(std::string(GW_ENV_DIR "=") + directory);
  if (!plan.empty()) result.push_back(std::string(GW_ENV_PLAN "=") + plan);
  if (images_mib) result.push_back(std::string(GW_ENV_IMAGES "=") + std::to_string(*images_mib));
  return result;
}

// MiB that the images of one process may take; nothing: the recorder's own bound.
std::optional<std::uint64_t> images_of(const Flags& flags) {
  if (flags.has("no-images")) return 0;
  const auto bytes = flags.number("images-max");
  if (!bytes) return std::nullopt;
  return std::min<std::uint64_t>((*bytes + (1 << 20) - 1) >> 20, 1 << 20);
}

std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (std::string& text : strings) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

Result<pid_t> start(std::vector<std::string> command, std::vector<std::string> environment) {
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  const base::ScopeExit destroy([&] { ::posix_spawnattr_destroy(&attributes); });
  // We ignore SIGPIPE, the command must not inherit that.
  sigset_t defaults;
  ::sigemptyset(&defaults);
  ::sigaddset(&defaults, SIGPIPE);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t pid = -1;
  const std::string name = command.front();
  const int error = ::posix_spawnp(&pid, name.c_str(), nullptr, &attributes, pointers_to(command).data(),
                                   pointers_to(environment).data());
  if (error != 0) return Error::from_errno(name, error);
  return pid;
}

// Waits for the command; passes a SIGTERM or SIGHUP on (a terminal's SIGINT
// reaches it anyway), and ends it when its time is over.
Result<int> wait_for(pid_t pid, std::uint64_t deadline_ns) {
  const base::Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  bool told = false;
  for (;;) {
    int status = 0;
    const pid_t done = ::waitpid(pid, &status, pidfd.valid() ? WNOHANG : 0);
    if (done == pid) return status;
    if (done < 0 && errno != EINTR) return Error::from_errno("waiting for the command");
    const bool late = base::monotonic_ns() >= deadline_ns;
    if (!told && (late || stop_signal() == SIGTERM || stop_signal() == SIGHUP)) {
      ::kill(pid, SIGTERM);
      told = true;
    }
    if (!pidfd.valid()) continue;
    pollfd poller{pidfd.get(), POLLIN, 0};
    const bool timed = deadline_ns != ~std::uint64_t{0} && !told;
    ::poll(&poller, 1, timed ? 100 : 1000);
  }
}

std::string count_of(std::uint64_t n, const std::string& one, const std::string& many) {
  return std::to_string(n) + " " + (n == 1 ? one : many);
}

struct ImageCounts {
  std::uint64_t stored = 0;
  std::uint64_t missing = 0;
  std::uint64_t left_out = 0;

  std::vector<std::string> notes() const {
    std::vector<std::string> notes;
    if (missing > 0) notes.push_back(count_of(missing, "image", "images") + " could not be read back");
    if (left_out > 0) notes.push_back(count_of(left_out, "image was", "images were") + " left out, over the bound");
    return notes;
  }
};

std::vector<std::string> notes_of(const preload::Recording& recording) {
  std::vector<std::string> notes;
  for (const preload::NotFollowed& entry : recording.not_followed)
    notes.push_back("not followed: process " + std::to_string(entry.tgid) + " " + entry.path + ": " + entry.reason);
  if (recording.unfinished > 0) notes.push_back(count_of(recording.unfinished, "call", "calls") + " never returned");
  if (recording.adopted > 0)
    notes.push_back(count_of(recording.adopted, "file was", "files were") + " in use before their opening was seen");
  if (recording.killed > 0)
    notes.push_back(count_of(recording.killed, "process", "processes") + " ended without notice");
  if (recording.damaged_bytes > 0)
    notes.push_back(count_of(recording.damaged_bytes, "byte", "bytes") + " of the shards were damaged and skipped");
  if (recording.plan_errors > 0)
    notes.push_back(count_of(recording.plan_errors, "process", "processes") + " used the built-in capture plan");
  return notes;
}

// The bytes of a record's image, if they were kept, go in front of it.
Status save_image(const model::RawRecord& record, const std::string& directory, source::GwcapWriter& writer,
                  ImageCounts& images) {
  const auto image = model::read_at<gpuwatch_rec_image>(record.payload, 0);
  if (record.head.type != GPUWATCH_REC_IMAGE || !image || image->id == 0) return {};
  auto bytes = preload::read_image(directory, image->id, source::kGwcapImageMax);
  if (!bytes) {
    ++images.missing;
    return {};
  }
  auto kept = writer.append_image(image->id, *bytes);
  if (!kept) return std::move(kept.error());
  ++(*kept ? images.stored : images.left_out);
  return {};
}

Result<model::LossCounts> save(const preload::Recording& recording, const std::string& directory,
                               source::GwcapWriter& writer, bool with_images, ImageCounts& images) {
  const model::Bytes all(recording.bytes);
  for (std::size_t at = 0; at < all.size();) {
    const auto record = model::parse_record(all.subspan(at));
    if (!record) return Error(Code::kBadInput, "shards: record at byte " + std::to_string(at) + " has a bad length");
    at += record->head.len;
    if (record->head.type == GPUWATCH_REC_IMAGE && !with_images) continue;
    if (Status status = save_image(*record, directory, writer, images); !status.ok()) return std::move(status.error());
    if (Status status = writer.append(*record); !status.ok()) return std::move(status.error());
  }
  source::GwcapFooter footer;
  footer.lost.by_reason[GPUWATCH_LOSS_RING_FULL] = recording.lost_full;
  footer.lost.by_reason[GPUWATCH_LOSS_TOO_BIG] = recording.lost_too_big;
  footer.notes = notes_of(recording);
  for (std::string& note : images.notes()) footer.notes.push_back(std::move(note));
  if (Status status = writer.finish(footer); !status.ok()) return std::move(status.error());
  return footer.lost;
}

}  // namespace

Result<std::string> find_recorder() {
  const std::string here = directory_of_self();
  std::string tried;
  for (const std::string& path : {here + "/../lib/" GW_RECORDER_NAME, here + "/../lib/gpuwatch/" GW_RECORDER_NAME,
                                  std::string("/usr/lib/gpuwatch/" GW_RECORDER_NAME)}) {
    if (::access(path.c_str(), R_OK) == 0) {
      char resolved[4096];
      return std::string(::realpath(path.c_str(), resolved) != nullptr ? resolved : path);
    }
    tried += (tried.empty() ? "" : ", ") + path;
  }
  return Error(Code::kNotFound,
               "the recorder library is in none of: " + tried + "; build or install gpuwatch completely");
}

Result<int> record_command(const Flags& flags, const source::GwcapOptions& options) {
  for (const char* name : {"node", "pid", "cgroup", "class", "ring-bytes", "flight-recorder"})
    if (flags.has(name))
      return Error(Code::kBadInput, "--" + std::string(name) +
                                        " concerns the kernel module; a command after -- is recorded whole (filter "
                                        "when reading, with tail --replay)");
  auto library = find_recorder();
  if (!library) return std::move(library.error());
  // The dynamic linker splits LD_PRELOAD at both and has no quoting.
  if (library->find_first_of(" :") != std::string::npos)
    return Error(
        Code::kUnsupported,
        *library + ": the path has a blank or a colon, which LD_PRELOAD cannot express; install gpuwatch elsewhere");

  source::GwcapHeader header = source::describe_host("preload");
  header.label = flags.text("label");
  auto writer = source::GwcapWriter::create(flags.text("output"), header, options);
  if (!writer) return std::move(writer.error());
  auto directory = make_shard_directory();
  if (!directory) return std::move(directory.error());
  std::string plan_path = *directory + "/plan";
  const base::ScopeExit clean([&] {
    ::unlink(plan_path.c_str());
    if (Status status = preload::remove_shards(*directory); !status.ok()) say(status.error().message());
  });
  const auto version = model::parse_driver_version(header.driver_version).value_or(model::DriverVersion{});
  const decode::CapturePlan plan = decode::make_capture_plan(version);
  std::string plan_to_use = plan_path;
  if (Status status = preload::write_plan_file(plan_path, plan.entries, plan.sizes, plan.default_bytes); !status.ok()) {
    say(status.error().message() + "; going on with the recorder's built-in plan");
    plan_to_use.clear();
  }
  say("recording by LD_PRELOAD: a program can evade this; what must not be missed is for the kernel module");
  say("its calls so far lie in " + *directory + ", for gpuwatch probe --pid N --records");

  const auto duration = flags.duration("duration");
  const std::uint64_t deadline =
      duration ? base::monotonic_ns() + static_cast<std::uint64_t>(duration->count()) : ~std::uint64_t{0};
  auto pid = start(flags.rest(), environment_with(*library, *directory, plan_to_use, images_of(flags)));
  if (!pid) {
    ::unlink(flags.text("output").c_str());
    return std::move(pid.error());
  }
  auto status = wait_for(*pid, deadline);
  if (!status) return std::move(status.error());

  auto recording = preload::read_shards(*directory);
  if (!recording) return std::move(recording.error());
  ImageCounts images;
  auto lost = save(*recording, *directory, *writer, !flags.has("no-images"), images);
  if (!lost) return std::move(lost.error());
  for (const std::string& note : notes_of(*recording)) say(note);
  for (const std::string& note : images.notes()) say(note);
  say(flags.text("output") + ": " + count_of(writer->records(), "record", "records") + " of " +
      count_of(recording->processes, "process", "processes") + ", " + count_of(images.stored, "image", "images") +
      ", " + std::to_string(writer->file_bytes()) + " bytes");
  if (recording->processes == 0) say("no process was recorded: is the command statically linked, or set-user-ID?");
  say(loss_line(*lost, writer->records()));
  const int code = WIFEXITED(*status) ? WEXITSTATUS(*status) : 128 + WTERMSIG(*status);
  if (WIFSIGNALED(*status)) say("the command was ended by signal " + std::to_string(WTERMSIG(*status)));
  return code == 0 && lost->total() > 0 ? kExitFinding : code;
}

}  // namespace gpuwatch::cli
