// SPDX-License-Identifier: Apache-2.0
// Writes the few SVG elements that a chart needs. Text is made fit for XML
// whatever bytes it holds, and cut to the width it may take. Knows nothing of
// what is drawn.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gpuwatch::report {

// Characters of XML 1.0 only, control bytes as \xNN, markup as entities; at
// most about `columns` characters wide.
void append_xml(std::string& out, std::string_view bytes, std::size_t columns = 1000);

class Svg {
 public:
  // Coordinates are printed with one decimal.
  void open_group(std::string_view css_class);
  void close_group() { out_ += "</g>\n"; }
  void rect(double x, double y, double width, double height, std::string_view css_class, std::string_view tip = {});
  void line(double x1, double y1, double x2, double y2, std::string_view css_class);
  // `data` is path data made by the caller of numbers alone.
  void path(std::string_view data, std::string_view css_class, std::string_view tip = {});
  // Cut, with an ellipsis, to about `columns` characters of ordinary width.
  void text(double x, double y, std::string_view text, std::string_view css_class, std::size_t columns = 1000);
  void raw(std::string_view markup) { out_ += markup; }

  std::string take() { return std::move(out_); }

 private:
  void attribute(std::string_view name, double value);
  void finish(std::string_view tag, std::string_view css_class, std::string_view tip);
  std::string out_;
};

// "12.3", "-4", without an exponent or a locale.
void append_coordinate(std::string& out, double value);

}  // namespace gpuwatch::report
