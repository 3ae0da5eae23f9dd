// SPDX-License-Identifier: Apache-2.0
// Parser of the filter language: recursive descent over the text, types
// checked while parsing, so that evaluation cannot fail.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

#include "base/escape.h"
#include "cli/filter_fields.h"
#include "cli/kinds.h"

namespace gpuwatch::cli {

using base::Code;
using base::Error;
using base::Result;

namespace {

constexpr std::size_t kMaxText = 4096;
constexpr int kMaxDepth = 64;

bool word_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '/' || c == ':' || c == '@' ||
         c == '-' || c == '+';
}

// Decimal or 0x hexadecimal, with a sign, and a unit of time where allowed.
std::optional<std::int64_t> parse_number(std::string_view text, bool time) {
  std::int64_t scale = 1;
  if (time) {
    constexpr std::pair<std::string_view, std::int64_t> kUnits[] = {
        {"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}};
    for (const auto& [unit, factor] : kUnits) {
      if (!text.ends_with(unit)) continue;
      text.remove_suffix(unit.size());
      scale = factor;
      break;
    }
  }
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const int base = text.starts_with("0x") ? 16 : 10;
  if (base == 16) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  std::int64_t result = 0;
  // 64-bit ids and handles are compared by their bits; with a sign or a unit
  // the value must fit.
  if (!negative && scale == 1) return static_cast<std::int64_t>(value);
  if (value > static_cast<std::uint64_t>(INT64_MAX) ||
      __builtin_mul_overflow(static_cast<std::int64_t>(value), negative ? -scale : scale, &result))
    return std::nullopt;
  return result;
}

std::string field_list() {
  std::string out;
  for (const FieldAccess& field : field_table()) {
    if (!out.empty()) out += ' ';
    out += field.info.name;
  }
  return out;
}

}  // namespace

class FilterParser {
 public:
  explicit FilterParser(std::string_view text) : text_(text) {}

  Result<Filter> run() {
    if (text_.size() > kMaxText)
      return fail(kMaxText, "expression longer than " + std::to_string(kMaxText) + " characters");
    auto root = parse_or(0);
    if (!root) return std::move(root.error());
    skip_space();
    if (at_ < text_.size()) return fail(at_, "expected && or || or the end, found " + here());
    filter_.root_ = *root;
    return std::move(filter_);
  }

 private:
  using Op = Filter::Op;
  using Node = Filter::Node;

  static Error fail(std::size_t at, const std::string& what) {
    return Error(Code::kBadInput, "column " + std::to_string(at + 1) + ": " + what);
  }

  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }

  bool take(std::string_view token) {
    skip_space();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }

  std::string here() const { return at_ < text_.size() ? "'" + base::escaped(text_.substr(at_, 12)) + "'" : "the end"; }

  std::uint16_t add(Node node) {
    filter_.nodes_.push_back(std::move(node));
    return static_cast<std::uint16_t>(filter_.nodes_.size() - 1);
  }

  Result<std::uint16_t> parse_or(int depth) { return parse_chain("||", Op::kOr, depth); }

  Result<std::uint16_t> parse_chain(std::string_view token, Op op, int depth) {
    const auto operand = [&] { return op == Op::kOr ? parse_chain("&&", Op::kAnd, depth) : parse_unary(depth); };
    auto left = operand();
    while (left.ok() && take(token)) {
      auto right = operand();
      if (!right) return right;
      Node node;
      node.op = op;
      node.left = *left;
      node.right = *right;
      left = add(std::move(node));
    }
    return left;
  }

  Result<std::uint16_t> parse_unary(int depth) {
    skip_space();
    const std::size_t start = at_;
    if (depth > kMaxDepth) return fail(start, "nested deeper than " + std::to_string(kMaxDepth) + " levels");
    if (take("!")) {
      auto inner = parse_unary(depth + 1);
      if (!inner) return inner;
      Node node;
      node.op = Op::kNot;
      node.left = *inner;
      return add(std::move(node));
    }
    if (take("(")) {
      auto inner = parse_or(depth + 1);
      if (!inner) return inner;
      if (!take(")"))
        return fail(at_, "expected ) for the ( at column " + std::to_string(start + 1) + ", found " + here());
      return inner;
    }
    return parse_comparison();
  }

  std::optional<Op> take_operator() {
    // Longer ones first: "<=" starts like "<".
    constexpr std::pair<std::string_view, Op> kOps[] = {
        {"==", Op::kEqual},       {"!=", Op::kNotEqual}, {"<=", Op::kLessEqual}, {">=", Op::kGreaterEqual},
        {"!~", Op::kNotContains}, {"<", Op::kLess},      {">", Op::kGreater},    {"~", Op::kContains}};
    for (const auto& [token, op] : kOps)
      if (take(token)) return op;
    return std::nullopt;
  }

  Result<std::string> parse_value() {
    skip_space();
    const std::size_t start = at_;
    if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'')) {
      const std::size_t end = text_.find(text_[at_], at_ + 1);
      if (end == std::string_view::npos) return fail(start, "quote is not closed");
      at_ = end + 1;
      return std::string(text_.substr(start + 1, end - start - 1));
    }
    while (at_ < text_.size() && word_char(text_[at_])) ++at_;
    if (at_ == start) return fail(start, "expected a value, found " + here());
    return std::string(text_.substr(start, at_ - start));
  }

  Result<std::uint16_t> parse_comparison() {
    skip_space();
    const std::size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_'))
      ++at_;
    const std::string_view name = text_.substr(start, at_ - start);
    if (name.empty()) return fail(start, "expected a field, found " + here());
    const auto fields = field_table();
    const auto field =
        std::find_if(fields.begin(), fields.end(), [&](const FieldAccess& f) { return f.info.name == name; });
    if (field == fields.end())
      return fail(start, "unknown field '" + std::string(name) + "'; fields are: " + field_list());

    Node node;
    node.field = static_cast<std::uint8_t>(field - fields.begin());
    skip_space();
    const std::size_t op_at = at_;
    const auto op = take_operator();
    if (field->info.kind == 'b') {
      if (op)
        return fail(op_at,
                    "'" + std::string(name) + "' is yes or no and stands alone; its opposite is !" + std::string(name));
      return add(std::move(node));
    }
    if (!op) return fail(op_at, "expected an operator after '" + std::string(name) + "', found " + here());
    node.op = *op;
    skip_space();
    const std::size_t value_at = at_;
    auto value = parse_value();
    if (!value) return std::move(value.error());
    const bool text_op = *op == Op::kContains || *op == Op::kNotContains;
    if (field->info.kind == 'n') {
      if (text_op) return fail(op_at, "'" + std::string(name) + "' is a number; compare it with == != < <= > >=");
      const auto number = parse_number(*value, name == "duration");
      if (!number) return fail(value_at, "'" + base::escaped(*value) + "' is not a number");
      node.number = *number;
      return add(std::move(node));
    }
    if (!text_op && *op != Op::kEqual && *op != Op::kNotEqual)
      return fail(op_at, "'" + std::string(name) + "' is text; compare it with == != ~ !~");
    if (!text_op && name == "node" && !node_kind_from(*value))
      return fail(value_at, "unknown kind of node '" + base::escaped(*value) + "'; kinds are: " + node_kind_list());
    if (!text_op && name == "class" && !class_from(*value))
      return fail(value_at, "unknown class '" + base::escaped(*value) + "'; classes are: " + class_list());
    node.text = *value;
    if (text_op)
      std::transform(node.text.begin(), node.text.end(), node.text.begin(),
                     [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
    return add(std::move(node));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  Filter filter_;
};

Result<Filter> Filter::compile(std::string_view text) {
  return FilterParser(text).run();
}

}  // namespace gpuwatch::cli
