// SPDX-License-Identifier: Apache-2.0
// Ui: what keys do to the screen of `gpuwatch top`, and what it looks like as
// lines of styled text. Knows no terminal library: screen.h paints, tests read.
// Any size will do, 1 x 1 too; every line is exactly as wide as the screen.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/top/rows.h"
#include "report/holdings.h"

namespace gpuwatch::cli::top {

enum class Style : std::uint8_t {
  kPlain,
  kBold,
  kGood,
  kBad,
  kGone,
  kBar,       // header and keys at the bottom
  kSelected,  // the row that the keys are about
  kTree,
};

struct Span {
  std::string text;
  Style style = Style::kPlain;
};
using Line = std::vector<Span>;
using Frame = std::vector<Line>;

struct Key {
  enum Code : std::uint8_t {
    kChar,
    kUp,
    kDown,
    kLeft,
    kRight,
    kPageUp,
    kPageDown,
    kHome,
    kEnd,
    kEnter,
    kBackspace,
    kEscape,
    kFunction,
    kOther,
  };
  Code code = kOther;
  std::uint32_t value = 0;  // the character, or the number of the function key
};

struct UiOptions {
  ListOptions list;
  std::int32_t utc_offset_s = 0;
  bool still = false;   // nothing will change: a recording
  std::string trouble;  // told below the header; empty: none
};

class Ui {
 public:
  explicit Ui(UiOptions options) : options_(std::move(options)) {}

  // False: the user wants to leave.
  bool press(const Key& key, const report::HoldingsSnapshot& snapshot);
  Frame draw(std::size_t width, std::size_t height, const report::HoldingsSnapshot& snapshot);

  void set_trouble(std::string trouble) { options_.trouble = std::move(trouble); }
  const ListOptions& list_options() const { return options_.list; }

 private:
  enum class Mode : std::uint8_t { kRows, kHelp, kDetails, kSort, kUsers, kFilter };

  bool press_rows(const Key& key, const Listing& listing);
  void press_choice(const Key& key, std::size_t count);
  void press_filter(const Key& key);
  void fold(const Listing& listing, int how);  // -1 fold, 0 other way round, 1 unfold
  void settle(const Listing& listing);
  std::size_t selected_in(const Listing& listing) const;
  void move(const Listing& listing, std::int64_t by);

  void draw_rows(Frame& frame, const Listing& listing, const report::HoldingsSnapshot& snapshot) const;
  std::vector<std::string> popup(const report::HoldingsSnapshot& snapshot, const Listing& listing) const;
  void draw_popup(Frame& frame, const std::vector<std::string>& lines) const;

  UiOptions options_;
  Mode mode_ = Mode::kRows;
  std::string selected_;    // key of a row
  std::size_t index_ = 0;   // where it was last
  std::size_t first_ = 0;   // row on top
  std::size_t page_ = 1;    // rows on the screen
  std::size_t choice_ = 0;  // in a menu; first line of a text
  std::string before_;      // filter before it was edited
};

// Header lines, shared with the plain table.
std::string headline(const report::HoldingsSnapshot& snapshot, const Listing& listing, std::int32_t utc_offset_s);
// Of the column with the names, and what it wants at least.
const char* name_title(const ListOptions& options);
std::size_t name_width(const ListOptions& options);
std::string loss_text(const report::HoldingsSnapshot& snapshot);

// Columns that fit beside a name of at least `name_width`; in the order of the
// table.
std::vector<Column> columns_for(std::size_t width, std::size_t name_width, const Listing& listing);

// What is known of one process, a line each, safe.
std::vector<std::string> details(const Row& row, const report::HoldingsSnapshot& snapshot, const ListOptions& options,
                                 std::int32_t utc_offset_s);
std::vector<std::string> help_lines();

}  // namespace gpuwatch::cli::top
