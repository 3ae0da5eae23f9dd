// SPDX-License-Identifier: Apache-2.0
#include "daemon/settings.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/escape.h"
#include "base/io.h"
#include "daemon/yaml.h"

namespace gpuwatch::daemon {

namespace {

constexpr KeyInfo kInfos[] = {
#define KEY(enumerator, path, type, fallback, least, most, meaning) \
  {path, KeyType::type, fallback, least, most, meaning},
#include "daemon/settings.def"
#undef KEY
};

std::vector<std::string> words_of(std::string_view meaning) {
  std::vector<std::string> words;
  const std::size_t begin = meaning.find('['), end = meaning.find(']');
  for (std::size_t at = begin + 1; at < end;) {
    const std::size_t next = std::min(meaning.find(' ', at), end);
    words.emplace_back(meaning.substr(at, next - at));
    at = next + 1;
  }
  return words;
}

std::string bound_text(KeyType type, std::uint64_t value) {
  if (type == KeyType::kDuration)
    return value % 1000 == 0 ? std::to_string(value / 1000) + "s" : std::to_string(value) + "ms";
  return std::to_string(value);
}

}  // namespace

const KeyInfo& key_info(Key key) {
  return kInfos[static_cast<std::size_t>(key)];
}

class Settings::Reader {
 public:
  Reader(Settings& settings, Errors& errors) : settings_(settings), errors_(errors) {}

  void file(const std::string& name, bool may_miss) {
    errors_.in(name);
    const base::Status plain = base::must_be_plain(name);
    auto text = plain.ok() ? base::read_text_file(name, kYamlMax + 1) : base::Result<std::string>(plain.error());
    if (!text) {
      if (may_miss && text.error().code() == base::Code::kNotFound) return;
      errors_.add(text.error().message().find(name) == std::string::npos ? text.error().message()
                                                                         : "cannot be read: " + text.error().message());
      return;
    }
    settings_.files_.push_back(name);
    this->text(*text);
  }

  void text(const std::string& text) {
    const auto root = load_yaml(text, errors_);
    if (!root || root->IsNull()) return;
    if (!root->IsMap()) return errors_.add(*root, "the file has no keys", "begin with \"key: value\"");
    map(*root, "");
  }

  void override_with(const std::string& text) {
    errors_.in("-o " + base::escaped(text));
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) return errors_.add("wants KEY=VALUE");
    const std::string path = text.substr(0, equals);
    const KeyInfo* info = find(path);
    if (info == nullptr) return errors_.add("unknown key; " + closest(path, all_paths()));
    // A list has commas, anything else is a text as it stands.
    YAML::Node node;
    const std::string value = text.substr(equals + 1);
    if (info->type == KeyType::kTexts) {
      node = YAML::Node(YAML::NodeType::Sequence);
      for (std::size_t at = 0; at <= value.size() && !value.empty();) {
        const std::size_t end = std::min(value.find(',', at), value.size());
        node.push_back(value.substr(at, end - at));
        at = end + 1;
      }
    } else {
      node = YAML::Node(value);
    }
    take(*info, node);
  }

 private:
  static const KeyInfo* find(const std::string& path) {
    for (const KeyInfo& info : kInfos)
      if (info.path == path) return &info;
    return nullptr;
  }
  static std::vector<std::string> all_paths() {
    std::vector<std::string> paths{"rules"};
    // Sections too, so that "snks" is known to be near "sinks".
    std::set<std::string> sections;
    for (const KeyInfo& info : kInfos) {
      paths.emplace_back(info.path);
      for (std::size_t at = info.path.find('.'); at != std::string_view::npos; at = info.path.find('.', at + 1))
        sections.emplace(info.path.substr(0, at));
    }
    paths.insert(paths.end(), sections.begin(), sections.end());
    return paths;
  }
  static bool is_prefix(const std::string& path) {
    return std::any_of(std::begin(kInfos), std::end(kInfos),
                       [&](const KeyInfo& info) { return info.path.starts_with(path + "."); });
  }

  void map(const YAML::Node& node, const std::string& prefix) {
    std::map<std::string, bool> seen;
    for (const auto& child : node) {
      if (!child.first.IsScalar()) {
        errors_.add(child.first, "a key that is no text", "write \"key: value\"");
        continue;
      }
      const std::string name = child.first.Scalar();
      const std::string path = prefix.empty() ? name : prefix + "." + name;
      if (!seen.emplace(name, true).second) {
        errors_.add(child.first, "\"" + base::escaped(path) + "\" comes twice", "keep one of them");
      } else if (path == "rules") {
        read_rules(child.second, settings_.rules_, errors_);
      } else if (const KeyInfo* info = find(path)) {
        take(*info, child.second);
      } else if (is_prefix(path)) {
        if (child.second.IsMap())
          map(child.second, path);
        else if (!child.second.IsNull())
          errors_.add(child.second, "\"" + path + "\" wants keys of its own", "indent them below it");
      } else {
        errors_.add(child.first, "unknown key \"" + base::escaped(path) + "\"", closest(path, all_paths()));
      }
    }
  }

  void take(const KeyInfo& info, const YAML::Node& node) {
    const std::string name(info.path);
    Value value;
    bool good = true;
    const auto number = [&](std::optional<std::uint64_t> got) {
      good = got.has_value();
      if (!good) return;
      value.number = *got;
      if (*got >= info.least && *got <= info.most) return;
      good = false;
      errors_.add(node, "\"" + name + "\" is out of range",
                  "it wants " + bound_text(info.type, info.least) + " to " + bound_text(info.type, info.most));
    };
    switch (info.type) {
      case KeyType::kBool:
        if (const auto got = as_bool(node, name, errors_))
          value.number = *got ? 1 : 0;
        else
          good = false;
        break;
      case KeyType::kCount:
        number(as_count(node, name, errors_));
        break;
      case KeyType::kBytes:
        number(as_bytes(node, name, errors_));
        if (good && info.path == "ring_bytes" && (value.number & (value.number - 1)) != 0) {
          good = false;
          errors_.add(node, "\"ring_bytes\" is no power of two", "take 1MiB, 2MiB, 4MiB, ...");
        }
        break;
      case KeyType::kDuration:
        number(as_milliseconds(node, name, errors_));
        break;
      case KeyType::kText:
      case KeyType::kWord:
        if (auto got = as_text(node, name, errors_))
          value.text = std::move(*got);
        else
          good = false;
        if (good && info.type == KeyType::kWord) {
          const auto words = words_of(info.meaning);
          if (std::find(words.begin(), words.end(), value.text) == words.end()) {
            good = false;
            errors_.add(node, "\"" + name + "\" cannot be \"" + base::escaped(value.text) + "\"",
                        closest(value.text, words));
          }
        }
        break;
      case KeyType::kTexts:
        if (auto got = as_texts(node, name, errors_))
          value.texts = std::move(*got);
        else
          good = false;
        break;
    }
    if (!good) return;
    value.set_at = errors_.place(node.Mark());
    settings_.values_[static_cast<std::size_t>(&info - kInfos)] = std::move(value);
  }

  Settings& settings_;
  Errors& errors_;
};

Settings::Settings() : values_(kKeys) {
  for (std::size_t i = 0; i < kKeys; ++i) {
    const KeyInfo& info = kInfos[i];
    Value& value = values_[i];
    switch (info.type) {
      case KeyType::kBool:
        value.number = info.fallback == "true" ? 1 : 0;
        break;
      case KeyType::kCount:
      case KeyType::kBytes:
        value.number = parse_bytes(info.fallback).value_or(0);
        break;
      case KeyType::kDuration:
        value.number = parse_milliseconds(info.fallback).value_or(0);
        break;
      case KeyType::kText:
      case KeyType::kWord:
        value.text = info.fallback;
        break;
      case KeyType::kTexts:
        break;
    }
  }
}

Settings Settings::read(const std::string& file, const std::vector<std::string>& overrides,
                        std::vector<std::string>& out) {
  Settings settings;
  Errors errors(out);
  Reader reader(settings, errors);
  reader.file(file, file == kConfigPath);
  // Files of packages and of the site beside the main one, in a fixed order.
  std::vector<std::string> more;
  std::error_code trouble;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(file).parent_path() / "conf.d", trouble))
    if (entry.path().extension() == ".yaml") more.push_back(entry.path().string());
  std::sort(more.begin(), more.end());
  for (const std::string& name : more) reader.file(name, false);
  for (const std::string& text : overrides) reader.override_with(text);
  check_rule_names(settings.rules_, out);
  errors.in(file);
  if (settings.flag(Key::kScan) && !settings.flag(Key::kImages))
    errors.add("code.scan has no meaning with code.images: false; switch one of them");
  for (const Rule& rule : settings.rules_) {
    if ((rule.actions & kActionWebhook) != 0 && settings.text(Key::kWebhookUrl).empty())
      out.push_back(rule.place + ": rule \"" + rule.name + "\" has the action webhook; set sinks.webhook.url");
    if ((rule.actions & kActionExec) != 0 && settings.texts(Key::kExecProgram).empty())
      out.push_back(rule.place + ": rule \"" + rule.name + "\" has the action exec; set sinks.exec.command");
    if ((rule.actions & kActionDump) != 0 && settings.number(Key::kRecorderBytes) == 0)
      out.push_back(rule.place + ": rule \"" + rule.name + "\" has the action dump; set recorder.bytes");
  }
  return settings;
}

namespace {

std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '-') out += '\\';
    out += c == '\\' ? 'e' : c;
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

constexpr std::string_view kTypeNames[] = {"true or false", "number", "size", "time", "text", "list of texts", "word"};

}  // namespace

std::string keys_as_manual() {
  std::string out;
  for (const KeyInfo& info : kInfos) {
    out +=
        ".TP\n\\fB" + roff(info.path) + "\\fR (" + std::string(kTypeNames[static_cast<std::size_t>(info.type)]) + ", ";
    out += info.fallback.empty() ? "default: none" : "default " + roff(info.fallback);
    if (info.type == KeyType::kCount || info.type == KeyType::kBytes || info.type == KeyType::kDuration)
      out += ", " + bound_text(info.type, info.least) + " to " + bound_text(info.type, info.most);
    out += ")\n" + roff(info.meaning) + "\n";
  }
  return out;
}

}  // namespace gpuwatch::daemon
