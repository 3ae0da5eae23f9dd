// SPDX-License-Identifier: Apache-2.0
// Attributes: those of one message or nest, parsed and checked by libnl against
// a policy, with readers that copy. Internal to this room.
#pragma once

#include <netlink/attr.h>
#include <netlink/msg.h>

#include <array>
#include <cstring>
#include <optional>
#include <string>

namespace gpuwatch::netlink {

template <int kMax>
class Attributes {
 public:
  using Policy = std::array<nla_policy, kMax + 1>;

  // False: an attribute does not have its type's form, or does not fit. Of attributes that come
  // more than once the last one is kept.
  bool parse(const nlattr* first, int bytes, const Policy& policy) {
    int left = bytes;
    auto* at = const_cast<nlattr*>(first);
    while (nla_ok(at, left) != 0) at = nla_next(at, &left);
    // libnl leaves out what does not fit, and says nothing.
    if (left > 0) return false;
    return nla_parse(found_.data(), kMax, const_cast<nlattr*>(first), bytes, const_cast<nla_policy*>(policy.data())) >=
           0;
  }

  bool has(int type) const { return at(type) != nullptr; }

  template <typename T>
  std::optional<T> number(int type) const {
    const nlattr* attribute = at(type);
    if (attribute == nullptr || nla_len(attribute) != int{sizeof(T)}) return std::nullopt;
    T value{};
    std::memcpy(&value, nla_data(attribute), sizeof value);
    return value;
  }

  template <typename T>
  T number_or_zero(int type) const {
    return number<T>(type).value_or(T{});
  }

  std::string text(int type) const {
    const nlattr* attribute = at(type);
    if (attribute == nullptr || nla_len(attribute) <= 0) return {};
    const char* bytes = static_cast<const char*>(nla_data(attribute));
    return {bytes, strnlen(bytes, static_cast<std::size_t>(nla_len(attribute)))};
  }

  const nlattr* at(int type) const { return found_[static_cast<std::size_t>(type)]; }

 private:
  std::array<nlattr*, kMax + 1> found_{};
};

inline nla_policy number_policy(std::size_t bytes) {
  nla_policy policy{};
  policy.type = NLA_UNSPEC;
  policy.minlen = policy.maxlen = static_cast<std::uint16_t>(bytes);
  return policy;
}

inline nla_policy text_policy(std::size_t max_bytes) {
  nla_policy policy{};
  policy.type = NLA_STRING;
  policy.maxlen = static_cast<std::uint16_t>(max_bytes + 1);
  return policy;
}

}  // namespace gpuwatch::netlink
