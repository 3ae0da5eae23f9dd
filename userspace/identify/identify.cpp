// SPDX-License-Identifier: Apache-2.0
#include "identify/identify.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <thread>

#include "base/io.h"
#include "identify/archive.h"
#include "identify/cache.h"
#include "identify/file_work.h"
#include "identify/pool.h"
#include "identify/walk.h"
#include "identify/wire.h"

namespace gpuwatch::identify {

namespace {

constexpr std::uint64_t kCacheBytes = 1ull << 30;
constexpr int kArchiveTimeoutMs = 600'000;  // one member may be gigabytes
constexpr std::uint64_t kSmallest = 16;     // a shorter file holds no code

unsigned worker_count(unsigned wanted) {
  return std::clamp(wanted != 0 ? wanted : std::thread::hardware_concurrency(), 1u, 16u);
}

base::Result<base::Fd> make_spool(const std::string& wanted) {
  const char* environment = std::getenv("TMPDIR");
  const std::string directory = !wanted.empty()                                  ? wanted
                                : environment != nullptr && *environment != '\0' ? environment
                                                                                 : "/tmp";
  base::Fd fd(::open(directory.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0600));
  if (!fd.valid()) {
    std::string name = directory + "/gpuwatch-spool-XXXXXX";
    fd = base::Fd(::mkostemp(name.data(), O_CLOEXEC));
    if (!fd.valid()) return base::Error::from_errno(directory + ": no place for archive members, set TMPDIR");
    (void)::unlink(name.c_str());
  }
  return fd;
}

}  // namespace

bool suits(const Image& image, std::uint32_t sm) {
  if (image.kind == Kind::kOther || image.sm == 0) return true;
  if (image.sm == sm) return true;
  const bool family = image.sm / 10 == sm / 10;
  if (image.sm_suffix == 'a') return false;
  if (image.sm_suffix == 'f') return family && image.sm < sm;
  return image.kind == Kind::kElf ? family && image.sm < sm : image.sm < sm;
}

class Identifier::Impl {
 public:
  explicit Impl(Options options)
      : options_(std::move(options)), pool_(worker_count(options_.workers), options_.timeout_ms) {
    if (options_.cache_path.empty()) return;
    std::string warning;
    auto opened = Cache::open(options_.cache_path, kCacheBytes, warning);
    if (!warning.empty()) warnings_.push_back(warning);
    if (opened)
      cache_.emplace(std::move(*opened));
    else
      warnings_.push_back(opened.error().message() + "; working without");
  }

  ~Impl() {
    if (cache_) cache_->flush();
  }

  base::Status path(const std::string& path, Sink& sink) {
    return walk(path, options_.limits, [&](const std::string& name, int fd, const base::Status& opened) {
      if (!opened.ok())
        sink.error(name, opened.error().message());
      else if (base::Status status = file(name, fd, sink, 0); !status.ok())
        sink.error(name, status.error().message());
      return !sink.stop_wanted();
    });
  }

  base::Status file(const std::string& name, int fd, Sink& sink, unsigned depth) {
    struct stat info {};
    if (::fstat(fd, &info) != 0) return base::Error::from_errno(name);
    if (!S_ISREG(info.st_mode)) return base::Error(base::Code::kUnsupported, name + ": not a regular file");
    std::uint8_t head[512];
    const FileSource source(fd, static_cast<std::uint64_t>(info.st_size));
    const std::size_t got = source.read(0, head);
    if (looks_like_archive(Bytes(head, got))) return archive(name, fd, source.size(), sink, depth);
    if (source.size() < kSmallest) {
      sink.end_of_file(name, 0);
      return {};
    }
    FileWork work(options_, pool_, cache_ && depth == 0 ? &*cache_ : nullptr, cache_ ? &*cache_ : nullptr, name, fd,
                  info, sink);
    work.run();
    struct stat after {};
    if (::fstat(fd, &after) == 0 && !(key_of(after) == key_of(info)) && depth == 0)
      sink.error(name, "the file changed while it was read");
    note_cache_trouble();
    return {};
  }

  std::vector<std::string> demangle(const std::vector<std::string>& names);
  const std::vector<std::string>& warnings() const { return warnings_; }
  const Options& options() const { return options_; }

 private:
  base::Status archive(const std::string& name, int fd, std::uint64_t size, Sink& sink, unsigned depth);

  void note_cache_trouble() {
    if (!cache_ || cache_->trouble().empty() || trouble_noted_) return;
    trouble_noted_ = true;
    warnings_.push_back("cache " + options_.cache_path + ": " + cache_->trouble() +
                        "; remove the file or use --no-cache");
  }

  Options options_;
  Pool pool_;
  std::optional<Cache> cache_;
  std::vector<std::string> warnings_;
  bool trouble_noted_ = false;
};

base::Status Identifier::Impl::archive(const std::string& name, int fd, std::uint64_t size, Sink& sink,
                                       unsigned depth) {
  if (depth >= options_.limits.archive_depth) {
    sink.error(name, "archive: more than " + std::to_string(options_.limits.archive_depth) + " within each other");
    return {};
  }
  // A process of its own: it reads ahead while the pool hashes, and its state
  // lasts as long as the archive.
  auto worker = WorkerProcess::start();
  if (!worker) return std::move(worker.error());
  std::string body;
  const auto answer = [&](Operation operation, const std::string& arguments, int handed) {
    return worker->send(static_cast<char>(operation) + arguments, &handed, 1);
  };
  // What a reply says: nothing when it is a result, else an error.
  const auto complaint = [&](WorkerProcess::Got got) -> std::optional<std::string> {
    if (got == WorkerProcess::Got::kReply && !body.empty() && body[0] == static_cast<char>(ReplyState::kResult))
      return std::nullopt;
    if (got == WorkerProcess::Got::kReply && body.size() > 1) return body.substr(1);
    return "archive: " + worker->end(got == WorkerProcess::Got::kNothing);
  };
  WireWriter open;
  open.number(size);
  if (!answer(Operation::kArchiveOpen, open.str(), fd)) {
    sink.error(name, "archive: " + worker->end(false));
    return {};
  }
  if (const auto wrong = complaint(worker->wait(body, options_.timeout_ms))) {
    sink.error(name, *wrong);
    return {};
  }
  base::Fd spools[2];
  for (base::Fd& spool : spools) {
    auto made = make_spool(options_.spool_dir);
    if (!made) return std::move(made.error());
    spool = std::move(*made);
  }
  const auto request = [&](const base::Fd& spool) {
    return ::ftruncate(spool.get(), 0) == 0 && ::lseek(spool.get(), 0, SEEK_SET) == 0 &&
           answer(Operation::kArchiveNext, "", spool.get());
  };
  bool asked = request(spools[0]);
  std::uint64_t members = 0;
  for (unsigned turn = 0; !sink.stop_wanted(); turn ^= 1) {
    if (!asked) {
      sink.error(name, "archive: " + worker->end(false));
      break;
    }
    if (const auto wrong = complaint(worker->wait(body, kArchiveTimeoutMs))) {
      sink.error(name, *wrong);
      break;
    }
    WireReader in(as_bytes(body).subspan(1));
    const bool last = in.byte() != 0;
    const std::uint64_t member_size = in.number();
    const std::string member = in.text();
    const std::string wrong = in.text();
    if (!in.done()) {
      sink.error(name, "archive: worker sent nonsense");
      break;
    }
    if (last) break;
    ++members;
    asked = request(spools[turn ^ 1]);
    const std::string full = name + "!" + member;
    if (!wrong.empty()) sink.error(full, wrong);
    if (member_size == 0) continue;
    if (base::Status status = file(full, spools[turn].get(), sink, depth + 1); !status.ok())
      sink.error(full, status.error().message());
  }
  sink.end_of_file(name, members);
  return {};
}

std::vector<std::string> Identifier::Impl::demangle(const std::vector<std::string>& names) {
  std::vector<std::string> out(names.size());
  constexpr std::size_t kBatch = 512;
  for (std::size_t first = 0; first < names.size(); first += kBatch) {
    const std::size_t count = std::min(kBatch, names.size() - first);
    WireWriter request;
    request.byte(static_cast<std::uint8_t>(Operation::kDemangle));
    request.texts({names.begin() + static_cast<std::ptrdiff_t>(first),
                   names.begin() + static_cast<std::ptrdiff_t>(first + count)});
    Job job;
    job.request = request.take();
    // A name that cannot be made readable stays as it is: no error.
    job.failed = [](const std::string&) {};
    job.done = [&out, first, count](Bytes reply) {
      WireReader in(reply);
      for (std::size_t i = 0; i < count && in.ok(); ++i) out[first + i] = in.text();
    };
    pool_.add(std::move(job));
  }
  pool_.run();
  return out;
}

Identifier::Identifier(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Identifier::~Identifier() = default;
Identifier::Identifier(Identifier&&) noexcept = default;

base::Status Identifier::path(const std::string& path, Sink& sink) {
  return impl_->path(path, sink);
}

base::Status Identifier::file(const std::string& name, int fd, Sink& sink) {
  return impl_->file(name, fd, sink, 0);
}

base::Status Identifier::bytes(const std::string& name, Bytes bytes, Sink& sink) {
  const base::Fd fd(::memfd_create("gpuwatch-image", MFD_CLOEXEC));
  if (!fd.valid()) return base::Error::from_errno(name + ": memfd_create");
  if (base::Status status = base::write_all(fd.get(), std::as_bytes(bytes)); !status.ok())
    return std::move(status.error()).with_context(name);
  return impl_->file(name, fd.get(), sink, 0);
}

std::vector<std::string> Identifier::demangle(const std::vector<std::string>& names) {
  return impl_->demangle(names);
}

const std::vector<std::string>& Identifier::warnings() const {
  return impl_->warnings();
}

}  // namespace gpuwatch::identify
