// SPDX-License-Identifier: Apache-2.0
// Where each of many functions might lie, by its bytes alone. Functions with
// equal text are looked for once. What is found is not given to anybody here.
#pragma once

#include <optional>

#include "probe/locate.h"

namespace gpuwatch::probe {

struct Candidate {
  std::uint64_t address = 0;
  std::uint64_t differences = 0;  // units of 16 bytes
  std::uint64_t first = 0;
  bool leftover = false;
};

// Functions whose text is the same under the same mask.
struct Likes {
  const Function* function = nullptr;  // one of them
  std::vector<std::uint8_t> mask;      // empty: no relocations
  std::size_t own_bytes = 0;           // without the filling at the end
  std::size_t members = 0;
  std::vector<Candidate> candidates;
};

class Candidates {
 public:
  Candidates(const std::vector<const Function*>& functions, const std::vector<Copy>& copies,
             const std::vector<Copy>& before);

  // Places with all bytes, for every function.
  void find_exact();
  // Places with most of its bytes, for those functions.
  void find_near(const std::vector<std::size_t>& functions);

  const std::vector<Candidate>& of(std::size_t function) const { return likes_[like_of_[function]].candidates; }
  // That place, found or not; none where it is not at all like the function.
  std::optional<Candidate> at(std::size_t function, std::uint64_t address) const;

 private:
  bool compare(const Likes& likes, const Copy& copy, std::size_t begin, Candidate& out) const;
  bool is_leftover(const Copy& copy, std::size_t begin, std::size_t bytes) const;
  void sort();

  const std::vector<Copy>& copies_;
  const std::vector<Copy>& before_;
  std::vector<Likes> likes_;
  std::vector<std::size_t> like_of_;  // of each function
};

}  // namespace gpuwatch::probe
