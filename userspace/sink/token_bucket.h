// SPDX-License-Identifier: Apache-2.0
// TokenBucket: at most `burst` at once and `per_second` in the long run. Knows
// no clock: the caller says what time it is. Not thread-safe.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>

namespace gpuwatch::sink {

struct Rate {
  double per_second = 1.0;
  double burst = 10.0;
};

class TokenBucket {
 public:
  using Clock = std::chrono::steady_clock;

  explicit TokenBucket(Rate rate)
      : rate_{std::max(rate.per_second, 1e-6), std::max(rate.burst, 1.0)}, tokens_(rate_.burst) {}

  // Takes a token: 0. There is none: how long until there is.
  std::chrono::milliseconds take(Clock::time_point now) {
    if (last_ != Clock::time_point{} && now > last_)
      tokens_ = std::min(rate_.burst, tokens_ + std::chrono::duration<double>(now - last_).count() * rate_.per_second);
    last_ = std::max(last_, now);
    if (tokens_ >= 1.0 - 1e-9) {
      tokens_ -= 1.0;
      return std::chrono::milliseconds(0);
    }
    const double wait_ms = std::ceil((1.0 - tokens_) / rate_.per_second * 1000.0);
    return std::chrono::milliseconds(static_cast<std::int64_t>(std::clamp(wait_ms, 1.0, 3.6e6)));
  }

 private:
  Rate rate_;
  double tokens_;
  Clock::time_point last_{};
};

}  // namespace gpuwatch::sink
