// SPDX-License-Identifier: Apache-2.0
// StatusReport: what `gpuwatch status` found out, layer by layer, and what of it
// wants somebody's attention. What could not be seen says why; nothing is
// guessed from its absence. Looking changes nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/raw_record.h"

namespace gpuwatch::cli {

struct BaselineState {
  std::string path;
  std::string error;  // why it cannot be read; empty: it can
  std::string label;
  bool deny = false;
  std::int64_t created_unix = 0;
  std::int64_t modified_unix = 0;
  std::uint64_t modules = 0;
  std::uint64_t kernels = 0;
  std::string signed_by;  // public key; empty: not signed. Not verified here.
};

struct Attention {
  std::string what;
  std::string remedy;
};

struct StatusReport {
  std::string kernel_release;
  std::string driver_version;  // empty: none loaded
  std::int64_t now_unix = 0;

  std::optional<gpuwatch_info> module;
  std::string module_error;  // why there is no `module`
  std::vector<gpuwatch_target> functions;
  std::string functions_error;
  std::optional<gpuwatch_image_status> images;
  std::string images_error;

  std::optional<bool> daemon_running;  // absent: it could not be asked
  std::string daemon_status;           // its own JSON
  std::string daemon_error;            // why there is none; empty: it does not run

  std::vector<BaselineState> baselines;
};

struct StatusPlaces {
  std::string device;
  std::string socket;
  bool socket_asked = false;           // the user named it: its absence is worth attention
  std::vector<std::string> baselines;  // asked for by the user
};

StatusReport look_at_status(const StatusPlaces& places);

// 0 fine, 1 something wants attention, 2 the module's state cannot be seen.
std::vector<Attention> attention_of(const StatusReport& report);
int exit_code_of(const StatusReport& report);

std::string status_text(const StatusReport& report);
// One line of JSON, with newline; see STATUS in gpuwatch-json(5).
std::string status_json(const StatusReport& report);

// snake_case name of an enum gpuwatch_image_loss; empty for slots without meaning.
std::string_view image_loss_name(std::size_t reason);

}  // namespace gpuwatch::cli
