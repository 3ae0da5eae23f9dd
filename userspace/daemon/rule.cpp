// SPDX-License-Identifier: Apache-2.0
#include "daemon/rule.h"

#include <algorithm>
#include <map>

#include "base/escape.h"
#include "daemon/yaml.h"
#include "model/loss.h"
#include "model/story.h"
#include "model/verdict.h"

namespace gpuwatch::daemon {

namespace {

constexpr FieldInfo kInfos[] = {
#define FIELD(enumerator, key, type, meaning) {key, FieldType::type, meaning},
#include "daemon/rule_keys.def"
#undef FIELD
};

constexpr std::size_t kRulesMax = 1000;
constexpr std::size_t kValuesMax = 1000;
constexpr std::size_t kTextMax = 1024;

const std::vector<std::string>& rule_words() {
  static const std::vector<std::string> kWords = {"name", "enabled", "severity", "attack", "message",
                                                  "when", "unless",  "rate",     "limit",  "actions"};
  return kWords;
}

std::vector<std::string> names_of(Field field) {
  std::vector<std::string> names;
  if (field == Field::kEvent) {
    for (const model::StoryKindInfo& info : model::kStoryKinds) names.emplace_back(info.name);
    names.emplace_back("loss");
  } else if (field == Field::kVerdict) {
    for (std::size_t i = 0; i < model::kVerdicts; ++i)
      names.emplace_back(model::verdict_name(static_cast<model::Verdict>(i)));
  } else {
    names = {"unknown", "file", "memory"};
  }
  return names;
}

void read_conditions(const YAML::Node& node, const std::string& what, Conditions& out, Errors& errors) {
  if (!node.IsMap()) return errors.add(node, "\"" + what + "\" wants keys", "as in \"event: module.load\"");
  std::vector<std::string> known;
  for (const FieldInfo& info : kInfos) known.emplace_back(info.key);
  for (const auto& child : node) {
    const std::string key = child.first.IsScalar() ? child.first.Scalar() : std::string();
    const auto at = std::find(known.begin(), known.end(), key);
    if (at == known.end()) {
      errors.add(child.first, "unknown condition \"" + base::escaped(key) + "\"", closest(key, known));
      continue;
    }
    const auto field = static_cast<Field>(at - known.begin());
    const FieldInfo& info = field_info(field);
    auto& values = out.values[static_cast<std::size_t>(field)];
    if (!values.empty()) {
      errors.add(child.first, "\"" + key + "\" comes twice", "write its values as one list");
      continue;
    }
    if (info.type == FieldType::kBool) {
      if (const auto flag = as_bool(child.second, key, errors)) values.emplace_back(*flag ? "true" : "false");
      continue;
    }
    auto texts = as_texts(child.second, key, errors);
    if (!texts) continue;
    if (texts->empty() || texts->size() > kValuesMax) {
      errors.add(child.second, "\"" + key + "\" has " + (texts->empty() ? "an empty list" : "too many values"),
                 "name 1 to " + std::to_string(kValuesMax));
      continue;
    }
    for (const std::string& text : *texts) {
      if (text.size() > kTextMax) {
        errors.add(child.second, "a value of \"" + key + "\" is too long", "at most 1024 bytes");
      } else if (info.type == FieldType::kName) {
        const auto names = names_of(field);
        if (std::find(names.begin(), names.end(), text) == names.end())
          errors.add(child.second, "\"" + key + "\" cannot be \"" + base::escaped(text) + "\"", closest(text, names));
      } else if (info.type == FieldType::kNumber &&
                 (text.empty() || text.size() > 6 || text.find_first_not_of("0123456789") != std::string::npos)) {
        errors.add(child.second, "\"" + key + "\" wants numbers", "it has \"" + base::escaped(text) + "\"");
      }
    }
    values = std::move(*texts);
  }
}

void read_rate(const YAML::Node& node, const std::string& what, Rate& rate, Errors& errors) {
  if (!node.IsMap())
    return errors.add(node, "\"" + what + "\" wants keys", "as in {count: 10, per: 1m, by: container}");
  static const std::vector<std::string> kKnown = {"count", "per", "by"};
  static const std::vector<std::string> kGroups = {"rule", "process", "container", "user", "gpu"};
  bool count = false, per = false;
  for (const auto& child : node) {
    const std::string key = child.first.IsScalar() ? child.first.Scalar() : std::string();
    if (key == "count") {
      const auto number = as_count(child.second, what + ".count", errors);
      if (number && (*number == 0 || *number > 1'000'000))
        errors.add(child.second, "\"" + what + ".count\" is out of range", "it wants 1 to 1000000");
      else if (number)
        rate.count = *number;
      count = true;
    } else if (key == "per") {
      const auto time = as_milliseconds(child.second, what + ".per", errors);
      if (time && (*time == 0 || *time > 86'400'000))
        errors.add(child.second, "\"" + what + ".per\" is out of range", "it wants 1ms to 24h");
      else if (time)
        rate.per_ns = *time * 1'000'000;
      per = true;
    } else if (key == "by") {
      const auto word = as_text(child.second, what + ".by", errors);
      if (!word) continue;
      const auto at = std::find(kGroups.begin(), kGroups.end(), *word);
      if (at == kGroups.end())
        errors.add(child.second, "\"" + what + ".by\" cannot be \"" + base::escaped(*word) + "\"",
                   closest(*word, kGroups));
      else
        rate.by = static_cast<GroupBy>(at - kGroups.begin());
    } else {
      errors.add(child.first, "unknown key \"" + what + "." + base::escaped(key) + "\"", closest(key, kKnown));
    }
  }
  if (!count || !per) errors.add(node, "\"" + what + "\" wants both count and per", "as in {count: 10, per: 1m}");
}

bool is_attack_id(const std::string& id) {
  // T1496, T1496.001
  if (id.size() != 5 && id.size() != 9) return false;
  for (std::size_t i = 0; i < id.size(); ++i) {
    const char c = id[i];
    if (i == 0 ? c != 'T' : i == 5 ? c != '.' : c < '0' || c > '9') return false;
  }
  return true;
}

void read_actions(const YAML::Node& node, Rule& rule, Errors& errors) {
  static const std::vector<std::string> kActions = {"alert", "log", "webhook", "exec", "dump"};
  const auto words = as_texts(node, "actions", errors);
  if (!words) return;
  rule.actions = 0;
  for (const std::string& word : *words) {
    const auto at = std::find(kActions.begin(), kActions.end(), word);
    if (at == kActions.end())
      errors.add(node, "\"actions\" cannot have \"" + base::escaped(word) + "\"", closest(word, kActions));
    else
      rule.actions |= 1u << (at - kActions.begin());
  }
  if (words->empty()) errors.add(node, "\"actions\" has an empty list", "name alert, log, webhook, exec or dump");
}

Rule read_rule(const YAML::Node& node, Errors& errors) {
  Rule rule;
  rule.place = errors.place(node.Mark());
  if (!node.IsMap()) {
    errors.add(node, "a rule wants keys", "begin with \"- name: ...\"");
    return rule;
  }
  std::map<std::string, bool> seen;
  const std::size_t before = errors.count();
  for (const auto& child : node) {
    const std::string key = child.first.IsScalar() ? child.first.Scalar() : std::string();
    const YAML::Node& value = child.second;
    if (!seen.emplace(key, true).second) {
      errors.add(child.first, "\"" + base::escaped(key) + "\" comes twice", "keep one of them");
    } else if (key == "name") {
      rule.name = as_text(value, key, errors).value_or("");
      if (rule.name.empty() || rule.name.size() > 64 ||
          rule.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_.") != std::string::npos)
        errors.add(value, "a rule's name has other characters than a-z, 0-9, - _ . or is not 1 to 64 long",
                   "choose one as unknown-code");
    } else if (key == "enabled") {
      rule.enabled = as_bool(value, key, errors).value_or(true);
    } else if (key == "severity") {
      std::vector<std::string> words;
      for (std::size_t i = 0; i < sink::kSeverities; ++i)
        words.emplace_back(sink::severity_name(static_cast<sink::Severity>(i)));
      const auto word = as_text(value, key, errors);
      if (!word) continue;
      const auto at = std::find(words.begin(), words.end(), *word);
      if (at == words.end())
        errors.add(value, "\"severity\" cannot be \"" + base::escaped(*word) + "\"", closest(*word, words));
      else
        rule.severity = static_cast<sink::Severity>(at - words.begin());
    } else if (key == "attack") {
      rule.attack = as_texts(value, key, errors).value_or(std::vector<std::string>());
      for (const std::string& id : rule.attack)
        if (!is_attack_id(id) || rule.attack.size() > 16)
          errors.add(value, "\"attack\" wants up to 16 ids of ATT&CK techniques", "as T1496 or T1499.001");
    } else if (key == "message") {
      rule.message = as_text(value, key, errors).value_or("");
      if (rule.message.size() > kTextMax) errors.add(value, "\"message\" is too long", "at most 1024 bytes");
    } else if (key == "when") {
      read_conditions(value, key, rule.when, errors);
    } else if (key == "unless") {
      read_conditions(value, key, rule.unless, errors);
    } else if (key == "rate") {
      read_rate(value, key, rule.rate, errors);
    } else if (key == "limit") {
      read_rate(value, key, rule.limit, errors);
    } else if (key == "actions") {
      read_actions(value, rule, errors);
    } else {
      errors.add(child.first, "unknown key \"" + base::escaped(key) + "\" in a rule", closest(key, rule_words()));
    }
  }
  if (!seen.contains("name")) errors.add(node, "a rule without name", "add \"name: ...\"");
  // A condition that could not be read was told already.
  const bool no_event = rule.when.values[static_cast<std::size_t>(Field::kEvent)].empty();
  if (!seen.contains("when") || (no_event && errors.count() == before))
    errors.add(node, "a rule that does not say of which events", "add \"when: {event: ...}\"");
  return rule;
}

}  // namespace

const FieldInfo& field_info(Field field) {
  return kInfos[static_cast<std::size_t>(field)];
}

void read_rules(const YAML::Node& node, std::vector<Rule>& rules, Errors& errors) {
  if (node.IsNull()) return;
  if (!node.IsSequence()) return errors.add(node, "\"rules\" wants a list", "begin each rule with \"- name: ...\"");
  for (const auto& child : node) {
    if (rules.size() >= kRulesMax) return errors.add(child, "more than 1000 rules", "join some of them");
    rules.push_back(read_rule(child, errors));
  }
}

void check_rule_names(const std::vector<Rule>& rules, std::vector<std::string>& errors) {
  std::map<std::string, const Rule*> seen;
  for (const Rule& rule : rules) {
    const auto [at, fresh] = seen.emplace(rule.name, &rule);
    if (!fresh && !rule.name.empty())
      errors.push_back(rule.place + ": a second rule \"" + base::escaped(rule.name) + "\"; the first is at " +
                       at->second->place + ", rename one");
  }
}

std::string rule_keys_as_manual() {
  std::string out;
  for (const FieldInfo& info : kInfos) {
    out += ".TP\n\\fB" + std::string(info.key) + "\\fR\n";
    for (const char c : info.meaning) {
      if (c == '-') out += '\\';
      out += c;
    }
    out += '\n';
  }
  return out;
}

}  // namespace gpuwatch::daemon
