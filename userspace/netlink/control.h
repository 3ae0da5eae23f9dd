// SPDX-License-Identifier: Apache-2.0
// Control: asks the kernel module for its state and has it attach and detach. It
// keeps no state of its own and starts nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "base/result.h"
#include "netlink/message.h"

namespace gpuwatch::netlink {

class Connection;

class Control {
 public:
  // kNotFound: there is no such family here.
  static base::Result<Control> open();
  Control(Control&&) noexcept;
  Control& operator=(Control&&) noexcept;
  ~Control();

  base::Result<State> state();
  base::Status attach();
  // Calls that are still inside the driver: 0 when the hooks are out. Waits for
  // them for at most `timeout`, up to a minute.
  base::Result<std::uint32_t> detach(std::chrono::milliseconds timeout);

 private:
  explicit Control(std::unique_ptr<Connection> connection);
  base::Result<SetAnswer> set(bool attach, std::uint32_t timeout_ms);

  std::unique_ptr<Connection> connection_;
};

}  // namespace gpuwatch::netlink
