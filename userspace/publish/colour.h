// SPDX-License-Identifier: Apache-2.0
// Terminal colours as a scope: what is appended while it lives is coloured, and
// the colour always ends. Only when the caller asked for colour.
#pragma once

#include <string>
#include <string_view>

namespace gpuwatch::publish::colour {

inline constexpr std::string_view kRed = "\033[31m";
inline constexpr std::string_view kGreen = "\033[32m";
inline constexpr std::string_view kBold = "\033[1m";
inline constexpr std::string_view kDim = "\033[2m";

class Scope {
 public:
  Scope(std::string& out, bool on, std::string_view code) : out_(out), on_(on) {
    if (on_) out_ += code;
  }
  ~Scope() {
    if (on_) out_ += "\033[0m";
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  std::string& out_;
  bool on_;
};

}  // namespace gpuwatch::publish::colour
