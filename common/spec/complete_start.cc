#include "common/spec/complete_start.h"

#include <fmt/format.h>

#include <set>
#include <string_view>

#include "common/engine/model/engine.h"
#include "common/spec/key_table.h"
#include "common/spec/names.h"
#include "common/spec/values.h"

namespace muster::spec {
namespace {

constexpr std::size_t kSourceMax = 4096;
constexpr std::string_view kInputForms =
    "a path, absolute or relative to the spec's directory | stage:S/DIR | job:J/DIR";

std::string_view forms_of(std::string_view key) { return find_key(key)->accepted; }

// Returns what is wrong with "stage:S/below", "job:J/below" or an absolute path, or an empty text.
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

}  // namespace

void complete_start(v1::JobSpec& spec, const SayProblem& problem) {
  if (!spec.has_start()) return;
  if (spec.start().from().empty()) return spec.clear_start();
  v1::StartSpec& start = *spec.mutable_start();
  if (start.as() == v1::START_AS_UNSPECIFIED) start.set_as(v1::START_AS_WEIGHTS);
  if (start.as() < v1::START_AS_WEIGHTS || start.as() > v1::START_AS_RESUME_OR_SCRATCH)
    problem("start.as", fmt::format("{} is not accepted ({})", static_cast<int>(start.as()),
                                    forms_of("start.as")));
  if (start.has_step() && start.step() < 0)
    problem("start.step",
            fmt::format("{} is out of range ({})", start.step(), forms_of("start.step")));
  if (std::string wrong = source_problem(spec, start.from(), forms_of("start.from"));
      !wrong.empty())
    return problem("start.from", std::move(wrong));
  const Source source = source_of(start.from());
  if (source.slash && source.below.empty())
    return problem("start.from", fmt::format("'{}' ends with a slash: leave it out for the newest "
                                             "checkpoint, or name a directory behind it",
                                             shown(start.from())));
  const bool directory = source.kind.empty() || source.slash;
  if (directory && !start.has_step() && start.as() != v1::START_AS_WEIGHTS)
    problem("start.step",
            fmt::format("is missing: in a directory muster does not look which checkpoint is "
                        "whole; write the step of '{}' to go on from (a number)",
                        shown(start.from())));
  if (start.as() != v1::START_AS_WEIGHTS && spec.has_resume() && spec.resume().has_enabled() &&
      !spec.resume().enabled())
    problem("start.as",
            "is to go on behind a checkpoint, but every attempt starts from the beginning here "
            "(resume: none, or a mode that does not train); use as: weights");
}

void check_inputs(const v1::JobSpec& spec, const SayProblem& problem) {
  if (spec.inputs_size() > kInputsMost)
    return problem("inputs",
                   fmt::format("has {} entries ({})", spec.inputs_size(), forms_of("inputs")));
  const engine::Engine* engine = engine::find_engine(spec.engine());
  std::set<std::string_view> names, variables;
  for (const v1::InputSpec& input : spec.inputs()) {
    const std::string key = fmt::format("inputs.{}", shown(input.name()));
    if (!is_input_name(input.name()))
      problem(key, "is not an input's name (letters, digits and _, at most 63 characters)");
    else if (!names.insert(input.name()).second)
      problem(key, "is there twice");
    const Source source = source_of(input.from());
    if (input.from().empty())
      problem(key, fmt::format("does not say where it is ({})", kInputForms));
    else if (std::string wrong = source_problem(spec, input.from(), kInputForms); !wrong.empty())
      problem(key, std::move(wrong));
    else if (!source.kind.empty() && source.below.empty())
      problem(key,
              fmt::format("'{}' names nothing below the output directory of that {} ({}:{}/DIR)",
                          shown(input.from()), source.kind, source.kind, source.name));
    const std::string& variable = input.env();
    if (variable.empty()) continue;
    const std::string at = fmt::format("inputs.{}.env", shown(input.name()));
    if (!is_variable_name(variable))
      problem(at, fmt::format(
                      "'{}' is not a variable's name (letters, digits and _, not a digit first)",
                      shown(variable)));
    else if (engine != nullptr && engine::is_identity(*engine, variable))
      problem(at,
              fmt::format("'{}' is set by muster for every rank, each its own; choose another name",
                          variable));
    else if (spec.runtime().env().contains(variable))
      problem(at,
              fmt::format("'{}' is set by runtime.env, too; leave one of the two out", variable));
    else if (!variables.insert(variable).second)
      problem(at, fmt::format("'{}' is the variable of another input, too", variable));
  }
}

}  // namespace muster::spec
