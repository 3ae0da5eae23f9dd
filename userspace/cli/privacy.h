// SPDX-License-Identifier: Apache-2.0
// Privacy: puts stable pseudonyms in the place of names, paths and users, by
// HMAC-SHA-256 with a key that stays here. Records are rewritten before
// anything decodes or prints them, and of an actor only what is named here goes
// through: what a later version adds is hidden until somebody decides.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "model/actor.h"
#include "model/raw_record.h"

namespace gpuwatch::cli {

class Privacy {
 public:
  // The key's bytes: of a file, or new ones where the path is empty.
  static base::Result<Privacy> with_key_file(const std::string& path);
  explicit Privacy(std::string key) : key_(std::move(key)) {}

  // "exe-0123456789ab" for a value, nothing for nothing. The same value gives
  // another pseudonym as another kind.
  const std::string& pseudonym(std::string_view kind, std::string_view value);
  // Stands in for a user id: 2147483648 or more, so that no real one is met.
  std::uint32_t user(std::uint32_t uid);

  // Views live until the next call of the same function.
  model::RawRecord hide(const model::RawRecord& record);
  model::Actor hide(const model::Actor& actor);

 private:
  std::array<unsigned char, 32> digest(std::string_view kind, std::string_view value) const;
  void hide_comm(char (&comm)[GPUWATCH_COMM_LEN]);
  std::string_view id(std::string_view runtime, std::string_view id);

  std::string key_;
  std::unordered_map<std::string, std::string> known_;
  std::vector<std::byte> payload_;
  std::vector<model::ContainerRef> chain_;
  std::vector<std::string> ids_;
  std::string cgroup_, unit_, exe_, name_, image_, pod_, namespace_;
  model::Process process_;
};

}  // namespace gpuwatch::cli
