// SPDX-License-Identifier: Apache-2.0
#include "daemon/yaml.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/escape.h"

namespace gpuwatch::daemon {

namespace {

constexpr int kDepthMax = 12;
constexpr std::size_t kNodesMax = 50'000;

std::string quoted(const std::string& text) {
  return "\"" + base::escaped(text.size() > 80 ? text.substr(0, 80) + "..." : text) + "\"";
}

std::optional<std::string> scalar(const YAML::Node& node) {
  if (!node.IsScalar()) return std::nullopt;
  return node.Scalar();
}

// Number and unit of "64MiB".
std::optional<std::pair<std::uint64_t, std::string_view>> split(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  return std::pair(number, text.substr(static_cast<std::size_t>(end - text.data())));
}

std::optional<std::uint64_t> times(std::uint64_t number, std::uint64_t factor) {
  if (factor != 0 && number > ~std::uint64_t{0} / factor) return std::nullopt;
  return number * factor;
}

std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
    }
  }
  return row[b.size()];
}

struct Refusal {
  std::size_t line = 0, column = 0;
  std::string why;
};

// What could make a small file big, or a stack deep, is refused while it is
// still text: anchors, aliases and tags where a value begins, deep nesting.
std::optional<Refusal> refused(const std::string& text) {
  int depth = 0;
  char quote = 0, last = 0, before = '\n';  // `last`: no blank, on this line
  std::size_t line = 1, column = 0, dashes = 0;
  bool comment = false;
  for (const char c : text) {
    ++column;
    if (c == '\n') {
      ++line, column = 0, dashes = 0, last = 0, comment = false, before = c;
      continue;
    }
    const char earlier = std::exchange(before, c);
    if (comment || c == ' ') continue;
    if (quote != 0) {
      if (c == quote && (quote != '"' || earlier != '\\')) quote = 0;
      last = c;
      continue;
    }
    const bool begins = last == 0 || last == '[' || last == '{' || last == ',' ||
                        ((last == ':' || last == '-' || last == '?') && earlier == ' ');
    if (column > 256 && last == 0) return Refusal{line, column, "indented too deeply"};
    if (c == '#' && (earlier == ' ' || earlier == '\n')) {
      comment = true;
    } else if ((c == '"' || c == '\'') && begins) {
      quote = c;
    } else if ((c == '&' || c == '*' || c == '!') && begins) {
      return Refusal{
          line, column,
          "anchors, aliases and tags are not read; put a text that begins with '" + std::string(1, c) + "' in quotes"};
    } else if ((c == '[' || c == '{') && ++depth > kDepthMax) {
      return Refusal{line, column, "nested too deeply"};
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == '-' && begins && ++dashes > static_cast<std::size_t>(kDepthMax)) {
      return Refusal{line, column, "nested too deeply"};
    }
    last = c;
  }
  return std::nullopt;
}

bool within(const YAML::Node& node, int depth, std::size_t& nodes) {
  if (depth > kDepthMax || ++nodes > kNodesMax) return false;
  if (node.IsSequence())
    for (const auto& child : node)
      if (!within(child, depth + 1, nodes)) return false;
  if (node.IsMap())
    for (const auto& child : node)
      if (!within(child.first, depth + 1, nodes) || !within(child.second, depth + 1, nodes)) return false;
  return true;
}

}  // namespace

std::string Errors::place(const YAML::Mark& mark) const {
  if (mark.is_null()) return file_;
  return file_ + ":" + std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1);
}

void Errors::add(const YAML::Node& node, const std::string& what, const std::string& remedy) {
  out_.push_back(place(node.Mark()) + ": " + what + "; " + remedy);
}

std::optional<YAML::Node> load_yaml(const std::string& text, Errors& errors) {
  if (text.size() > kYamlMax) {
    errors.add("more than 1 MiB; split it over files in conf.d");
    return std::nullopt;
  }
  if (text.find('\0') != std::string::npos) {
    errors.add("a NUL byte; this is no YAML file");
    return std::nullopt;
  }
  if (const auto why = refused(text)) {
    errors.add_at(why->line, why->column, why->why);
    return std::nullopt;
  }
  // The library's way to tell an error is an exception; it ends here.
  try {
    YAML::Node node = YAML::Load(text);
    std::size_t nodes = 0;
    if (within(node, 0, nodes)) return node;
    errors.add("nested too deeply, or too many values");
  } catch (const YAML::Exception& error) {
    errors.add_at(static_cast<std::size_t>(error.mark.line + 1), static_cast<std::size_t>(error.mark.column + 1),
                  base::escaped(error.msg) + "; this is no well-formed YAML");
  } catch (const std::exception& error) {
    errors.add(base::escaped(error.what()));
  }
  return std::nullopt;
}

std::optional<bool> as_bool(const YAML::Node& node, const std::string& name, Errors& errors) {
  const auto text = scalar(node);
  if (text == "true") return true;
  if (text == "false") return false;
  errors.add(node, "\"" + name + "\" wants true or false", text ? "it has " + quoted(*text) : "it has no single value");
  return std::nullopt;
}

std::optional<std::uint64_t> as_count(const YAML::Node& node, const std::string& name, Errors& errors) {
  const auto text = scalar(node);
  if (text)
    if (const auto parts = split(*text); parts && parts->second.empty()) return parts->first;
  errors.add(node, "\"" + name + "\" wants a number", text ? "it has " + quoted(*text) : "it has no single value");
  return std::nullopt;
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  const auto parts = split(text);
  if (!parts) return std::nullopt;
  static constexpr std::pair<std::string_view, std::uint64_t> kUnits[] = {
      {"", 1}, {"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1ull << 30}, {"TiB", 1ull << 40}};
  for (const auto& [unit, factor] : kUnits)
    if (parts->second == unit) return times(parts->first, factor);
  return std::nullopt;
}

std::optional<std::uint64_t> parse_milliseconds(std::string_view text) {
  const auto parts = split(text);
  if (!parts) return std::nullopt;
  static constexpr std::pair<std::string_view, std::uint64_t> kUnits[] = {
      {"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}};
  for (const auto& [unit, factor] : kUnits)
    if (parts->second == unit) return times(parts->first, factor);
  return std::nullopt;
}

std::optional<std::uint64_t> as_bytes(const YAML::Node& node, const std::string& name, Errors& errors) {
  const auto text = scalar(node);
  if (text)
    if (const auto bytes = parse_bytes(*text)) return bytes;
  errors.add(node, "\"" + name + "\" wants a size as 4096, 64KiB, 16MiB or 1GiB",
             text ? "it has " + quoted(*text) : "it has no single value");
  return std::nullopt;
}

std::optional<std::uint64_t> as_milliseconds(const YAML::Node& node, const std::string& name, Errors& errors) {
  const auto text = scalar(node);
  if (text)
    if (const auto time = parse_milliseconds(*text)) return time;
  errors.add(node, "\"" + name + "\" wants a time as 500ms, 10s, 5m or 1h",
             text ? "it has " + quoted(*text) : "it has no single value");
  return std::nullopt;
}

std::optional<std::string> as_text(const YAML::Node& node, const std::string& name, Errors& errors) {
  if (node.IsNull()) return std::string();
  if (auto text = scalar(node)) return text;
  errors.add(node, "\"" + name + "\" wants one text", "it has a list or keys of its own");
  return std::nullopt;
}

std::optional<std::vector<std::string>> as_texts(const YAML::Node& node, const std::string& name, Errors& errors) {
  if (auto text = scalar(node)) return std::vector<std::string>{*text};
  if (!node.IsSequence()) {
    errors.add(node, "\"" + name + "\" wants a text or a list of texts", "write it as [a, b]");
    return std::nullopt;
  }
  std::vector<std::string> texts;
  for (const auto& child : node) {
    const auto text = scalar(child);
    if (!text) {
      errors.add(child, "\"" + name + "\" wants texts in its list", "this one has values of its own");
      return std::nullopt;
    }
    texts.push_back(*text);
  }
  return texts;
}

std::string closest(const std::string& word, const std::vector<std::string>& known) {
  const std::string* best = nullptr;
  std::size_t least = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const std::size_t d = distance(std::string_view(word).substr(0, 64), candidate);
    if (d < least) least = d, best = &candidate;
  }
  if (best != nullptr) return "did you mean \"" + *best + "\"?";
  std::string list = "there are";
  for (std::size_t i = 0; i < known.size(); ++i) list += (i == 0 ? " " : ", ") + known[i];
  return list;
}

}  // namespace gpuwatch::daemon
