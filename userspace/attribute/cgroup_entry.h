// SPDX-License-Identifier: Apache-2.0
// CgroupEntry: what is remembered about one cgroup: its path, what the path
// says, and the names that a lookup may add later. It owns the texts and
// lends views; it asks nobody.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "attribute/container.h"
#include "attribute/names.h"
#include "model/actor.h"

namespace gpuwatch::attribute {

class CgroupEntry {
 public:
  CgroupEntry() = default;
  CgroupEntry(const CgroupEntry&) = delete;
  CgroupEntry& operator=(const CgroupEntry&) = delete;

  // Does nothing where the path is the one known.
  void set_path(std::string_view path);

  const std::string& path() const { return path_; }
  const CgroupFacts& facts() const { return facts_; }

  // Takes the names that are known now; asks for them where they are not.
  // Never waits.
  void ask(Names& names);

  // Views live until the next set_path() or ask().
  void tell(model::Actor& actor) const;

 private:
  std::string path_;
  CgroupFacts facts_;                       // views into path_
  std::array<std::string, kMaxChain> ids_;  // without systemd's escapes
  std::array<std::string, kMaxChain> pods_;
  std::array<model::ContainerRef, kMaxChain> chain_;
  std::string pod_uid_;
  std::shared_ptr<const KnownNames> names_;
  std::uint64_t asked_at_ = 0;  // generation of Names, plus one
};

}  // namespace gpuwatch::attribute
