// SPDX-License-Identifier: Apache-2.0
#include "cli/top/screen.h"

#include <langinfo.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <string_view>

// After everything else: it makes macros of common words.
#include <curses.h>

namespace gpuwatch::cli::top {

using base::Code;
using base::Error;
using base::Result;

namespace {

enum Pair : short { kGreen = 1, kRed, kBarPair, kSelectedPair, kTreePair };

attr_t attributes_of(Style style, bool colour) {
  const auto pair = [&](Pair number, attr_t with, attr_t without) {
    return colour ? static_cast<attr_t>(COLOR_PAIR(number)) | with : without;
  };
  switch (style) {
    case Style::kBold:
      return A_BOLD;
    case Style::kGood:
      return pair(kGreen, A_NORMAL, A_NORMAL);
    case Style::kBad:
      return pair(kRed, A_BOLD, A_BOLD);
    case Style::kGone:
      return A_DIM;
    case Style::kBar:
      return pair(kBarPair, A_NORMAL, A_REVERSE);
    case Style::kSelected:
      return pair(kSelectedPair, A_NORMAL, A_REVERSE);
    case Style::kTree:
      return pair(kTreePair, A_NORMAL, A_NORMAL);
    default:
      return A_NORMAL;
  }
}

Key key_of(int kind, wint_t value) {
  if (kind != KEY_CODE_YES) {
    if (value == '\n' || value == '\r') return {Key::kEnter, 0};
    if (value == 0x1b) return {Key::kEscape, 0};
    if (value == 0x7f || value == 0x08) return {Key::kBackspace, 0};
    return {Key::kChar, static_cast<std::uint32_t>(value)};
  }
  switch (value) {
    case KEY_UP:
      return {Key::kUp, 0};
    case KEY_DOWN:
      return {Key::kDown, 0};
    case KEY_LEFT:
      return {Key::kLeft, 0};
    case KEY_RIGHT:
      return {Key::kRight, 0};
    case KEY_PPAGE:
      return {Key::kPageUp, 0};
    case KEY_NPAGE:
      return {Key::kPageDown, 0};
    case KEY_HOME:
      return {Key::kHome, 0};
    case KEY_END:
      return {Key::kEnd, 0};
    case KEY_ENTER:
      return {Key::kEnter, 0};
    case KEY_BACKSPACE:
      return {Key::kBackspace, 0};
    default:
      break;
  }
  if (value >= static_cast<wint_t>(KEY_F(1)) && value <= static_cast<wint_t>(KEY_F(12)))
    return {Key::kFunction, static_cast<std::uint32_t>(value - static_cast<wint_t>(KEY_F0))};
  return {Key::kOther, 0};
}

}  // namespace

struct Screen::Terminal {
  SCREEN* screen = nullptr;
  bool colour = false;
};

bool terminal_is_utf8() {
  std::setlocale(LC_CTYPE, "");
  return std::string_view(::nl_langinfo(CODESET)) == "UTF-8";
}

Result<std::unique_ptr<Screen>> Screen::open(bool colour) {
  std::setlocale(LC_CTYPE, "");
  ::setenv("ESCDELAY", "50", 0);
  SCREEN* made = ::newterm(nullptr, stdout, stdin);
  if (made == nullptr) {
    const char* term = std::getenv("TERM");
    return Error(Code::kUnsupported,
                 "the terminal \"" + std::string(term == nullptr ? "" : term) +
                     "\" is not known here: set TERM to one that is, as in TERM=xterm, or use --once");
  }
  std::unique_ptr<Screen> screen(new Screen);
  screen->terminal_ = std::make_unique<Terminal>();
  screen->terminal_->screen = made;
  ::set_term(made);
  ::cbreak();
  ::noecho();
  ::nonl();
  ::keypad(stdscr, TRUE);
  ::nodelay(stdscr, TRUE);
  ::scrollok(stdscr, FALSE);
  ::curs_set(0);
  if (colour && ::has_colors()) {
    ::start_color();
    ::use_default_colors();
    ::init_pair(kGreen, COLOR_GREEN, -1);
    ::init_pair(kRed, COLOR_RED, -1);
    ::init_pair(kBarPair, COLOR_BLACK, COLOR_GREEN);
    ::init_pair(kSelectedPair, COLOR_BLACK, COLOR_CYAN);
    ::init_pair(kTreePair, COLOR_CYAN, -1);
    screen->terminal_->colour = true;
  }
  return screen;
}

Screen::~Screen() {
  ::endwin();
  ::delscreen(terminal_->screen);
}

std::size_t Screen::width() const {
  return static_cast<std::size_t>(std::max(getmaxx(stdscr), 1));
}

std::size_t Screen::height() const {
  return static_cast<std::size_t>(std::max(getmaxy(stdscr), 1));
}

void Screen::paint(const Frame& frame) {
  ::erase();
  int row = 0;
  for (const Line& line : frame) {
    if (row >= getmaxy(stdscr)) break;
    ::move(row++, 0);
    for (const Span& span : line) {
      ::attrset(static_cast<int>(attributes_of(span.style, terminal_->colour)));
      ::addnstr(span.text.c_str(), static_cast<int>(span.text.size()));
    }
  }
  ::attrset(A_NORMAL);
  ::refresh();
}

bool Screen::read(std::chrono::milliseconds up_to, std::vector<Key>& keys) {
  keys.clear();
  pollfd input{STDIN_FILENO, POLLIN, 0};
  const int ready = ::poll(&input, 1, static_cast<int>(std::max<std::int64_t>(up_to.count(), 0)));
  for (;;) {
    wint_t value = 0;
    const int kind = ::get_wch(&value);
    if (kind == ERR) break;
    // A resize only wants a new frame.
    keys.push_back(kind == KEY_CODE_YES && value == KEY_RESIZE ? Key{} : key_of(kind, value));
  }
  const bool gone = ready > 0 && (input.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0;
  return !gone || !keys.empty();
}

}  // namespace gpuwatch::cli::top
