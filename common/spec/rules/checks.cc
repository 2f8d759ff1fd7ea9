#include "common/spec/rules/checks.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/controls.h"
#include "common/engine/ascend/modelarts.h"
#include "common/engine/model/grammar.h"
#include "common/engine/model/secret.h"
#include "common/spec/keys/key_table.h"
#include "common/spec/keys/names.h"
#include "common/spec/keys/values.h"

namespace muster::spec {
namespace {

constexpr std::size_t kEnvCountMax = 4096, kLabelCountMax = 64, kSourceMax = 4096;

bool is_label_name(std::string_view text) {
  return !text.empty() && text.size() <= 63 && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '_' || c == '-' || c == '/';
  });
}

}  // namespace

std::string_view accepted_of(std::string_view key) { return find_key(key)->accepted; }

bool is_printable(std::string_view text) { return without_controls(text, "\n\t") == text; }

void check_words(Draft& draft, const std::string& key, const TextList& words) {
  if (static_cast<std::size_t>(words.size()) > kWordsMax) {
    draft.too_many_words = true;
    return draft.problem(key, fmt::format("has {} words, at most {}", words.size(), kWordsMax));
  }
  for (int i = 0; i < words.size(); ++i)
    if (words[i].size() > engine::kStringBytesMax)
      draft.problem(fmt::format("{}[{}]", key, i),
                    fmt::format("has {} bytes, at most {}; put it into a file", words[i].size(),
                                engine::kStringBytesMax));
}

void check_environment(Draft& draft, const std::string& key, const TextMap& environment) {
  const engine::Engine* engine = draft.engine;
  if (environment.size() > kEnvCountMax)
    draft.problem(key,
                  fmt::format("has {} variables, at most {}", environment.size(), kEnvCountMax));
  for (const auto& [name, value] : environment) {
    const std::string one = fmt::format("{}.{}", key, shown(name));
    if (!is_variable_name(name))
      draft.problem(one, "is not a variable's name (letters, digits and _, not a digit first)");
    else if (name.size() + 1 + value.size() > engine::kStringBytesMax)
      draft.problem(one, fmt::format("has {} bytes with its name, at most {}",
                                     name.size() + 1 + value.size(), engine::kStringBytesMax));
    else if (const auto secret = engine::secret_of(value); !secret)
      draft.problem(one, fmt::format("'{}': {}", shown(value), secret.error().message));
    else if (engine != nullptr && engine::is_identity(*engine, name))
      draft.problem(one, "is set by muster for every rank, each its own; leave it out");
    else if (engine != nullptr && std::ranges::find(engine->cloud, name) != engine->cloud.end())
      draft.problem(one, fmt::format("makes {} believe that it is inside ModelArts, where it would "
                                     "write elsewhere and upload by itself; leave it out",
                                     engine->name));
    else if (engine::is_modelarts(draft.spec) && engine::is_modelarts_variable(name))
      draft.problem(
          one,
          "is the platform's own with compat: modelarts, and muster sets what of it means "
          "something here; leave it out");
    else if ((name == "CUDA_VISIBLE_DEVICES" || name == "ASCEND_RT_VISIBLE_DEVICES") &&
             draft.spec.resources().type() != "cpu")
      draft.problem(one, "is set by muster from the placement; choose with resources.devices");
  }
}

void check_labels(Draft& draft, const std::string& key, const TextMap& labels) {
  if (labels.size() > kLabelCountMax)
    draft.problem(key, fmt::format("has {} entries, at most {}", labels.size(), kLabelCountMax));
  for (const auto& [name, value] : labels) {
    const std::string one = fmt::format("{}.{}", key, shown(name));
    if (!is_label_name(name))
      draft.problem(one, "is not a label's name (letters, digits, . _ - /, at most 63 characters)");
    else if (value.size() > 255 || !is_printable(value))
      draft.problem(one, "a label's value has at most 255 bytes and no control characters");
  }
}

void check_duration(Draft& draft, const std::string& key, const google::protobuf::Duration& value,
                    std::chrono::seconds least, std::chrono::seconds most) {
  const bool sane =
      value.nanos() >= 0 && value.nanos() < 1'000'000'000 && value.seconds() >= least.count() &&
      (value.seconds() < most.count() || (value.seconds() == most.count() && value.nanos() == 0));
  if (!sane) draft.problem(key, fmt::format("is out of range ({})", accepted_of(key)));
}

void check_pattern(Draft& draft, const std::string& key, const std::string& text, int groups) {
  if (text.empty()) return draft.problem(key, fmt::format("is empty ({})", accepted_of(key)));
  if (std::string wrong = engine::pattern_problem(text, groups); !wrong.empty())
    draft.problem(key, fmt::format("'{}': {}", shown(text), wrong));
}

std::string source_problem(const v1::JobSpec& spec, std::string_view from, std::string_view forms) {
  if (from.size() > kSourceMax)
    return fmt::format("has {} bytes, at most {}", from.size(), kSourceMax);
  if (from.find("://") != std::string_view::npos)
    return fmt::format(
        "'{}': a URL is known but not in this release; copy it to where every node sees it ({})",
        shown(from), forms);
  if (from.find("${") != std::string_view::npos)
    return fmt::format(
        "'{}': templates are not filled in here; ${{stages.S.out}}/DIR is stage:S/DIR ({})",
        shown(from), forms);
  const Source source = source_of(from);
  if (source.kind.empty() && !from.starts_with('/'))
    return fmt::format("'{}' is not accepted ({})", shown(from), forms);
  if (source.kind == "stage" && !is_stage_name(source.name))
    return fmt::format("'{}' names no stage ({})", shown(from), forms);
  if (source.kind == "stage" && !spec.has_stage())
    return fmt::format(
        "'{}': this job is no stage of a chain, so it has no other stages; of another job it is "
        "job:J ({})",
        shown(from), forms);
  if (source.kind == "stage" && source.name == spec.stage().name())
    return fmt::format("'{}' is this stage itself; it comes behind those that it takes from",
                       shown(from));
  if (source.kind == "job" && !may_be_job(source.name))
    return fmt::format("'{}' names no job ({})", shown(from), forms);
  if (source.kind == "job" && source.name == spec.name())
    return fmt::format("'{}' is this job itself; an earlier job of that name is named by its id",
                       shown(from));
  if (!source.kind.empty() && climbs(source.below))
    return fmt::format("'{}' leaves the output directory by '..'; write where it is", shown(from));
  return {};
}

}  // namespace muster::spec
