// SPDX-License-Identifier: Apache-2.0
// Filter: a small expression over one call and who made it. Compiled once,
// then evaluated per call without allocation. Language, one example:
//
//   node==gpu && name~RM_ALLOC && (pid==12 || failed) && duration>=1ms
//
// FIELD OP VALUE joined by && || ! ( ). Operators are == != < <= > >= and, for
// text, ~ (contains, whatever the case) and !~. A yes/no field stands alone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/actor.h"
#include "model/call.h"

namespace gpuwatch::cli {

struct FilterField {
  std::string_view name;
  char kind;  // 't' text, 'n' number, 'b' yes/no
  std::string_view help;
};

// For documentation and its test; in the order of the manual.
const std::vector<FilterField>& filter_fields();

class Filter {
 public:
  // Errors name the column, from 1.
  static base::Result<Filter> compile(std::string_view text);

  bool matches(const model::Call& call, const model::Actor& actor) const;

 private:
  friend class FilterParser;

  enum class Op : std::uint8_t {
    kAnd,
    kOr,
    kNot,
    kEqual,
    kNotEqual,
    kLess,
    kLessEqual,
    kGreater,
    kGreaterEqual,
    kContains,
    kNotContains,
    kTrue
  };

  struct Node {
    Op op = Op::kTrue;
    std::uint8_t field = 0;
    std::uint16_t left = 0;
    std::uint16_t right = 0;
    std::int64_t number = 0;
    std::string text;  // in lower case for kContains
  };

  bool eval(std::uint16_t index, const model::Call& call, const model::Actor& actor) const;

  std::vector<Node> nodes_;
  std::uint16_t root_ = 0;
};

}  // namespace gpuwatch::cli
