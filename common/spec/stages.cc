#include "common/spec/stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "common/engine/model/engine.h"
#include "common/spec/keys/names.h"
#include "common/spec/keys/values.h"
#include "common/spec/read_spec.h"
#include "common/spec/rules/rules.h"
#include "common/spec/stage_order.h"
#include "common/spec/strings.h"
#include "common/text/words.h"

namespace muster::spec {
namespace {

// values and words of all stages together, with what they inherit
constexpr std::size_t kMergedMax = 4 * kNodesMax;

std::size_t count_nodes(const Node& node) {
  std::size_t count = 1;
  for (const Node& item : node.items) count += count_nodes(item);
  return count;
}

void drop(Node& map, std::string_view name) {
  for (std::size_t i = 0; i < map.keys.size(); ++i) {
    if (map.keys[i].text != name) continue;
    map.keys.erase(map.keys.begin() + static_cast<std::ptrdiff_t>(i));
    map.items.erase(map.items.begin() + static_cast<std::ptrdiff_t>(i));
    return;
  }
}

bool gives(const Node& map, std::string_view name) {
  const Node* value = map.get(name);
  return value != nullptr && value->kind != Node::Kind::Null;
}

// If two keys exclude each other, the stage's own key stays.
void drop_alternatives(Node& under, const Node& over, std::string_view key) {
  if (key == "launch" && gives(over, "run"))
    for (const char* name : {"script", "args"}) drop(under, name);
  if (key == "launch" && gives(over, "script")) drop(under, "run");
  if (key == "code" && gives(over, "at")) drop(under, "from");
  if (key == "code" && gives(over, "from")) drop(under, "at");
}

// `key` is dotted. `success` is replaced as a whole, because it has one meaning in several forms.
Node merge(Node under, const Node& over, const std::string& key) {
  if (under.kind != Node::Kind::Map || over.kind != Node::Kind::Map || key == "success")
    return over;
  drop_alternatives(under, over, key);
  std::unordered_map<std::string, std::size_t> where;
  for (std::size_t i = 0; i < under.keys.size(); ++i) where.emplace(under.keys[i].text, i);
  if (over.line != 0) std::tie(under.line, under.column) = std::pair(over.line, over.column);
  for (std::size_t i = 0; i < over.keys.size(); ++i) {
    const std::string& name = over.keys[i].text;
    const auto [found, fresh] = where.try_emplace(name, under.keys.size());
    if (fresh) {
      under.keys.push_back(over.keys[i]);
      under.items.push_back(over.items[i]);
      continue;
    }
    under.keys[found->second] = over.keys[i];
    under.items[found->second] = merge(std::move(under.items[found->second]), over.items[i],
                                       key.empty() ? name : fmt::format("{}.{}", key, name));
  }
  return under;
}

// Two problems with the same identity are the same. If several stages have one, it belongs to the
// top level.
using ProblemIdentity = std::tuple<std::uint32_t, std::uint32_t, std::string, std::string>;
ProblemIdentity identity_of(const Problem& problem) {
  return {problem.line, problem.column, problem.key, problem.message};
}

struct Stage {
  std::string name;
  const Node* key = nullptr;
  Node own;             // its keys, without after and creates
  bool unread = false;  // the value is not a stage
  const Node* after = nullptr;
  const Node* creates = nullptr;
  std::vector<Problem> completed;  // complete()'s problems, with their positions
};

class ChainReader {
 public:
  ChainReader(Node root, const ParseOptions& options, Parsed& result)
      : root_(std::move(root)), options_(options), result_(result) {}

  void run() {
    for (std::size_t i = 0; i < root_.keys.size(); ++i)
      if (root_.keys[i].text == "stages") stages_node_ = std::move(root_.items[i]);
    drop(root_, "stages");
    top();
    if (stages_node_.bad) return;
    if (stages_node_.kind != Node::Kind::Map)
      return problem(stages_node_, "stages",
                     fmt::format("must be a map ({})", find_key("stages")->accepted));
    if (stages_node_.keys.size() > kStagesMost)
      return problem(stages_node_, "stages",
                     fmt::format("has {} stages ({})", stages_node_.keys.size(),
                                 find_key("stages")->accepted));
    for (std::size_t i = 0; i < stages_node_.keys.size(); ++i)
      stage(stages_node_.keys[i], stages_node_.items[i]);
    for (const Stage& stage : stages_) names_.push_back(stage.name);
    order();
    std::vector<std::size_t> all = order_;
    for (std::size_t i = 0; i < stages_.size(); ++i)
      // Other problems of the stages in a cycle are reported, too.
      if (std::ranges::find(all, i) == all.end()) all.push_back(i);
    for (const std::size_t i : all) {
      if (full()) return;
      if (!stages_[i].unread) read(i);
    }
    say_completed();
    number();
  }

 private:
  bool full() const { return result_.problems.size() >= kProblemsMax; }
  void problem(const Node& at, std::string key, std::string message) {
    if (!full())
      result_.problems.push_back({.line = at.line,
                                  .column = at.column,
                                  .key = std::move(key),
                                  .message = std::move(message)});
  }
  // The chain is numbered whole, whatever of it is done.
  void number() {
    const auto count = static_cast<std::uint32_t>(result_.stages.size());
    for (std::uint32_t i = 0; i < count; ++i) {
      result_.stages[i].mutable_stage()->set_number(i + 1);
      result_.stages[i].mutable_stage()->set_count(count);
    }
  }
  static std::string key_of(const Stage& stage, std::string_view below) {
    return below.empty() ? fmt::format("stages.{}", shown(stage.name))
                         : fmt::format("stages.{}.{}", shown(stage.name), below);
  }

  // Checks types and names alone: a stage may have the keys that are missing at the top level.
  void top() {
    v1::JobSpec spec;
    SpecReader reader(options_, spec);
    reader.read(root_);
    for (Problem& problem : reader.problems()) {
      top_problems_.insert(identity_of(problem));
      if (!full()) result_.problems.push_back(std::move(problem));
    }
    name_ = spec.name();
    if (reader.spoiled("name")) {
      name_.clear();
    } else if (std::string wrong = job_name_problem(name_); !wrong.empty()) {
      Problem found = reader.placed({.key = "name", .message = std::move(wrong)});
      if (!full()) result_.problems.push_back(std::move(found));
      name_.clear();
    }
    result_.spec.set_name(name_);
  }

  void stage(const Node& key, const Node& value) {
    Stage stage{.name = key.text, .key = &key};
    const auto own_problem = [&](const Node& at, std::string_view below, std::string message) {
      problem(at, key_of(stage, below), std::move(message));
    };
    if (!is_stage_name(stage.name))
      own_problem(
          key, "",
          fmt::format(
              "'{}' cannot be a stage's name (a-z 0-9 _ -, a letter or digit first and last)",
              shown(stage.name)));
    else if (!name_.empty() && name_.size() + 1 + stage.name.size() > kJobNameMax)
      own_problem(key, "",
                  fmt::format("its job would be called '{}.{}', with {} characters: a job's name "
                              "has at most {}; shorten one of the two",
                              shown(name_), shown(stage.name), name_.size() + 1 + stage.name.size(),
                              kJobNameMax));
    if (value.kind != Node::Kind::Map) {
      stage.unread = value.bad || value.kind != Node::Kind::Null;
      if (stage.unread && !value.bad)
        own_problem(value, "", fmt::format("must be a map ({})", find_key("stages")->accepted));
      stage.own = Node{.kind = Node::Kind::Map, .line = key.line, .column = key.column};
      stages_.push_back(std::move(stage));
      return;
    }
    stage.own =
        Node{.kind = Node::Kind::Map, .line = value.line, .column = value.column, .bad = value.bad};
    std::vector<std::string_view> known = {"after", "creates"};
    for (const KeyRow* row : keys_below("")) known.push_back(row->key);
    for (std::size_t i = 0; i < value.keys.size(); ++i) {
      const std::string& name = value.keys[i].text;
      if (name == "after") {
        stage.after = &value.items[i];
      } else if (name == "creates") {
        stage.creates = &value.items[i];
      } else if (name == "name") {
        own_problem(value.keys[i], name, "a stage has the name of its key; leave it out");
      } else if (name == "stages") {
        own_problem(value.keys[i], name,
                    "a stage has no stages of its own; write them all below 'stages'");
      } else if (const std::string_view near =
                     find_key(name) == nullptr ? nearest(name, known) : "";
                 near == "after" || near == "creates") {
        own_problem(value.keys[i], shown(name),
                    fmt::format("unknown key; did you mean '{}'?", near));
        if (near == "after") order_unknown_ = true;
      } else {
        stage.own.keys.push_back(value.keys[i]);
        stage.own.items.push_back(value.items[i]);
      }
    }
    stages_.push_back(std::move(stage));
  }

  void order() {
    before_.resize(stages_.size());
    for (std::size_t i = 0; i < stages_.size(); ++i) named_before(i);
    const StageOrder found = order_stages(before_);
    order_ = found.order;
    if (found.cycle.empty()) {
      all_before_ = stages_before(before_, order_);
      return;
    }
    order_unknown_ = true;
    std::string way;
    for (const std::size_t i : found.cycle)
      way += fmt::format("{}{}", way.empty() ? "" : " -> ", shown(names_[i]));
    const Stage& first = stages_[found.cycle.front()];
    problem(first.after == nullptr ? *first.key : *first.after, key_of(first, "after"),
            fmt::format("the stages wait for each other in a cycle ({}); one of them has to be "
                        "without the stage before it",
                        way));
  }

  void named_before(std::size_t i) {
    const Stage& stage = stages_[i];
    std::vector<std::size_t>& before = before_[i];
    if (stage.after == nullptr) {
      if (i > 0) before.push_back(i - 1);
      return;
    }
    const std::string key = key_of(stage, "after");
    const std::string_view accepted = find_key("stages.NAME.after")->accepted;
    const auto one = [&](const Node& node) {
      if (node.bad || node.kind != Node::Kind::Scalar) {
        order_unknown_ = true;
        if (!node.bad)
          problem(node, key, fmt::format("must be the name of a stage ({})", accepted));
        return;
      }
      const auto found = std::ranges::find(names_, node.text);
      const auto number = static_cast<std::size_t>(found - names_.begin());
      if (found != names_.end() && number != i && std::ranges::find(before, number) == before.end())
        return before.push_back(number);
      if (found == names_.end()) order_unknown_ = true;
      const std::string_view near = found == names_.end() ? nearest(node.text, other_names(i)) : "";
      problem(node, key,
              found != names_.end()
                  ? fmt::format("'{}' {}", shown(node.text),
                                number == i ? "is this stage itself" : "is there twice")
              : near.empty()
                  ? fmt::format(
                        "there is no stage '{}' (a job outside of this spec is for schedule.after)",
                        shown(node.text))
                  : fmt::format("there is no stage '{}'; did you mean '{}'?", shown(node.text),
                                shown(near)));
    };
    if (stage.after->kind == Node::Kind::List) {
      for (const Node& item : stage.after->items) one(item);
    } else if (stage.after->kind == Node::Kind::Null && !stage.after->bad) {
      problem(*stage.after, key, fmt::format("has no value ({})", accepted));
    } else {
      one(*stage.after);
    }
  }

  std::vector<std::string_view> other_names(std::size_t i) const {
    std::vector<std::string_view> others;
    for (std::size_t other = 0; other < names_.size(); ++other)
      if (other != i) others.push_back(names_[other]);
    return others;
  }

  // The first stages of the chain wait for the jobs in the top level's schedule.after.
  Node merged(std::size_t i) const {
    const Stage& stage = stages_[i];
    Node top = root_;
    drop(top, "name");
    if (Node* schedule = top.kind == Node::Kind::Map && top.get("schedule") != nullptr
                             ? &top.at("schedule")
                             : nullptr;
        schedule != nullptr && !before_[i].empty())
      if (schedule->kind == Node::Kind::Map) drop(*schedule, "after");
    Node result = merge(std::move(top), stage.own, "");
    if (stage.creates != nullptr && stage.creates->kind == Node::Kind::Scalar &&
        stage.own.get("success") == nullptr)
      drop(result, "success");
    return result;
  }

  void read(std::size_t i) {
    Stage& stage = stages_[i];
    const Node tree = merged(i);
    merged_ += count_nodes(tree);
    if (merged_ > kMergedMax) {
      if (std::exchange(too_many_, true)) return;
      return problem(*stage.key, "stages",
                     fmt::format("with what they inherit the stages have more than {} values and "
                                 "words; put data into files",
                                 kMergedMax));
    }
    v1::JobSpec spec;
    SpecReader reader(options_, spec);
    reader.read(tree);
    merged_ += static_cast<std::size_t>(spec.launch().run_size() + spec.launch().args_size());
    for (Problem& found : reader.problems()) {
      if (top_problems_.contains(identity_of(found)) || full()) continue;
      found.key = key_of(stage, found.key);
      result_.problems.push_back(std::move(found));
    }
    // This is the default of code.from.
    if (spec.code().at().empty()) spec.mutable_code()->set_at(options_.base_dir);
    const bool named = !name_.empty() && is_stage_name(stage.name) &&
                       name_.size() + 1 + stage.name.size() <= kJobNameMax;
    spec.mutable_stage()->set_chain_name(named ? name_ : "chain");
    spec.mutable_stage()->set_name(named ? stage.name : "stage");
    spec.set_name(fmt::format("{}.{}", spec.stage().chain_name(), spec.stage().name()));
    for (const std::size_t before : before_[i])
      if (is_stage_name(names_[before]))
        spec.mutable_schedule()->add_after("stage:" + names_[before]);
    creates(stage, spec);
    if (stage.creates != nullptr) reader.place("stage.creates", *stage.creates);
    std::vector<Problem> completed = complete(spec);
    check_references(i, spec, completed);
    for (Problem& found : completed) {
      if (!reader.spoiled(found.key)) stage.completed.push_back(reader.placed(std::move(found)));
    }
    bytes_ += spec.ByteSizeLong();
    if (bytes_ > kChainBytesMax && !std::exchange(too_long_, true))
      problem(*stage.key, "stages",
              fmt::format(
                  "with what they inherit the stages have more than {} bytes; put data into files",
                  kChainBytesMax));
    if (!too_long_) result_.stages.push_back(std::move(spec));
  }

  void creates(const Stage& stage, v1::JobSpec& spec) {
    if (stage.creates == nullptr || stage.creates->bad || stage.creates->kind == Node::Kind::Null)
      return;
    const std::string_view accepted = find_key("stages.NAME.creates")->accepted;
    if (stage.creates->kind != Node::Kind::Scalar)
      return problem(*stage.creates, key_of(stage, "creates"),
                     fmt::format("must be one path ({})", accepted));
    if (stage.creates->text.empty())
      return problem(*stage.creates, key_of(stage, "creates"),
                     fmt::format("is empty ({})", accepted));
    spec.mutable_stage()->set_creates(stage.creates->text);
  }

  // Checks what a stage takes from another stage: that stage must exist and come before it.
  void check_references(std::size_t i, const v1::JobSpec& spec,
                        std::vector<Problem>& problems) const {
    const auto refer = [&](std::string_view name, std::string key) {
      const bool known =
          std::ranges::any_of(problems, [&](const Problem& problem) { return problem.key == key; });
      if (std::string wrong = known ? "" : reference_problem(i, name); !wrong.empty())
        problems.push_back({.key = std::move(key), .message = std::move(wrong)});
    };
    if (const Source source = source_of(spec.start().from()); source.kind == "stage")
      refer(source.name, "start.from");
    for (const v1::InputSpec& input : spec.inputs())
      if (const Source source = source_of(input.from()); source.kind == "stage")
        refer(source.name, fmt::format("inputs.{}", shown(input.name())));
    constexpr std::string_view kHead = "stages.", kTail = ".out";
    for (const auto& [key, text] : texts_of(spec)) {
      if (text.find("${stages.") == std::string::npos || key.starts_with("stage.")) continue;
      const auto names = engine::template_names(text);
      if (!names) continue;  // complete() has reported it
      for (const std::string& name : *names)
        if (name.starts_with(kHead) && name.ends_with(kTail) &&
            name.size() > kHead.size() + kTail.size())
          refer(std::string_view(name).substr(kHead.size(),
                                              name.size() - kHead.size() - kTail.size()),
                key);
    }
  }

  std::string reference_problem(std::size_t i, std::string_view name) const {
    const auto found = std::ranges::find(names_, name);
    if (found == names_.end()) {
      const std::string_view near = nearest(name, other_names(i));
      return near.empty() ? fmt::format("there is no stage '{}' in this spec", shown(name))
                          : fmt::format("there is no stage '{}'; did you mean '{}'?", shown(name),
                                        shown(near));
    }
    const auto number = static_cast<std::size_t>(found - names_.begin());
    if (number == i)
      return fmt::format("'{}' is this stage itself; its own output directory is ${{out}}",
                         shown(name));
    if (order_unknown_ || all_before_[i].contains(number)) return {};
    return fmt::format(
        "stage '{0}' does not come before this one: name it in 'after' (after: {0}), or one that "
        "comes behind it",
        shown(name));
  }

  static bool has_own(const Stage& stage, std::string_view key) {
    return key.starts_with("stage.") ||
           stage.own.get(key.substr(0, key.find_first_of(".["))) != nullptr;
  }

  // A problem that every stage has at the same position belongs to the top level.
  void say_completed() {
    std::map<ProblemIdentity, std::size_t> counts;
    const auto count_read =
        static_cast<std::size_t>(std::ranges::count(stages_, false, &Stage::unread));
    for (const Stage& stage : stages_)
      for (const Problem& problem : stage.completed) ++counts[identity_of(problem)];
    const Problem root{.line = root_.line, .column = root_.column};
    for (Stage& stage : stages_) {
      for (Problem& found : stage.completed) {
        std::size_t& count = counts[identity_of(found)];
        if (count == 0 || full()) continue;
        if (count == count_read && (count_read > 1 || !has_own(stage, found.key))) {
          count = 0;
        } else {
          if (found.line == root.line && found.column == root.column)
            std::tie(found.line, found.column) = std::pair(stage.key->line, stage.key->column);
          found.key =
              key_of(stage, found.key.starts_with("stage.") ? std::string_view(found.key).substr(6)
                                                            : found.key);
        }
        result_.problems.push_back(std::move(found));
      }
    }
  }

  Node root_;
  Node stages_node_;
  const ParseOptions& options_;
  Parsed& result_;
  std::string name_;  // of the chain; empty: it has no valid one
  std::set<ProblemIdentity> top_problems_;
  std::vector<Stage> stages_;  // in the order of the text
  std::vector<std::string> names_;
  StageNames before_;
  std::vector<std::size_t> order_;
  std::vector<std::set<std::size_t>> all_before_;  // unless order_unknown_
  bool order_unknown_ = false;
  bool too_many_ = false, too_long_ = false;
  std::size_t merged_ = 0, bytes_ = 0;
};

}  // namespace

bool has_stages(const Node& root) {
  const Node* stages = root.kind == Node::Kind::Map ? root.get("stages") : nullptr;
  return stages != nullptr && stages->kind != Node::Kind::Null &&
         !(stages->kind == Node::Kind::Map && stages->keys.empty());
}

void read_stages(Node root, const ParseOptions& options, Parsed& result) {
  ChainReader(std::move(root), options, result).run();
}

}  // namespace muster::spec
