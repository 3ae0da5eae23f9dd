// SPDX-License-Identifier: Apache-2.0
#include "cli/privacy.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cstring>

#include "base/io.h"
#include "model/definitions.h"

namespace gpuwatch::cli {

using base::Code;
using base::Error;
using base::Result;

namespace {

constexpr std::size_t kKnownMax = 4096;
constexpr std::size_t kKeyBytesMin = 16;
constexpr std::size_t kKeyBytesMax = 4096;

// Ids that a runtime drew at random say nothing; names do.
bool is_random_id(std::string_view id) {
  return id.size() >= 24 && std::all_of(id.begin(), id.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || c == '-';
         });
}

void append(std::vector<std::byte>& out, const void* from, std::size_t size) {
  const auto* bytes = static_cast<const std::byte*>(from);
  out.insert(out.end(), bytes, bytes + size);
}

void append_padded(std::vector<std::byte>& out, std::string_view text) {
  append(out, text.data(), text.size());
  while (out.size() % 8 != 0) out.push_back(std::byte{0});
}

}  // namespace

Result<Privacy> Privacy::with_key_file(const std::string& path) {
  if (path.empty()) {
    std::string key(32, '\0');
    if (RAND_bytes(reinterpret_cast<unsigned char*>(key.data()), static_cast<int>(key.size())) != 1)
      return Error(Code::kIo, "--private: no random bytes for a key");
    return Privacy(std::move(key));
  }
  auto key = base::read_text_file(path, kKeyBytesMax);
  if (!key) return std::move(key.error()).with_context("--private-key");
  if (key->size() < kKeyBytesMin)
    return Error(Code::kBadInput, "--private-key: " + path + " holds " + std::to_string(key->size()) +
                                      " bytes, at least 16 are needed; make one with: head -c 32 /dev/urandom");
  return Privacy(std::move(*key));
}

std::array<unsigned char, 32> Privacy::digest(std::string_view kind, std::string_view value) const {
  std::string text(kind);
  text += '\0';
  text += value;
  std::array<unsigned char, 32> out{};
  unsigned length = 0;
  // With a key and memory at hand it cannot fail; if it did, zeros tell nothing.
  HMAC(EVP_sha256(), key_.data(), static_cast<int>(key_.size()), reinterpret_cast<const unsigned char*>(text.data()),
       text.size(), out.data(), &length);
  return out;
}

const std::string& Privacy::pseudonym(std::string_view kind, std::string_view value) {
  static const std::string kNothing;
  if (value.empty()) return kNothing;
  std::string key(kind);
  key += '\0';
  key += value;
  if (const auto at = known_.find(key); at != known_.end()) return at->second;
  if (known_.size() >= kKnownMax) known_.clear();
  const auto hash = digest(kind, value);
  std::string name(kind);
  name += '-';
  // comm has 15 bytes: five of the hash.
  const std::size_t bytes = kind == "comm" ? 5 : 6;
  for (std::size_t i = 0; i < bytes; ++i) {
    static constexpr char kDigits[] = "0123456789abcdef";
    name += kDigits[hash[i] >> 4];
    name += kDigits[hash[i] & 15];
  }
  return known_.emplace(std::move(key), std::move(name)).first->second;
}

std::uint32_t Privacy::user(std::uint32_t uid) {
  const std::string text = std::to_string(uid);
  const std::string& name = pseudonym("user", text);
  return 0x80000000U | static_cast<std::uint32_t>(std::stoul(name.substr(5, 8), nullptr, 16) & 0x7fffffffU);
}

void Privacy::hide_comm(char (&comm)[GPUWATCH_COMM_LEN]) {
  const std::string_view all(comm, sizeof comm);
  const std::string name = pseudonym("comm", all.substr(0, std::min(all.find('\0'), all.size())));
  std::memset(comm, 0, sizeof comm);
  std::memcpy(comm, name.data(), std::min(name.size(), sizeof comm - 1));
}

model::RawRecord Privacy::hide(const model::RawRecord& record) {
  model::RawRecord hidden = record;
  hide_comm(hidden.head.comm);
  hidden.head.uid = user(record.head.uid);
  payload_.clear();
  switch (record.head.type) {
    case GPUWATCH_REC_OPEN:
    case GPUWATCH_REC_IOCTL:
    case GPUWATCH_REC_MMAP:
    case GPUWATCH_REC_RELEASE:
    case GPUWATCH_REC_STATE:
      return hidden;
    case GPUWATCH_REC_TASK:
      if (const auto task = model::parse_task(record)) {
        const std::string path = pseudonym("exe", task->path);
        gpuwatch_rec_task fixed = task->fixed;
        fixed.exe_ino = 0;
        fixed.exe_dev = 0;
        fixed.path_len = static_cast<__u32>(path.size());
        append(payload_, &fixed, sizeof fixed);
        append_padded(payload_, path);
        append(payload_, &task->more, sizeof task->more);
        for (std::size_t i = 0; i < task->more.nr_ancestors; ++i) {
          gpuwatch_ancestor ancestor = task->ancestor(i);
          hide_comm(ancestor.comm);
          append(payload_, &ancestor, sizeof ancestor);
        }
        append_padded(payload_, {reinterpret_cast<const char*>(task->ns_id_bytes.data()), task->ns_id_bytes.size()});
      }
      break;
    case GPUWATCH_REC_CGROUP:
      if (const auto cgroup = model::parse_cgroup(record)) {
        const std::string path = pseudonym("cgroup", cgroup->path);
        gpuwatch_rec_cgroup fixed = cgroup->fixed;
        fixed.path_len = static_cast<__u32>(path.size());
        append(payload_, &fixed, sizeof fixed);
        append_padded(payload_, path);
      }
      break;
    default:
      break;  // what it may hold is not known here: nothing of it goes through
  }
  hidden.payload = payload_;
  hidden.head.len = static_cast<__u32>(sizeof hidden.head + payload_.size());
  return hidden;
}

std::string_view Privacy::id(std::string_view runtime, std::string_view id) {
  if (is_random_id(id)) return id;
  ids_.push_back(pseudonym(runtime, id));
  return ids_.back();
}

model::Actor Privacy::hide(const model::Actor& actor) {
  model::Actor hidden;
  hidden.tgid = actor.tgid;
  hidden.ns_tgid = actor.ns_tgid;
  hidden.start_ns = actor.start_ns;
  hidden.cgroup_id = actor.cgroup_id;
  hidden.runtime = actor.runtime;
  hidden.pod_uid = actor.pod_uid;
  hidden.qos = actor.qos;
  hidden.slurm_job = actor.slurm_job;
  hidden.slurm_step = actor.slurm_step;
  if (actor.user) hidden.user = user(*actor.user);
  const auto replace = [this](std::string& place, std::string_view kind, std::string_view value) {
    place = pseudonym(kind, value);
    return std::string_view(place);
  };
  hidden.exe = replace(exe_, "exe", actor.exe);
  hidden.cgroup_path = replace(cgroup_, "cgroup", actor.cgroup_path);
  hidden.unit = replace(unit_, "unit", actor.unit);
  hidden.container_name = replace(name_, "name", actor.container_name);
  hidden.image = replace(image_, "image", actor.image);
  hidden.pod_name = replace(pod_, "pod", actor.pod_name);
  hidden.pod_namespace = replace(namespace_, "namespace", actor.pod_namespace);
  // Room first: views into ids_ must not move.
  ids_.clear();
  ids_.reserve(actor.chain.size() + 1);
  chain_.clear();
  for (const model::ContainerRef& container : actor.chain)
    chain_.push_back({container.runtime, id(container.runtime, container.id), container.pod_uid});
  hidden.chain = chain_;
  hidden.container_id = id(actor.runtime, actor.container_id);
  if (actor.process != nullptr) {
    process_ = *actor.process;
    process_.exe = pseudonym("exe", process_.exe);
    process_.exe_ino = 0;
    process_.exe_dev = 0;
    for (model::Ancestor& ancestor : process_.ancestors) ancestor.comm = pseudonym("comm", ancestor.comm);
    hidden.process = &process_;
  }
  return hidden;
}

}  // namespace gpuwatch::cli
