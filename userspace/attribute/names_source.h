// SPDX-License-Identifier: Apache-2.0
// What a source of container names is asked, what it answers, and how long it
// may take. Sources run on the worker's thread only; their answers come from
// outside and are bounded here, their bytes stay untrusted.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace gpuwatch::attribute {

struct NameQuery {
  std::string runtime;
  std::string container_id;
  std::string pod_uid;

  // What the answer is remembered by.
  const std::string& key() const { return container_id.empty() ? pod_uid : container_id; }
};

inline constexpr std::size_t kNameBytesMax = 512;
inline constexpr std::size_t kLabelsMax = 64;

struct NameAnswer {
  std::string container_name;
  std::string image;
  std::string pod_name;
  std::string pod_namespace;
  std::vector<std::pair<std::string, std::string>> labels;

  bool empty() const {
    return container_name.empty() && image.empty() && pod_name.empty() && pod_namespace.empty() && labels.empty();
  }
  // Takes over what is still missing here.
  void complete_with(NameAnswer other);
  // Cuts what is over the bounds.
  void bound();
};

// Until when a source may work, and the descriptor that turns readable when it
// shall stop at once.
struct Patience {
  std::uint64_t deadline_ns = 0;  // CLOCK_MONOTONIC
  int cancel_fd = -1;

  // Milliseconds left for poll(2), 0 when there is no time left.
  int left_ms() const;
};

class NameSource {
 public:
  virtual ~NameSource() = default;
  virtual bool answers(const NameQuery& query) const = 0;
  // Nothing: it does not know this container. An error with Code::kLimit means
  // that the time was up.
  virtual base::Result<std::optional<NameAnswer>> lookup(const NameQuery& query, const Patience& patience) = 0;
};

using NameSources = std::vector<std::unique_ptr<NameSource>>;

// All sources of this machine that there is reason to ask, in order of cost:
// files first, then sockets. `root` is put before every path.
NameSources local_name_sources(const std::string& root = {});

}  // namespace gpuwatch::attribute
