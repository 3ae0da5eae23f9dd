// SPDX-License-Identifier: Apache-2.0
// The control files of the watched process on both sides of the boundary: what
// parses its records asks, what has the rights looks at the request and makes the
// call. No descriptor of the driver's crosses: whoever holds one can make, free
// and overwrite what the process has there, and the handles come from records
// that the process may have forged. So the side that a forged record may have
// taken over gets bytes of GPU memory, which is what it is there to compare.
#pragma once

#include <set>
#include <span>
#include <utility>

#include "probe/agent/rights.h"
#include "probe/outside/process_files.h"

namespace gpuwatch::probe::outside {

// Memory that both have: the driver's answers are written there by the one and
// read by the other. To be made before they part.
class Window {
 public:
  explicit Window(std::size_t bytes);
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  // Empty: there is no memory for it.
  std::span<std::uint8_t> bytes() const { return bytes_; }

 private:
  std::span<std::uint8_t> bytes_;
};

// In what parses.
class AskedFiles : public TargetFiles {
 public:
  AskedFiles(agent::Parent& parent, std::span<const std::uint8_t> window) : parent_(parent), window_(window) {}
  Failure control_files(std::vector<int>& out) override;
  Failure knows(int file, Handle client, Answer& answer) override;
  Failure read(int file, Handle client, Handle debugger, Handle memory, std::uint64_t offset,
               std::span<std::uint8_t> out, Answer& answer) override;

 private:
  agent::Parent& parent_;
  std::span<const std::uint8_t> window_;
};

// In what has the rights. It makes the three calls of TargetFiles and no other;
// takes only files that were listed as the driver's; reads only through one that
// has answered for that client, only what fits the window, and only at offsets
// that a memory can have.
class ServedFiles {
 public:
  ServedFiles(TargetFiles& files, std::span<std::uint8_t> window) : files_(files), window_(window) {}
  // As agent::Serve.
  bool serve(std::span<const std::uint8_t> request, agent::Told& told);

  static constexpr std::uint64_t kOffsetMax = 1ull << 48;
  static constexpr std::size_t kKnownMax = 4096;

 private:
  TargetFiles& files_;
  std::span<std::uint8_t> window_;
  std::vector<int> listed_;
  std::set<std::pair<int, Handle>> known_;
};

}  // namespace gpuwatch::probe::outside
