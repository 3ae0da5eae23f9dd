// SPDX-License-Identifier: Apache-2.0
#include "report/svg.h"

#include <algorithm>
#include <cmath>

#include "base/escape.h"

namespace gpuwatch::report {

namespace {

std::string_view character_at(std::string_view text, std::size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  return text.substr(at, lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4);
}

// In columns of ordinary width; most scripts of three bytes and more are wide.
std::size_t width_of(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = character_at(text, at).size();
    width += bytes >= 3 ? 2 : 1;
    at += bytes;
  }
  return width;
}

}  // namespace

void append_xml(std::string& out, std::string_view bytes, std::size_t columns) {
  const std::string safe = base::escaped(bytes);
  const bool cut = width_of(safe) > columns;
  std::size_t used = 0;
  for (std::size_t at = 0; at < safe.size();) {
    const std::string_view one = character_at(safe, at);
    used += width_of(one);
    if (cut && used >= columns) {
      out += "\xe2\x80\xa6";
      return;
    }
    at += one.size();
    if (one == "&")
      out += "&amp;";
    else if (one == "<")
      out += "&lt;";
    else if (one == ">")
      out += "&gt;";
    else if (one == "\"")
      out += "&quot;";
    else if (one == "'")
      out += "&#39;";
    else if (one == "\xef\xbf\xbe" || one == "\xef\xbf\xbf")
      out += "\xef\xbf\xbd";  // not characters of XML
    else
      out += one;
  }
}

void append_coordinate(std::string& out, double value) {
  const auto tenths = static_cast<std::int64_t>(std::llround(std::clamp(value, -1e7, 1e7) * 10));
  if (tenths < 0) out += '-';
  const std::uint64_t magnitude = static_cast<std::uint64_t>(tenths < 0 ? -tenths : tenths);
  out += std::to_string(magnitude / 10);
  if (magnitude % 10 != 0) out += "." + std::to_string(magnitude % 10);
}

void Svg::attribute(std::string_view name, double value) {
  out_ += ' ';
  out_ += name;
  out_ += "=\"";
  append_coordinate(out_, value);
  out_ += '"';
}

void Svg::finish(std::string_view tag, std::string_view css_class, std::string_view tip) {
  out_ += " class=\"";
  out_ += css_class;
  if (tip.empty()) {
    out_ += "\"/>\n";
    return;
  }
  out_ += "\"><title>";
  append_xml(out_, tip);
  out_ += "</title></";
  out_ += tag;
  out_ += ">\n";
}

void Svg::open_group(std::string_view css_class) {
  out_ += "<g class=\"";
  out_ += css_class;
  out_ += "\">\n";
}

void Svg::rect(double x, double y, double width, double height, std::string_view css_class, std::string_view tip) {
  out_ += "<rect";
  attribute("x", x);
  attribute("y", y);
  attribute("width", width);
  attribute("height", height);
  finish("rect", css_class, tip);
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view css_class) {
  out_ += "<line";
  attribute("x1", x1);
  attribute("y1", y1);
  attribute("x2", x2);
  attribute("y2", y2);
  finish("line", css_class, {});
}

void Svg::path(std::string_view data, std::string_view css_class, std::string_view tip) {
  out_ += "<path d=\"";
  out_ += data;
  out_ += '"';
  finish("path", css_class, tip);
}

void Svg::text(double x, double y, std::string_view text, std::string_view css_class, std::size_t columns) {
  out_ += "<text";
  attribute("x", x);
  attribute("y", y);
  out_ += " class=\"";
  out_ += css_class;
  out_ += "\">";
  append_xml(out_, text, columns);
  out_ += "</text>\n";
}

}  // namespace gpuwatch::report
