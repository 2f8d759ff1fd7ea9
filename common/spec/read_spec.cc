#include "common/spec/read_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ranges>
#include <utility>

#include "common/spec/values.h"
#include "common/text/words.h"

namespace muster::spec {
namespace {

void set_duration(google::protobuf::Duration& to, Duration value) {
  to.set_seconds(value.count() / 1'000'000'000);
  to.set_nanos(static_cast<std::int32_t>(value.count() % 1'000'000'000));
}

// A word that only one engine knows stays unset if it is the default: complete() sets it for that
// engine.
v1::LaunchMode launch_mode(const std::string& text) {
  return text == "finetune"   ? v1::LAUNCH_MODE_FINETUNE
         : text == "eval"     ? v1::LAUNCH_MODE_EVAL
         : text == "predict"  ? v1::LAUNCH_MODE_PREDICT
         : text == "strategy" ? v1::LAUNCH_MODE_STRATEGY
                              : v1::LAUNCH_MODE_UNSPECIFIED;
}
v1::Launcher launcher(const std::string& text) {
  return text == "ranktable" ? v1::LAUNCHER_RANKTABLE
         : text == "msrun"   ? v1::LAUNCHER_MSRUN
                             : v1::LAUNCHER_UNSPECIFIED;
}

// --- setters of the simple rows ------------------------------------------------------------------
using SetText = void (*)(v1::JobSpec&, const std::string&);
const std::map<std::string_view, SetText>& text_setters() {
  static const std::map<std::string_view, SetText> setters = {
      {"name", [](v1::JobSpec& spec, const std::string& text) { spec.set_name(text); }},
      {"description",
       [](v1::JobSpec& spec, const std::string& text) { spec.set_description(text); }},
      {"compat", [](v1::JobSpec& spec,
                    const std::string& text) { spec.set_compat(text == "none" ? "" : text); }},
      {"engine", [](v1::JobSpec& spec, const std::string& text) { spec.set_engine(text); }},
      {"runtime.python", [](v1::JobSpec& spec,
                            const std::string& text) { spec.mutable_runtime()->set_python(text); }},
      {"runtime.user",
       [](v1::JobSpec& spec, const std::string& text) { spec.mutable_runtime()->set_user(text); }},
      {"launch.per",
       [](v1::JobSpec& spec, const std::string& text) {
         spec.mutable_launch()->set_per(text == "once"   ? v1::LAUNCH_PER_ONCE
                                        : text == "node" ? v1::LAUNCH_PER_NODE
                                                         : v1::LAUNCH_PER_RANK);
       }},
      {"launch.script",
       [](v1::JobSpec& spec, const std::string& text) {
         spec.mutable_launch()->set_script(text == "auto" ? "" : text);
       }},
      {"launch.mode",
       [](v1::JobSpec& spec, const std::string& text) {
         spec.mutable_launch()->set_mode(launch_mode(text));
       }},
      {"launch.launcher",
       [](v1::JobSpec& spec, const std::string& text) {
         spec.mutable_launch()->set_launcher(launcher(text));
       }},
      {"launch.intercept",
       [](v1::JobSpec& spec, const std::string& text) {
         if (text == "off") spec.mutable_launch()->set_intercept(false);
       }},
      {"launch.cwd",
       [](v1::JobSpec& spec, const std::string& text) {
         spec.mutable_launch()->set_cwd(text == "auto" ? "" : text);
       }},
      {"resources.type", [](v1::JobSpec& spec,
                            const std::string& text) { spec.mutable_resources()->set_type(text); }},
      {"network.interface",
       [](v1::JobSpec& spec, const std::string& text) {
         spec.mutable_network()->set_interface(text);
       }},
  };
  return setters;
}

using SetNumber = void (*)(v1::JobSpec&, std::uint32_t);
const std::map<std::string_view, SetNumber>& number_setters() {
  static const std::map<std::string_view, SetNumber> setters = {
      {"resources.nodes",
       [](v1::JobSpec& spec, std::uint32_t value) { spec.mutable_resources()->set_nodes(value); }},
      {"recovery.max_restarts",
       [](v1::JobSpec& spec, std::uint32_t value) {
         spec.mutable_recovery()->set_max_restarts(value);
       }},
  };
  return setters;
}

using SetDuration = void (*)(v1::JobSpec&, Duration);
const std::map<std::string_view, SetDuration>& duration_setters() {
  static const std::map<std::string_view, SetDuration> setters = {
      {"runtime.setup.timeout",
       [](v1::JobSpec& spec, Duration value) {
         set_duration(*spec.mutable_runtime()->mutable_setup_timeout(), value);
       }},
      {"recovery.window",
       [](v1::JobSpec& spec, Duration value) {
         set_duration(*spec.mutable_recovery()->mutable_window(), value);
       }},
      {"recovery.orphan_grace",
       [](v1::JobSpec& spec, Duration value) {
         set_duration(*spec.mutable_recovery()->mutable_orphan_grace(), value);
       }},
      {"recovery.stop_grace",
       [](v1::JobSpec& spec, Duration value) {
         set_duration(*spec.mutable_recovery()->mutable_stop_grace(), value);
       }},
  };
  return setters;
}

using TextMap = google::protobuf::Map<std::string, std::string>;
using GetMap = TextMap* (*)(v1::JobSpec&);
const std::map<std::string_view, GetMap>& map_getters() {
  static const std::map<std::string_view, GetMap> getters = {
      {"labels", [](v1::JobSpec& spec) { return spec.mutable_labels(); }},
      {"runtime.env", [](v1::JobSpec& spec) { return spec.mutable_runtime()->mutable_env(); }},
      {"launch.vars", [](v1::JobSpec& spec) { return spec.mutable_launch()->mutable_vars(); }},
      {"resources.select",
       [](v1::JobSpec& spec) { return spec.mutable_resources()->mutable_select(); }},
      {"resume.env", [](v1::JobSpec& spec) { return spec.mutable_resume()->mutable_env(); }},
      {"resume.vars", [](v1::JobSpec& spec) { return spec.mutable_resume()->mutable_vars(); }},
  };
  return getters;
}

std::vector<std::string_view> choices(std::string_view text) {
  std::vector<std::string_view> result;
  constexpr std::string_view kBetween = " | ";
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(kBetween), text.size());
    result.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + kBetween.size(), text.size()));
  }
  return result;
}

// Returns the nearest of `known`, if no other one is equally near.
std::string_view only_nearest(std::string_view word, std::vector<std::string_view> known) {
  const std::string_view near = nearest(word, known);
  std::erase(known, near);
  const std::string_view second = nearest(word, known);
  // If two are equally near, nearest() returns the first.
  return second.empty() || nearest(word, std::array{second, near}) == near ? near : "";
}

bool is_leaf(std::string_view name) {
  return std::ranges::find(key_table(), name, [](const KeyRow& row) { return leaf(row.key); }) !=
         key_table().end();
}

std::string below(const std::string& section, std::string_view name) {
  return section.empty() ? std::string(name) : fmt::format("{}.{}", section, name);
}

}  // namespace

bool SpecReader::has_reader(std::string_view key) {
  return text_setters().contains(key) || number_setters().contains(key) ||
         duration_setters().contains(key) || map_getters().contains(key) ||
         specials().contains(key);
}

void SpecReader::problem(const Node& at, std::string key, std::string message) {
  spoiled_.insert(key);
  if (problems_.size() < kProblemsMax)
    problems_.push_back({.line = at.line,
                         .column = at.column,
                         .key = std::move(key),
                         .message = std::move(message)});
}

void SpecReader::item_problem(const Node& at, std::string key, std::string message) {
  if (problems_.size() < kProblemsMax)
    problems_.push_back({.line = at.line,
                         .column = at.column,
                         .key = std::move(key),
                         .message = std::move(message)});
}

bool SpecReader::spoiled(const std::string& key) const {
  // A list that lost an element is no longer reliable as a whole.
  if (std::ranges::any_of(
          problems_, [&](const Problem& earlier) { return earlier.key.starts_with(key + "["); }))
    return true;
  // A key that seems to be missing in launch may be the misspelt one there.
  if (key == "launch.run" && spoiled_.contains("launch.script")) return true;
  // Whether start.from is needed depends on start.as.
  if (key == "start.from" && spoiled_.contains("start.as")) return true;
  for (std::string part = key;;) {
    if (spoiled_.contains(part) ||
        std::ranges::any_of(meant_, [&](const Meant& meant) { return meant.row->key == part; }))
      return true;
    const std::size_t cut = part.find_last_of(".[");
    if (cut == std::string::npos) return false;
    part.resize(cut);
  }
}

Problem SpecReader::placed(Problem problem) const {
  for (std::string part = problem.key;;) {
    if (const auto found = places_.find(part); found != places_.end()) {
      std::tie(problem.line, problem.column) = found->second;
      return problem;
    }
    const std::size_t cut = part.find_last_of(".[");
    if (part.empty()) return problem;
    part.resize(cut == std::string::npos ? 0 : cut);
  }
}

void SpecReader::read(const Node& root) {
  places_[""] = {root.line, root.column};
  if (root.kind != Node::Kind::Map) {
    problem(root, "",
            root.kind == Node::Kind::Null
                ? "the spec is empty; `muster explain` lists the keys"
                : "a spec is a map of keys (name: , engine: , launch: ...)");
    return;
  }
  section(root, "");
  read_meant();
}

void SpecReader::read_meant() {
  while (!meant_.empty()) {  // one may contain others
    for (const auto& [value, known] : std::exchange(meant_, {})) {
      const std::string key(known->key);
      const bool fresh = places_.try_emplace(key, value->line, value->column).second;
      if (value->bad) {
        spoiled_.insert(key);
      } else if (known->kind == KeyKind::Section) {
        section(*value, key);  // keys of the correctly spelt section are not read again
      } else if (fresh) {
        row(*value, *known);
      }
    }
  }
}

void SpecReader::section(const Node& node, const std::string& prefix) {
  if (node.bad || node.kind == Node::Kind::Null) return;
  if (node.kind != Node::Kind::Map) {
    std::vector<std::string_view> names;
    for (const KeyRow* known : keys_below(prefix)) names.push_back(leaf(known->key));
    problem(node, prefix, fmt::format("must be a map ({})", fmt::join(names, ", ")));
    return;
  }
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    const std::string& name = node.keys[i].text;
    const Node& value = node.items[i];
    const std::string key = below(prefix, name);
    // A dot inside one key is not a path. find_key alone would take `launch.per: rank` at the top
    // level for the nested key.
    const KeyRow* known = name.find('.') == std::string::npos ? find_key(key) : nullptr;
    if (known == nullptr) {
      unknown(node.keys[i], value, prefix);
      continue;
    }
    if (!places_.try_emplace(key, value.line, value.column).second) continue;
    if (!value.bad) row(value, *known);
    if (value.bad) spoiled_.insert(key);
  }
}

void SpecReader::unknown(const Node& key, const Node& value, const std::string& section_key) {
  const std::string& name = key.text;
  const std::string full = below(section_key, name);
  // `sure` means that no other key is possible.
  const auto say = [&](std::string_view meant, bool sure) {
    if (sure)
      meant_.push_back({.value = &value, .row = find_key(meant)});
    else
      spoiled_.insert(std::string(meant));  // it may not be missing after all
    problem(key, shown(full), fmt::format("unknown key; did you mean '{}'?", meant));
  };
  if (const KeyRow* dotted = find_key(full)) {
    const std::string_view inner = std::string_view(full).substr(0, full.rfind('.'));
    meant_.push_back({.value = &value, .row = dotted});
    problem(key, shown(full),
            fmt::format("unknown key; write '{}' inside '{}:'", leaf(full), inner));
    return;
  }
  // Another tool's word for a key is matched by its meaning and not by its letters, unless it is
  // also one of muster's keys elsewhere.
  if (const KeyRow* alias = find_alias(section_key, name); alias != nullptr && !is_leaf(name)) {
    // Where other tools have a section and muster has one value, the content of the section is not
    // checked.
    const bool readable = value.kind != Node::Kind::Map || alias->kind == KeyKind::TextMap ||
                          alias->kind == KeyKind::Section;
    return say(alias->key, readable);
  }
  std::vector<std::string_view> here, everywhere;
  for (const KeyRow* known : keys_below(section_key)) here.push_back(leaf(known->key));
  if (const std::string_view near = nearest(name, here); !near.empty())
    return say(below(section_key, near), !only_nearest(name, here).empty());
  // The code that reads stages reports the keys that only a stage has.
  const auto leaf_of = [](const KeyRow& known) {
    return known.key.starts_with("stages.") ? std::string_view{} : leaf(known.key);
  };
  const auto leaf_count = [&](std::string_view word) {
    return std::ranges::count(key_table(), word, leaf_of);
  };
  const auto first_with = [&](std::string_view word) {
    return std::ranges::find(key_table(), word, leaf_of)->key;
  };
  if (const auto count = leaf_count(name); count > 0) return say(first_with(name), count == 1);
  for (const KeyRow& known : key_table())
    if (!leaf_of(known).empty() &&
        std::ranges::find(everywhere, leaf(known.key)) == everywhere.end())
      everywhere.push_back(leaf(known.key));
  if (const std::string_view near = nearest(name, everywhere); !near.empty())
    return say(first_with(near), leaf_count(near) == 1 && !only_nearest(name, everywhere).empty());
  problem(key, shown(full), fmt::format("unknown key ({})", fmt::join(here, ", ")));
}

void SpecReader::row(const Node& node, const KeyRow& row) {
  switch (row.kind) {
    case KeyKind::Section:
      return row.key == "start" ? start(node) : section(node, std::string(row.key));
    case KeyKind::Later: return later(node, row);
    case KeyKind::Choice: return choice(node, row);
    case KeyKind::TextMap: return text_map(node, row);
    case KeyKind::Special: return (this->*specials().at(row.key))(node, row);
    case KeyKind::Text:
      if (const std::string* value = text(node, row)) text_setters().at(row.key)(spec_, *value);
      return;
    case KeyKind::Number:
      if (const std::string* value = text(node, row)) {
        if (auto number = parse_number(*value, row.least, row.most))
          number_setters().at(row.key)(spec_, static_cast<std::uint32_t>(*number));
        else
          problem(node, std::string(row.key), number.error().message);
      }
      return;
    case KeyKind::Duration:
      if (const std::string* value = text(node, row)) {
        if (auto duration = parse_duration(*value))
          duration_setters().at(row.key)(spec_, *duration);
        else
          problem(node, std::string(row.key), duration.error().message);
      }
      return;
  }
}

void SpecReader::later(const Node& node, const KeyRow& row) {
  const Tree fallback = read_tree(row.fallback, false);
  // `none` and null both mean "nothing".
  const bool empty_word = node.kind == Node::Kind::Null && row.fallback == "none";
  if (!empty_word && !same_value(node, fallback.root))
    problem(node, std::string(row.key),
            fmt::format("is known but not in this release; leave it out (its default is {})",
                        row.fallback));
}

const std::string* SpecReader::text(const Node& node, const KeyRow& row) {
  if (node.kind == Node::Kind::Scalar) return &node.text;
  const char* what = node.kind == Node::Kind::Null   ? "has no value"
                     : node.kind == Node::Kind::List ? "must be one value, not a list"
                                                     : "must be one value, not a map";
  problem(node, std::string(row.key), fmt::format("{} ({})", what, row.accepted));
  return nullptr;
}

void SpecReader::not_accepted(const Node& node, const KeyRow& row, std::string_view value) {
  const std::string_view meant = value_meant(row.key, value);
  const std::string_view near = meant.empty() ? nearest(value, choices(row.accepted)) : meant;
  if (near.empty())
    problem(node, std::string(row.key),
            fmt::format("'{}' is not accepted ({})", shown(value), row.accepted));
  else
    problem(node, std::string(row.key),
            fmt::format("'{}' is not accepted; did you mean '{}'? ({})", shown(value), near,
                        row.accepted));
}

void SpecReader::choice(const Node& node, const KeyRow& row) {
  const std::string* value =
      node.kind == Node::Kind::Null && row.fallback == "none" ? nullptr : text(node, row);
  if (value == nullptr) return;
  const auto accepted = choices(row.accepted);
  const auto later_words = choices(row.later);
  if (std::ranges::find(accepted, *value) != accepted.end())
    text_setters().at(row.key)(spec_, *value);
  else if (std::ranges::find(later_words, *value) != later_words.end())
    problem(node, std::string(row.key),
            fmt::format("'{}' is known but not in this release ({})", *value, row.accepted));
  else {
    not_accepted(node, row, *value);
    // The later checks depend on which engine was meant.
    if (row.key == "engine") spec_.set_engine(*value);
  }
}

void SpecReader::text_map(const Node& node, const KeyRow& row) {
  if (node.kind == Node::Kind::Null) return;
  if (node.kind != Node::Kind::Map)
    return problem(node, std::string(row.key), fmt::format("must be a map ({})", row.accepted));
  TextMap& map = *map_getters().at(row.key)(spec_);
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    const Node& value = node.items[i];
    const std::string key = fmt::format("{}.{}", row.key, node.keys[i].text);
    places_[key] = {value.line, value.column};
    if (value.bad)
      spoiled_.insert(key);
    else if (value.kind == Node::Kind::Scalar)
      map[node.keys[i].text] = value.text;
    else
      problem(value, shown(key),
              value.kind == Node::Kind::Null ? "has no value; \"\" is the empty text"
                                             : "must be one text");
  }
}

}  // namespace muster::spec
