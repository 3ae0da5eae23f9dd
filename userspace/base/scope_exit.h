// SPDX-License-Identifier: Apache-2.0
// ScopeExit: runs a callable at the end of a scope unless it was dismissed.
// The callable must not throw.
#pragma once

#include <utility>

namespace gpuwatch::base {

template <typename F>
class [[nodiscard]] ScopeExit {
 public:
  explicit ScopeExit(F f) : f_(std::move(f)) {}
  ScopeExit(const ScopeExit&) = delete;
  ScopeExit& operator=(const ScopeExit&) = delete;
  ~ScopeExit() {
    if (armed_) f_();
  }
  void dismiss() { armed_ = false; }

 private:
  F f_;
  bool armed_ = true;
};

}  // namespace gpuwatch::base
