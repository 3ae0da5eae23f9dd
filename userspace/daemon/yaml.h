// SPDX-License-Identifier: Apache-2.0
// What settings and rules need of a YAML file: values of given types, and
// errors that name their place. Files are bounded; anchors and tags are refused,
// they could make a small file big.
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gpuwatch::daemon {

inline constexpr std::size_t kYamlMax = 1 << 20;

class Errors {
 public:
  explicit Errors(std::vector<std::string>& out) : out_(out) {}
  // Goes on with another file.
  void in(std::string file) { file_ = std::move(file); }
  std::string place(const YAML::Mark& mark) const;
  // "file:line:column: what; remedy"
  void add(const YAML::Node& node, const std::string& what, const std::string& remedy);
  void add_at(std::size_t line, std::size_t column, const std::string& what) {
    out_.push_back(file_ + ":" + std::to_string(line) + ":" + std::to_string(column) + ": " + what);
  }
  void add(const std::string& what) { out_.push_back(file_ + ": " + what); }
  const std::string& file() const { return file_; }
  std::size_t count() const { return out_.size(); }

 private:
  std::vector<std::string>& out_;
  std::string file_;
};

// Nothing, and an error told, where the text is no YAML or over the bounds.
std::optional<YAML::Node> load_yaml(const std::string& text, Errors& errors);

// Each tells what is wrong and gives nothing. `name` is the key, for the error.
std::optional<bool> as_bool(const YAML::Node& node, const std::string& name, Errors& errors);
std::optional<std::uint64_t> as_count(const YAML::Node& node, const std::string& name, Errors& errors);
std::optional<std::uint64_t> as_bytes(const YAML::Node& node, const std::string& name, Errors& errors);
std::optional<std::uint64_t> as_milliseconds(const YAML::Node& node, const std::string& name, Errors& errors);
std::optional<std::string> as_text(const YAML::Node& node, const std::string& name, Errors& errors);
// A list, or one text as a list of one.
std::optional<std::vector<std::string>> as_texts(const YAML::Node& node, const std::string& name, Errors& errors);

// "a word, close to one of `known`": "; did you mean X?", or the list of all.
std::string closest(const std::string& word, const std::vector<std::string>& known);

std::optional<std::uint64_t> parse_bytes(std::string_view text);
std::optional<std::uint64_t> parse_milliseconds(std::string_view text);

}  // namespace gpuwatch::daemon
