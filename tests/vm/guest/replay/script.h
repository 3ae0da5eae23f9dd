// SPDX-License-Identifier: Apache-2.0
// The session of one thread with the simulated driver: the script of answers
// it will get, bound to the calling thread for as long as the object lives.
#pragma once

#include <cstddef>
#include <vector>

#include "../../simdrv/gwsim.h"
#include "base/result.h"
#include "recording.h"

namespace gpuwatch::replay {

// Script of a thread's steps (gwsim.h); `delay_us` goes into every ioctl.
std::vector<std::byte> make_script(const Thread& thread, std::uint32_t delay_us);

// `control` is an open /dev/gwsim and outlives the session.
class Session {
 public:
  static base::Result<Session> bind(int control, const std::vector<std::byte>& script);
  Session(Session&& other) noexcept : control_(other.control_) { other.control_ = -1; }
  Session& operator=(Session&&) = delete;
  ~Session();

  base::Result<gwsim_session_stat> unbind();

 private:
  explicit Session(int control) : control_(control) {}
  int control_;
};

}  // namespace gpuwatch::replay
