// SPDX-License-Identifier: Apache-2.0
#include "publish/fields.h"

#include <algorithm>

#include "publish/format.h"
#include "publish/json_object.h"
#include "publish/words.h"

namespace gpuwatch::publish {

namespace {

using model::DescribedField;
using model::DescribedPart;
using model::FieldValue;

// A line of a terminal does not hold what a log or a key may have: JSON does.
constexpr std::size_t kMostItems = 16;
constexpr std::size_t kMostHexDigits = 128;
constexpr std::size_t kWidestName = 40;

bool is_hex_bytes(const DescribedField& field) {
  return field.type == "raw" || field.type == "unknown";
}

void append_item(std::string& out, const DescribedField& field, const std::string& item) {
  if (field.type == "text") {
    append_quoted(out, item);
  } else if (is_hex_bytes(field) && item.size() > kMostHexDigits) {
    out.append(item, 0, kMostHexDigits);
    out += "... ";
    format::append_number(out, (item.size() - kMostHexDigits) / 2);
    out += " more bytes";
  } else {
    out += item;
  }
}

void append_value(std::string& out, const DescribedField& field, const FieldValue& value) {
  if (!field.array) {
    if (!value.items.empty()) append_item(out, field, value.items.front());
  } else {
    out += '[';
    const std::size_t shown = std::min(value.items.size(), kMostItems);
    for (std::size_t i = 0; i < shown; ++i) {
      if (i != 0) out += ' ';
      append_item(out, field, value.items[i]);
    }
    if (shown < value.items.size()) {
      out += " ... ";
      format::append_number(out, value.items.size() - shown);
      out += " more";
    } else if (value.items.size() < field.elements) {
      out += " ...";  // zeros to the end
    }
    out += ']';
  }
  if (!field.unit.empty() && field.numeric) {
    out += ' ';
    out += field.unit;
  }
  if (!value.meaning.empty()) {
    out += " (";
    out += value.meaning;
    out += ')';
  }
}

void append_part_head(std::string& out, const DescribedPart& part) {
  out += "    ";
  out += part.role;
  out += ' ';
  out += part.struct_name.empty() ? std::string_view("of a kind not known") : part.struct_name;
  out += ", ";
  format::append_number(out, part.bytes);
  out += " bytes";
  if (part.elements > 1) {
    out += ", ";
    format::append_number(out, part.elements);
    out += " of it";
  }
  if (part.table_bytes != 0 && part.table_bytes * std::uint64_t{part.elements} != part.bytes) {
    out += " where the table has ";
    format::append_number(out, part.table_bytes);
  }
  if (!part.layout_branch.empty()) {
    out += ", as branch ";
    out += part.layout_branch;
    out += " has it";
  }
  if (!part.known && !part.struct_name.empty()) out += ", fields not known";
  if (part.missing != 0) {
    out += ", ";
    format::append_number(out, part.missing);
    out += part.missing == 1 ? " field not copied" : " fields not copied";
  }
  out += '\n';
}

void append_json_value(std::string& out, const DescribedField& field, const FieldValue& value) {
  const auto append_one = [&](const std::string& item) {
    if (field.numeric)
      out += item;
    else
      json::append_string(out, item);
  };
  if (!field.array) {
    append_one(value.items.empty() ? std::string() : value.items.front());
    return;
  }
  out += '[';
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    if (i != 0) out += ',';
    append_one(value.items[i]);
  }
  out += ']';
}

void append_json_field(std::string& out, const DescribedField& field) {
  json::Object object(out, "}");
  object.text("name", field.name);
  object.text("type", field.type);
  object.text_if("unit", field.unit);
  append_json_value(object.key("value"), field, field.value());
  object.text_if("meaning", field.value().meaning);
  if (field.array) object.number("elements", field.elements);
  if (!field.changed()) return;
  append_json_value(object.key("before"), field, *field.before);
  object.text_if("before_meaning", field.before->meaning);
}

}  // namespace

void append_fields(std::string& out, const model::Description& description) {
  for (const DescribedPart& part : description.parts) {
    append_part_head(out, part);
    std::size_t width = 0;
    for (const DescribedField& field : part.fields) width = std::max(width, std::min(field.name.size(), kWidestName));
    for (const DescribedField& field : part.fields) {
      out += "      ";
      const std::size_t from = out.size();
      out += field.name;
      out.append(width > out.size() - from ? width - (out.size() - from) : 0, ' ');
      out += " = ";
      if (field.changed()) {
        append_value(out, field, *field.before);
        out += " -> ";
      }
      append_value(out, field, field.value());
      if (field.type == "unknown") {
        out += " at byte ";
        format::append_number(out, field.offset);
      }
      out += '\n';
    }
  }
}

void append_json_parts(std::string& out, const model::Description& description) {
  out += '[';
  bool first = true;
  for (const DescribedPart& part : description.parts) {
    if (!first) out += ',';
    first = false;
    json::Object object(out, "}");
    object.text("part", part.role);
    object.text_if("struct", part.struct_name);
    object.number("bytes", part.bytes);
    object.number_if("table_bytes", part.table_bytes);
    if (part.elements > 1) object.number("elements", part.elements);
    object.text_if("layout_branch", part.layout_branch);
    if (!part.known) object.flag("known", false);
    object.number_if("missing_fields", part.missing);
    std::string& fields = object.key("fields");
    fields += '[';
    for (std::size_t i = 0; i < part.fields.size(); ++i) {
      if (i != 0) fields += ',';
      append_json_field(fields, part.fields[i]);
    }
    fields += ']';
  }
  out += ']';
}

}  // namespace gpuwatch::publish
