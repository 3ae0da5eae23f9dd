// SPDX-License-Identifier: Apache-2.0
#include "cli/top/table.h"

#include <algorithm>

#include "cli/top/cells.h"
#include "cli/top/ui.h"
#include "publish/colour.h"

namespace gpuwatch::cli::top {

namespace {

constexpr std::size_t kNameMost = 100;

std::string without_end_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

void append_table(std::string& out, const report::HoldingsSnapshot& snapshot, const ListOptions& options,
                  std::int32_t utc_offset_s, bool colour) {
  const Listing listing = list(snapshot, options);
  out += headline(snapshot, listing, utc_offset_s) + "\n" + loss_text(snapshot) + "\n";
  if (listing.rows.empty()) {
    out += snapshot.gpus.empty() ? "nobody holds a GPU\n" : "nothing to show: filter or user hide all\n";
    return;
  }
  std::size_t width = 25;
  for (const Row& row : listing.rows) width = std::max(width, columns_of(row.prefix) + columns_of(row.name));
  width = std::min(width, kNameMost);
  const std::vector<Column> columns = columns_for(1000, width, listing);
  std::string titles = fit(name_title(options), width, options.ascii);
  for (const Column column : columns) {
    const ColumnInfo& info = column_info(column);
    titles += " " + fit(info.title, info.width, options.ascii, info.right ? Side::kRight : Side::kLeft);
  }
  out += without_end_blanks(std::move(titles)) + "\n";
  for (const Row& row : listing.rows) {
    const std::string line = fit(row.prefix + row.name, width, options.ascii);
    out += line;
    std::string rest;
    for (const Column column : columns) {
      const ColumnInfo& info = column_info(column);
      const std::string cell = " " + fit(row.cells[static_cast<std::size_t>(column)], info.width, options.ascii,
                                         info.right ? Side::kRight : Side::kLeft);
      if (column == Column::kCode && colour && row.code != Tone::kPlain) {
        const auto code = row.code == Tone::kGood  ? publish::colour::kGreen
                          : row.code == Tone::kBad ? publish::colour::kRed
                                                   : publish::colour::kDim;
        const publish::colour::Scope scope(rest, true, code);
        rest += cell;
      } else {
        rest += cell;
      }
    }
    out += without_end_blanks(std::move(rest)) + "\n";
  }
}

}  // namespace gpuwatch::cli::top
