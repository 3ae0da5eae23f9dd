// SPDX-License-Identifier: Apache-2.0
// Keys first, then lines. The selection is a row's key, not its place, so that
// it stays with its row when rows come, go and change places.
#include "cli/top/ui.h"

#include <algorithm>

#include "cli/top/cells.h"

namespace gpuwatch::cli::top {

using report::HoldingsSnapshot;

namespace {

constexpr std::size_t kFilterMax = 128;

bool is_char(const Key& key, std::string_view any_of) {
  return key.code == Key::kChar && key.value < 128 && any_of.find(static_cast<char>(key.value)) != std::string::npos;
}

bool is_function(const Key& key, std::uint32_t number) {
  return key.code == Key::kFunction && key.value == number;
}

void append_utf8(std::string& out, std::uint32_t c) {
  const auto byte = [&](std::uint32_t value) { out += static_cast<char>(value); };
  if (c < 0x80) {
    byte(c);
  } else if (c < 0x800) {
    byte(0xc0 | c >> 6);
    byte(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    byte(0xe0 | c >> 12);
    byte(0x80 | (c >> 6 & 0x3f));
    byte(0x80 | (c & 0x3f));
  } else if (c < 0x110000) {
    byte(0xf0 | c >> 18);
    byte(0x80 | (c >> 12 & 0x3f));
    byte(0x80 | (c >> 6 & 0x3f));
    byte(0x80 | (c & 0x3f));
  }
}

Style style_of(Tone tone) {
  switch (tone) {
    case Tone::kGood:
      return Style::kGood;
    case Tone::kBad:
      return Style::kBad;
    case Tone::kGone:
      return Style::kGone;
    default:
      return Style::kPlain;
  }
}

}  // namespace

std::size_t Ui::selected_in(const Listing& listing) const {
  for (std::size_t i = 0; i < listing.rows.size(); ++i)
    if (listing.rows[i].key == selected_) return i;
  return listing.rows.empty() ? 0 : std::min(index_, listing.rows.size() - 1);
}

// Keeps the selection on a row that is there, and on the screen.
void Ui::settle(const Listing& listing) {
  index_ = selected_in(listing);
  selected_ = listing.rows.empty() ? std::string() : listing.rows[index_].key;
  first_ = std::min(first_, index_);
  if (index_ >= first_ + page_) first_ = index_ + 1 - page_;
  const std::size_t most = listing.rows.size() > page_ ? listing.rows.size() - page_ : 0;
  first_ = std::min(first_, most);
}

void Ui::move(const Listing& listing, std::int64_t by) {
  if (listing.rows.empty()) return;
  const auto last = static_cast<std::int64_t>(listing.rows.size()) - 1;
  const auto to = std::clamp(static_cast<std::int64_t>(selected_in(listing)) + by, std::int64_t{0}, last);
  index_ = static_cast<std::size_t>(to);
  selected_ = listing.rows[index_].key;
}

void Ui::fold(const Listing& listing, int how) {
  if (listing.rows.empty()) return;
  const std::size_t at = selected_in(listing);
  const Row* row = &listing.rows[at];
  if (!row->foldable) {
    if (how >= 0) return;
    // Folding from inside folds what is above.
    std::size_t up = at;
    while (up > 0 && !listing.rows[up].foldable) --up;
    row = &listing.rows[up];
    if (!row->foldable) return;
    selected_ = row->key;
  }
  auto& folded = options_.list.folded;
  const bool now = folded.contains(row->key);
  if (how < 0 || (how == 0 && !now))
    folded.insert(row->key);
  else
    folded.erase(row->key);
}

bool Ui::press(const Key& key, const HoldingsSnapshot& snapshot) {
  if (is_function(key, 10)) return false;
  switch (mode_) {
    case Mode::kRows:
      return press_rows(key, list(snapshot, options_.list));
    case Mode::kFilter:
      press_filter(key);
      return true;
    case Mode::kSort:
      press_choice(key, kColumns);
      if (key.code == Key::kEnter) {
        options_.list.sort = static_cast<Column>(choice_);
        mode_ = Mode::kRows;
      }
      return true;
    case Mode::kUsers: {
      const std::vector<std::uint32_t> users = users_of(snapshot);
      press_choice(key, users.size() + 1);
      if (key.code == Key::kEnter) {
        if (choice_ == 0)
          options_.list.user.reset();
        else if (choice_ <= users.size())
          options_.list.user = users[choice_ - 1];
        mode_ = Mode::kRows;
      }
      return true;
    }
    default:
      press_choice(key, 100);
      if (key.code == Key::kEnter || is_function(key, 1) || is_char(key, "h?")) mode_ = Mode::kRows;
      return true;
  }
}

void Ui::press_choice(const Key& key, std::size_t count) {
  if (key.code == Key::kEscape || is_char(key, "q")) {
    mode_ = Mode::kRows;
    return;
  }
  const std::size_t page = std::max<std::size_t>(page_, 1);
  if (key.code == Key::kUp || is_char(key, "k")) choice_ -= choice_ > 0;
  if (key.code == Key::kDown || is_char(key, "j")) ++choice_;
  if (key.code == Key::kPageUp) choice_ -= std::min(choice_, page);
  if (key.code == Key::kPageDown) choice_ += page;
  if (key.code == Key::kHome) choice_ = 0;
  if (key.code == Key::kEnd) choice_ = count;
  choice_ = std::min(choice_, count == 0 ? 0 : count - 1);
}

void Ui::press_filter(const Key& key) {
  std::string& filter = options_.list.filter;
  if (key.code == Key::kEscape) {
    filter = before_;
    mode_ = Mode::kRows;
  } else if (key.code == Key::kEnter || is_function(key, 4)) {
    mode_ = Mode::kRows;
  } else if (key.code == Key::kBackspace) {
    while (!filter.empty() && (static_cast<unsigned char>(filter.back()) & 0xc0) == 0x80) filter.pop_back();
    if (!filter.empty()) filter.pop_back();
  } else if (key.code == Key::kChar && key.value >= 0x20 && key.value != 0x7f && filter.size() < kFilterMax) {
    append_utf8(filter, key.value);
  }
}

bool Ui::press_rows(const Key& key, const Listing& listing) {
  const auto page = static_cast<std::int64_t>(std::max<std::size_t>(page_, 2) - 1);
  const auto open = [&](Mode mode, std::size_t choice = 0) {
    mode_ = mode;
    choice_ = choice;
  };
  const auto sort_by = [&](Column column) { options_.list.sort = column; };
  switch (key.code) {
    case Key::kUp:
      move(listing, -1);
      return true;
    case Key::kDown:
      move(listing, 1);
      return true;
    case Key::kPageUp:
      move(listing, -page);
      return true;
    case Key::kPageDown:
      move(listing, page);
      return true;
    case Key::kHome:
      move(listing, -static_cast<std::int64_t>(listing.rows.size()));
      return true;
    case Key::kEnd:
      move(listing, static_cast<std::int64_t>(listing.rows.size()));
      return true;
    case Key::kLeft:
      fold(listing, -1);
      return true;
    case Key::kRight:
      fold(listing, 1);
      return true;
    case Key::kEnter:
      if (!listing.rows.empty() && listing.rows[selected_in(listing)].process != nullptr)
        open(Mode::kDetails);
      else
        fold(listing, 0);
      return true;
    case Key::kEscape:
      options_.list.filter.clear();
      return true;
    case Key::kFunction:
      if (key.value == 1) open(Mode::kHelp);
      if (key.value == 5) options_.list.tree = !options_.list.tree;
      if (key.value == 6) open(Mode::kSort, static_cast<std::size_t>(options_.list.sort));
      if (key.value == 3 || key.value == 4) {
        before_ = options_.list.filter;
        open(Mode::kFilter);
      }
      return true;
    case Key::kChar:
      break;
    default:
      return true;
  }
  switch (key.value) {
    case 'q':
      return false;
    case 'h':
    case '?':
      open(Mode::kHelp);
      break;
    case 'k':
      move(listing, -1);
      break;
    case 'j':
      move(listing, 1);
      break;
    case ' ':
      fold(listing, 0);
      break;
    case '+':
      fold(listing, 1);
      break;
    case '-':
      fold(listing, -1);
      break;
    case '*':
      options_.list.folded.clear();
      break;
    case 't':
      options_.list.tree = !options_.list.tree;
      break;
    case 's':
      open(Mode::kSort, static_cast<std::size_t>(options_.list.sort));
      break;
    case 'I':
      options_.list.turned = !options_.list.turned;
      break;
    case 'M':
      sort_by(Column::kMemory);
      break;
    case 'P':
      sort_by(Column::kCalls);
      break;
    case 'T':
      sort_by(Column::kSince);
      break;
    case 'V':
      sort_by(Column::kCode);
      break;
    case 'G':
      sort_by(Column::kGpu);
      break;
    case '/':
    case '\\':
      before_ = options_.list.filter;
      open(Mode::kFilter);
      break;
    case 'u':
      open(Mode::kUsers);
      break;
    case 'p':
      options_.list.path = !options_.list.path;
      break;
    case 'H':
      options_.list.hide_open = !options_.list.hide_open;
      break;
    default:
      break;
  }
  return true;
}

Frame Ui::draw(std::size_t width, std::size_t height, const HoldingsSnapshot& snapshot) {
  const bool ascii = options_.list.ascii;
  const Listing listing = list(snapshot, options_.list);
  width = std::max<std::size_t>(width, 1);
  height = std::max<std::size_t>(height, 1);
  // Small screens give up the bar first, then the line of the sort, then titles.
  const bool bar = height >= 6;
  const bool second = height >= 5;
  const bool titles = height >= 3;
  const std::size_t above = 1U + (second ? 1 : 0) + (titles ? 1 : 0);
  page_ = height > above + (bar ? 1 : 0) ? height - above - (bar ? 1 : 0) : 1;
  settle(listing);

  Frame frame;
  frame.push_back({{fit(headline(snapshot, listing, options_.utc_offset_s), width, ascii), Style::kBold}});
  if (second) {
    const ListOptions& how = options_.list;
    std::string text = mode_ == Mode::kFilter ? "filter: " + safe(how.filter, ascii) + "_" : loss_text(snapshot);
    if (mode_ != Mode::kFilter) {
      text += "; by " + std::string(column_info(how.sort).flag) + (how.turned ? ", turned" : "");
      if (!how.filter.empty()) text += "; filter: " + safe(how.filter, ascii);
      if (how.user) text += "; user: " + safe(user_text(*how.user, how), ascii);
      if (listing.hidden != 0) text += "; " + std::to_string(listing.hidden) + " hidden";
    }
    const bool bad = !options_.trouble.empty() || snapshot.lost_total() != 0;
    if (mode_ != Mode::kFilter && !options_.trouble.empty()) text = safe(options_.trouble, ascii);
    frame.push_back({{fit(text, width, ascii), bad ? Style::kBad : Style::kPlain}});
  }
  frame.resize(above);
  if (titles) {
    std::string line = fit(name_title(options_.list), width, ascii);
    const std::vector<Column> columns = columns_for(width, name_width(options_.list), listing);
    std::size_t right = 0;
    for (const Column column : columns) right += column_info(column).width + 1;
    if (right != 0) {
      line = fit(name_title(options_.list), width - right, ascii);
      for (const Column column : columns) {
        const ColumnInfo& info = column_info(column);
        line += " " + fit(info.title, info.width, ascii, info.right ? Side::kRight : Side::kLeft);
      }
    }
    frame[above - 1] = {{line, Style::kBar}};
  }
  frame.resize(height);
  for (Line& line : frame)
    if (line.empty()) line = {{std::string(width, ' '), Style::kPlain}};
  draw_rows(frame, listing, snapshot);
  const std::vector<std::string> lines = popup(snapshot, listing);
  if (!lines.empty()) draw_popup(frame, lines);
  if (bar) {
    const char* keys = mode_ == Mode::kFilter ? "Enter done  Esc as before"
                       : mode_ == Mode::kRows ? "F1 Help  F4 Filter  F5 Tree  F6 Sort  u User  p Path  F10 Quit"
                                              : "Up Down  Enter choose  Esc back  F10 Quit";
    frame[height - 1] = {{fit(keys, width, ascii), Style::kBar}};
  }
  return frame;
}

void Ui::draw_rows(Frame& frame, const Listing& listing, const HoldingsSnapshot& snapshot) const {
  const bool ascii = options_.list.ascii;
  std::size_t width = 0;
  for (const Span& span : frame.front()) width += columns_of(span.text);
  const std::size_t height = frame.size();
  const std::size_t above = 1U + (height >= 5 ? 1 : 0) + (height >= 3 ? 1 : 0);
  const std::vector<Column> columns = columns_for(width, name_width(options_.list), listing);
  std::size_t right = 0;
  for (const Column column : columns) right += column_info(column).width + 1;
  if (listing.rows.empty() && height > above) {
    const std::string why =
        snapshot.gpus.empty() ? "nobody holds a GPU" : "nothing to show: filter, user or H hide all";
    frame[above] = {{fit(why, width, ascii), Style::kPlain}};
  }
  for (std::size_t i = 0; i < page_ && above + i < height && first_ + i < listing.rows.size(); ++i) {
    const Row& row = listing.rows[first_ + i];
    const bool selected = first_ + i == index_;
    const auto style = [&](Style own) { return selected ? Style::kSelected : own; };
    const Style plain = row.kind == Row::Kind::kGpu ? Style::kBold : style_of(row.tone);
    const std::size_t room = width - right;
    const std::string tree = row.prefix + (row.folded ? "+" : "");
    Line line;
    if (columns_of(tree) < room) {
      line.push_back({tree, style(Style::kTree)});
      line.push_back({fit(row.name, room - columns_of(tree), ascii), style(plain)});
    } else {
      line.push_back({fit(row.name, room, ascii), style(plain)});
    }
    for (const Column column : columns) {
      const ColumnInfo& info = column_info(column);
      const std::string text =
          fit(row.cells[static_cast<std::size_t>(column)], info.width, ascii, info.right ? Side::kRight : Side::kLeft);
      const bool finding = column == Column::kFindings && !row.cells[static_cast<std::size_t>(column)].empty();
      const Style own = column == Column::kCode ? style_of(row.code) : finding ? Style::kBad : plain;
      line.push_back({" " + text, style(own)});
    }
    frame[above + i] = std::move(line);
  }
}

std::vector<std::string> Ui::popup(const HoldingsSnapshot& snapshot, const Listing& listing) const {
  const bool ascii = options_.list.ascii;
  std::vector<std::string> lines;
  const auto mark = [&](std::size_t i, const std::string& text) {
    lines.push_back((i == choice_ ? "> " : "  ") + text);
  };
  switch (mode_) {
    case Mode::kHelp:
      return help_lines();
    case Mode::kDetails:
      if (listing.rows.empty() || listing.rows[index_].process == nullptr) return {"the process is gone"};
      return details(listing.rows[index_], snapshot, options_.list, options_.utc_offset_s);
    case Mode::kSort:
      for (std::size_t i = 0; i < kColumns; ++i) mark(i, column_info(static_cast<Column>(i)).flag);
      return lines;
    case Mode::kUsers: {
      mark(0, "all users");
      std::size_t i = 1;
      for (const std::uint32_t uid : users_of(snapshot)) mark(i++, safe(user_text(uid, options_.list), ascii));
      return lines;
    }
    default:
      return {};
  }
}

// Over the rows, from the third line on; a menu keeps its choice visible, a text
// begins where the keys moved it.
void Ui::draw_popup(Frame& frame, const std::vector<std::string>& lines) const {
  const bool ascii = options_.list.ascii;
  std::size_t width = 0;
  for (const Span& span : frame.front()) width += columns_of(span.text);
  const std::size_t height = frame.size();
  const std::size_t begin = height >= 3 ? 2 : 0;
  const std::size_t end = height >= 6 ? height - 1 : height;
  const std::size_t rows = end - begin;
  const bool menu = mode_ == Mode::kSort || mode_ == Mode::kUsers;
  const std::size_t most = lines.size() > rows ? lines.size() - rows : 0;
  const std::size_t from = menu ? (choice_ >= rows ? choice_ + 1 - rows : 0) : std::min(choice_, most);
  for (std::size_t i = 0; i < rows; ++i) {
    const std::size_t at = from + i;
    const bool chosen = menu && at == choice_;
    frame[begin + i] = {
        {fit(at < lines.size() ? lines[at] : "", width, ascii), chosen ? Style::kSelected : Style::kPlain}};
  }
}

}  // namespace gpuwatch::cli::top
