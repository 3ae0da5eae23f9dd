// SPDX-License-Identifier: Apache-2.0
// Screen: the terminal of `gpuwatch top`, and the only place that knows ncurses.
// Paints frames, reads keys, gives the terminal back as it was. Shows text as it
// comes: safe() was its author's duty.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

#include "base/result.h"
#include "cli/top/ui.h"

namespace gpuwatch::cli::top {

// The terminal shows UTF-8, as the environment says.
bool terminal_is_utf8();

class Screen {
 public:
  // An error where terminfo does not know the terminal.
  static base::Result<std::unique_ptr<Screen>> open(bool colour);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  std::size_t width() const;
  std::size_t height() const;
  void paint(const Frame& frame);

  // Keys pressed since the last call; waits for the first one at most so long.
  // False when there will be no more: the terminal is gone.
  bool read(std::chrono::milliseconds up_to, std::vector<Key>& keys);

 private:
  Screen() = default;
  struct Terminal;
  std::unique_ptr<Terminal> terminal_;
};

}  // namespace gpuwatch::cli::top
