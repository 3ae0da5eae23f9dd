// SPDX-License-Identifier: Apache-2.0
// Four steps: walk every shard, put definitions in front of what they define,
// follow references to find each file's release, sort and number. Nothing here
// gives a record a meaning beyond its header.
#include "preload/shards.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>
#include <unordered_map>

#include "base/io.h"
#include "preload/images.h"
#include "preload/shard_format.h"

namespace gpuwatch::preload {

namespace {

using base::Code;
using base::Error;
using base::Result;
using base::Status;
using model::Bytes;
using model::read_at;

struct Shard {
  gw_shard_head head{};
  std::vector<std::byte> bytes;
};

// A record of the stream to be: bytes of a shard, or a release we conclude.
struct Item {
  std::uint64_t time_ns = 0;
  int rank = 0;  // definitions before what they define, releases last
  std::size_t shard = 0;
  std::size_t order = 0;  // within the shard
  Bytes bytes;
};

struct Release {
  std::uint64_t time_ns = 0;
  std::uint64_t duration_ns = 0;
  gpuwatch_rec head{};
};

struct File {
  std::uint32_t rdev = 0;
  std::uint8_t kind = 0;
  bool held = false;
  Release last;
};

struct Context {
  Recording out;
  std::vector<Item> items;
  std::unordered_map<std::uint64_t, File> files;
  const ShardLimits* limits = nullptr;
};

bool is_definition(const gpuwatch_rec& head) {
  return head.type == GPUWATCH_REC_TASK || head.type == GPUWATCH_REC_CGROUP;
}

// A recorded program may have put anything here, under any name, at any time.
Result<base::Fd> open_shard(const std::filesystem::path& path) {
  auto fd = base::open_plain(path.string(), base::Links::kRefuse);
  struct stat st {};
  if (fd.ok() && ::fstat(fd->get(), &st) != 0) return Error::from_errno(path.string());
  // Somebody else's file, under a second name.
  if (fd.ok() && st.st_nlink > 1) return Error(Code::kBadInput, path.string() + ": has another name, too");
  return fd;
}

// From `at` on, as far as the file goes.
Result<std::size_t> read_at_offset(int fd, std::uint64_t at, std::span<std::byte> out) {
  std::size_t filled = 0;
  while (filled < out.size()) {
    const ssize_t got = ::pread(fd, out.data() + filled, out.size() - filled, static_cast<off_t>(at + filled));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error::from_errno("read");
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  return filled;
}

Result<Shard> read_shard(const std::string& path, int fd, std::uint64_t room) {
  Shard shard;
  auto got = read_at_offset(fd, 0, std::as_writable_bytes(std::span(&shard.head, 1)));
  if (!got.ok()) return std::move(got.error()).with_context(path);
  if (*got != sizeof shard.head || shard.head.magic != GW_SHARD_MAGIC || shard.head.version != GW_SHARD_VERSION ||
      shard.head.head_bytes != GW_SHARD_HEAD_BYTES)
    return Error(Code::kBadInput, path + ": not a shard of this version");
  // The recorder allocates before it writes, so a tail beyond the file's blocks
  // is not its work and would only cost us memory.
  struct stat st {};
  if (::fstat(fd, &st) != 0) return Error::from_errno(path);
  const auto backed =
      std::min<std::uint64_t>(static_cast<std::uint64_t>(st.st_size), static_cast<std::uint64_t>(st.st_blocks) * 512);
  const std::uint64_t end = std::min<std::uint64_t>(backed, shard.head.tail);
  const std::uint64_t want = end > GW_SHARD_HEAD_BYTES ? end - GW_SHARD_HEAD_BYTES : 0;
  if (want > room)
    return Error(Code::kLimit, path + ": the shards are over the limit of bytes; record less, or set " GW_ENV_MAX);
  shard.bytes.resize(want);
  got = read_at_offset(fd, GW_SHARD_HEAD_BYTES, shard.bytes);
  if (!got.ok()) return std::move(got.error()).with_context(path);
  shard.bytes.resize(*got);
  return shard;
}

struct Ref {
  gw_shard_ref ref;
  std::size_t order;
};

// What one walk over a shard finds besides records.
struct Walk {
  std::vector<Ref> refs;
  std::uint64_t last_ns = 0;
  gpuwatch_rec last_head{};
  std::uint64_t first_ns = UINT64_MAX;
  std::unordered_map<std::uint64_t, std::uint64_t> cgroup_first_ns;
};

void take_not_followed(Context& context, Bytes content) {
  const auto what = read_at<gw_shard_not_followed>(content, 0);
  if (!what || what->path_len > content.size() - sizeof *what ||
      context.out.not_followed.size() >= context.limits->not_followed)
    return;
  NotFollowed found;
  found.path.assign(reinterpret_cast<const char*>(content.data()) + sizeof *what, what->path_len);
  found.tgid = what->tgid;
  switch (what->reason) {
    case GW_NOT_STATIC:
      found.reason = "statically linked";
      break;
    case GW_NOT_WRONG_CLASS:
      found.reason = "built for another machine or word size";
      break;
    case GW_NOT_SETUID:
      found.reason = "gains privileges";
      break;
    default:
      found.reason = "unknown reason";
  }
  context.out.not_followed.push_back(std::move(found));
}

void take_record(Context& context, Walk& walk, std::size_t shard, std::size_t order, Bytes content) {
  const auto record = model::parse_record(content);
  if (!record) {
    context.out.damaged_bytes += content.size();
    return;
  }
  const gpuwatch_rec& head = record->head;
  Item item{head.time_ns, 1, shard, order, content.first(head.len)};
  if (is_definition(head)) {
    item.rank = 0;
  } else {
    walk.first_ns = std::min<std::uint64_t>(walk.first_ns, head.time_ns);
    const auto [at, added] = walk.cgroup_first_ns.try_emplace(head.cgroup_id, head.time_ns);
    if (!added) at->second = std::min<std::uint64_t>(at->second, head.time_ns);
    if (head.type == GPUWATCH_REC_OPEN && head.file_id != 0)
      context.files.try_emplace(head.file_id, File{head.rdev, head.node_kind, false, {}});
  }
  if (head.time_ns >= walk.last_ns) {
    walk.last_ns = head.time_ns;
    walk.last_head = head;
  }
  context.items.push_back(item);
}

// Visits every committed entry. Where the chain of lengths breaks (a process
// died between reserving and writing the length), looks for the next cookie.
Walk walk_entries(Context& context, const Shard& shard, std::size_t index) {
  Walk walk;
  const Bytes bytes(shard.bytes);
  for (std::size_t at = 0; at + sizeof(gw_shard_entry) <= bytes.size();) {
    const auto entry = *read_at<gw_shard_entry>(bytes, at);
    if (entry.cookie != shard.head.cookie || entry.bytes < sizeof entry || entry.bytes % 8 != 0 ||
        entry.bytes > bytes.size() - at) {
      context.out.damaged_bytes += 8;
      at += 8;
      continue;
    }
    const Bytes content = bytes.subspan(at + sizeof entry, entry.bytes - sizeof entry);
    if (entry.state != GW_ENTRY_COMMITTED) {
      ++context.out.unfinished;
    } else if (entry.kind == GW_ENTRY_RECORD) {
      take_record(context, walk, index, at, content);
    } else if (entry.kind == GW_ENTRY_REF) {
      if (const auto ref = read_at<gw_shard_ref>(content, 0)) walk.refs.push_back({*ref, at});
    } else if (entry.kind == GW_ENTRY_NOT_FOLLOWED) {
      take_not_followed(context, content);
    }
    at += entry.bytes;
  }
  return walk;
}

gpuwatch_rec head_of(const gw_shard_ref& ref, const Shard& shard) {
  gpuwatch_rec head{};
  head.cpu = ref.cpu;
  head.tgid = ref.tgid;
  head.tid = ref.tid;
  head.uid = ref.uid;
  head.start_ns = shard.head.start_ns;
  head.cgroup_id = ref.cgroup_id;
  std::copy(std::begin(ref.comm), std::end(ref.comm), std::begin(head.comm));
  return head;
}

void note_drop(Context& context, std::uint64_t file_id, const Release& release) {
  const auto at = context.files.find(file_id);
  if (at == context.files.end() || !at->second.held) return;
  if (release.time_ns >= at->second.last.time_ns) at->second.last = release;
}

// Plays what one process did to its references; what it holds at its end is
// dropped there.
void follow_references(Context& context, const Shard& shard, Walk& walk) {
  std::stable_sort(walk.refs.begin(), walk.refs.end(),
                   [](const Ref& a, const Ref& b) { return a.ref.time_ns < b.ref.time_ns; });
  std::map<std::int32_t, std::uint64_t> holds;
  std::uint64_t end = std::max<std::uint64_t>(shard.head.ended_ns, walk.last_ns);
  for (const Ref& item : walk.refs) {
    const gw_shard_ref& ref = item.ref;
    end = std::max<std::uint64_t>(end, ref.time_ns);
    if (ref.op == GW_REF_HOLD) {
      File& file = context.files[ref.file_id];
      file.held = true;
      if (ref.rdev != 0) {
        file.rdev = ref.rdev;
        file.kind = static_cast<std::uint8_t>(ref.node_kind);
      }
      holds[ref.fd] = ref.file_id;
    } else if (ref.op == GW_REF_DROP) {
      const auto held = holds.find(ref.fd);
      if (held != holds.end() && held->second == ref.file_id) holds.erase(held);
      note_drop(context, ref.file_id, {ref.time_ns, ref.duration_ns, head_of(ref, shard)});
    }
  }
  for (const auto& [fd, file_id] : holds) note_drop(context, file_id, {end, 0, walk.last_head});
}

// The recorder writes definitions when a process's first call has returned, so
// they carry later times than that call. Moves them in front. A process that
// made no call (its shard only names a program not followed) is not defined.
void move_definitions(Context& context, std::size_t first_item, const Walk& walk) {
  if (walk.first_ns == UINT64_MAX) {
    context.items.resize(first_item);
    return;
  }
  for (std::size_t i = first_item; i < context.items.size(); ++i) {
    Item& item = context.items[i];
    if (item.rank != 0) continue;
    const auto head = *read_at<gpuwatch_rec>(item.bytes, 0);
    std::uint64_t first = walk.first_ns;
    if (head.type == GPUWATCH_REC_CGROUP) {
      const auto at = walk.cgroup_first_ns.find(head.cgroup_id);
      first = at == walk.cgroup_first_ns.end() ? UINT64_MAX : at->second;
    }
    item.time_ns = std::min(item.time_ns, first);
  }
}

// The last drop by any holder is the release. Files without a holder were
// adopted: others may have them open. Items point into `storage`.
void conclude_releases(Context& context, std::vector<std::vector<std::byte>>& storage) {
  constexpr std::uint32_t kLen = sizeof(gpuwatch_rec) + sizeof(gpuwatch_rec_release);
  std::vector<std::pair<std::uint64_t, const File*>> released;
  for (const auto& [id, file] : context.files)
    if (file.held && file.last.time_ns != 0) released.emplace_back(id, &file);
  std::sort(released.begin(), released.end(), [](const auto& a, const auto& b) {
    return std::tie(a.second->last.time_ns, a.first) < std::tie(b.second->last.time_ns, b.first);
  });
  for (const auto& [id, file] : released) {
    gpuwatch_rec head = file->last.head;
    const gpuwatch_rec_release payload{file->last.duration_ns};
    head.len = kLen;
    head.type = GPUWATCH_REC_RELEASE;
    head.flags = static_cast<__u16>(head.flags & GPUWATCH_F_CGROUP_V1);
    head.time_ns = file->last.time_ns;
    head.file_id = id;
    head.rdev = file->rdev;
    head.node_kind = file->kind;
    std::vector<std::byte>& bytes = storage.emplace_back(kLen);
    std::memcpy(bytes.data(), &head, sizeof head);
    std::memcpy(bytes.data() + sizeof head, &payload, sizeof payload);
    context.items.push_back({head.time_ns, 2, SIZE_MAX, storage.size(), bytes});
  }
}

void write_stream(Context& context) {
  std::stable_sort(context.items.begin(), context.items.end(), [](const Item& a, const Item& b) {
    return std::tie(a.time_ns, a.rank, a.shard, a.order) < std::tie(b.time_ns, b.rank, b.shard, b.order);
  });
  std::unordered_map<std::uint32_t, std::uint64_t> next_seq;
  std::size_t total = 0;
  for (const Item& item : context.items) total += item.bytes.size();
  context.out.bytes.reserve(total);
  for (const Item& item : context.items) {
    auto head = *read_at<gpuwatch_rec>(item.bytes, 0);
    head.time_ns = item.time_ns;
    head.seq = next_seq[head.cpu]++;
    head.flags |= GPUWATCH_F_PRELOAD;
    const auto* raw = reinterpret_cast<const std::byte*>(&head);
    context.out.bytes.insert(context.out.bytes.end(), raw, raw + sizeof head);
    context.out.bytes.insert(context.out.bytes.end(), item.bytes.begin() + sizeof head, item.bytes.end());
    ++context.out.records;
  }
}

constexpr std::size_t kEntriesMax = 1 << 20;

Result<std::vector<std::filesystem::path>> shard_paths(const std::string& directory) {
  std::error_code error;
  std::vector<std::filesystem::path> paths;
  std::filesystem::directory_iterator files(directory, error);
  if (error) return Error(Code::kIo, directory + ": " + error.message());
  std::size_t looked_at = 0;
  for (; files != std::filesystem::directory_iterator(); files.increment(error)) {
    if (error) return Error(Code::kIo, directory + ": " + error.message());
    // Whoever fills it may be faster than this.
    if (++looked_at > kEntriesMax) return Error(Code::kLimit, directory + ": too many files");
    // Only plain files: a recorded program may have put anything here.
    const auto status = files->symlink_status(error);
    if (!error && std::filesystem::is_regular_file(status) && files->path().extension() == GW_SHARD_SUFFIX)
      paths.push_back(files->path());
  }
  return paths;
}

// Shards in memory, up to the limit of all together.
class Loaded {
 public:
  explicit Loaded(const ShardLimits& limits) : room_(limits.bytes) {}

  // `fd` -1: it is none of ours.
  Status take(const std::string& path, int fd) {
    auto shard = fd < 0 ? Result<Shard>(Error(Code::kBadInput, path)) : read_shard(path, fd, room_);
    if (!shard.ok()) {
      if (shard.error().code() != Code::kBadInput) return std::move(shard.error());
      damaged += 1;  // not one of ours, or killed while making it
      return {};
    }
    room_ -= shard->bytes.size();
    shards.push_back(std::move(*shard));
    return {};
  }

  std::vector<Shard> shards;
  std::uint64_t damaged = 0;

 private:
  std::uint64_t room_;
};

Result<Recording> record_of(Loaded loaded, const ShardLimits& limits) {
  std::vector<Shard>& shards = loaded.shards;
  Context context;
  context.limits = &limits;
  context.out.damaged_bytes = loaded.damaged;
  std::sort(shards.begin(), shards.end(), [](const Shard& a, const Shard& b) {
    return std::tie(a.head.created_ns, a.head.tgid, a.head.image) <
           std::tie(b.head.created_ns, b.head.tgid, b.head.image);
  });
  std::vector<Walk> walks;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const gw_shard_head& head = shards[i].head;
    const std::size_t first_item = context.items.size();
    walks.push_back(walk_entries(context, shards[i], i));
    move_definitions(context, first_item, walks.back());
    context.out.lost_full += head.dropped[GW_DROP_FULL];
    context.out.lost_too_big += head.dropped[GW_DROP_TOO_BIG];
    context.out.adopted += head.adopted;
    if (walks.back().first_ns == UINT64_MAX && walks.back().refs.empty()) continue;
    context.out.processes += 1;
    context.out.killed += head.ended_ns == 0;
    context.out.plan_errors += head.plan_error != 0;
  }
  // All holders must be known before the first drop counts.
  for (const Walk& walk : walks)
    for (const Ref& item : walk.refs)
      if (item.ref.op == GW_REF_HOLD) context.files[item.ref.file_id].held = true;
  for (std::size_t i = 0; i < shards.size(); ++i) follow_references(context, shards[i], walks[i]);
  std::vector<std::vector<std::byte>> storage;
  conclude_releases(context, storage);
  write_stream(context);
  return std::move(context.out);
}

}  // namespace

Result<std::vector<OpenShard>> open_shards(const std::string& directory) {
  auto paths = shard_paths(directory);
  if (!paths.ok()) return std::move(paths.error());
  if (paths->size() > kOpenShardsMax)
    return Error(Code::kLimit, directory + ": more than " + std::to_string(kOpenShardsMax) + " shards");
  std::vector<OpenShard> out;
  for (const auto& path : *paths) {
    auto fd = open_shard(path);
    if (fd.ok())
      out.push_back({path.string(), std::move(*fd)});
    else if (fd.error().code() == Code::kBadInput)
      out.push_back({path.string(), base::Fd()});
    else
      return std::move(fd.error());
  }
  return out;
}

Result<Recording> read_shards(std::span<const OpenShard> open, const ShardLimits& limits) {
  Loaded loaded(limits);
  for (const OpenShard& shard : open)
    if (Status status = loaded.take(shard.path, shard.fd.get()); !status.ok()) return std::move(status.error());
  return record_of(std::move(loaded), limits);
}

Result<Recording> read_shards(const std::string& directory, const ShardLimits& limits) {
  auto paths = shard_paths(directory);
  if (!paths.ok()) return std::move(paths.error());
  Loaded loaded(limits);
  for (const auto& path : *paths) {
    auto fd = open_shard(path);
    if (!fd.ok() && fd.error().code() != Code::kBadInput) return std::move(fd.error());
    if (Status status = loaded.take(path.string(), fd.ok() ? fd->get() : -1); !status.ok())
      return std::move(status.error());
  }
  return record_of(std::move(loaded), limits);
}

Status remove_shards(const std::string& directory) {
  auto paths = shard_paths(directory);
  if (!paths.ok()) return std::move(paths.error());
  std::error_code error;
  for (const auto& path : *paths) {
    std::filesystem::remove(path, error);
    if (error) return Error(Code::kIo, path.string() + ": " + error.message());
  }
  if (Status status = remove_images(directory); !status.ok()) return status;
  if (std::filesystem::is_empty(directory, error)) std::filesystem::remove(directory, error);
  return {};
}

}  // namespace gpuwatch::preload
