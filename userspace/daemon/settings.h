// SPDX-License-Identifier: Apache-2.0
// Settings: the values of gpuwatch.yaml, by the table settings.def. All errors
// of all files are found, each with file, line, column, what and the remedy.
// It opens no sink and starts nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "daemon/rule.h"

namespace YAML {
class Node;
}

namespace gpuwatch::daemon {

inline constexpr const char* kConfigPath = "/etc/gpuwatch/gpuwatch.yaml";

enum class Key : std::uint8_t {
#define KEY(enumerator, path, type, fallback, least, most, meaning) enumerator,
#include "daemon/settings.def"
#undef KEY
  kCount_,
};
inline constexpr std::size_t kKeys = static_cast<std::size_t>(Key::kCount_);

enum class KeyType : std::uint8_t { kBool, kCount, kBytes, kDuration, kText, kTexts, kWord };

struct KeyInfo {
  std::string_view path;
  KeyType type;
  std::string_view fallback;
  std::uint64_t least;
  std::uint64_t most;
  std::string_view meaning;
};
const KeyInfo& key_info(Key key);

class Settings {
 public:
  Settings();  // the defaults, without rules

  // Reads FILE, the *.yaml of conf.d beside it in order of their names, and the
  // overrides "path.of.key=VALUE" of the command line. `errors` gets all that is
  // wrong; empty: the settings are good. A missing FILE that is the default one
  // is no error.
  static Settings read(const std::string& file, const std::vector<std::string>& overrides,
                       std::vector<std::string>& errors);

  bool flag(Key key) const { return value(key).number != 0; }
  std::uint64_t number(Key key) const { return value(key).number; }  // kCount, kBytes
  std::chrono::milliseconds duration(Key key) const {
    return std::chrono::milliseconds(static_cast<std::int64_t>(value(key).number));
  }
  const std::string& text(Key key) const { return value(key).text; }  // kText, kWord
  const std::vector<std::string>& texts(Key key) const { return value(key).texts; }

  const std::vector<Rule>& rules() const { return rules_; }
  const std::vector<std::string>& files() const { return files_; }  // that were read

 private:
  struct Value {
    std::uint64_t number = 0;
    std::string text;
    std::vector<std::string> texts;
    std::string set_at;  // "file:line:column"; empty: the default
  };
  class Reader;

  const Value& value(Key key) const { return values_[static_cast<std::size_t>(key)]; }

  std::vector<Value> values_;
  std::vector<Rule> rules_;
  std::vector<std::string> files_;
};

// The part of the manual that the tables make, as roff.
std::string keys_as_manual();

}  // namespace gpuwatch::daemon
