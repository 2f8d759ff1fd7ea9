#include "controller/api/complete_spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>
#include <set>
#include <string_view>

#include "common/base/controls.h"
#include "common/engine/model/engine.h"
#include "common/spec/keys/names.h"
#include "common/spec/keys/values.h"
#include "common/spec/parse.h"
#include "common/text/words.h"
#include "controller/api/unknown_fields.h"
#include "controller/launch/bounds.h"

namespace muster::controller {
namespace {

using spec::shown;

constexpr std::size_t kUnknownNamed = 6, kFetchesBytesMax = 64U << 10U;

// A key of a newer muster would be ignored here, and once it is in the journal, it would make the
// journal unreadable.
Result<void> check_unknown(const google::protobuf::Message& given) {
  const auto unknown = unknown_fields(given);
  if (unknown.empty()) return {};
  return fail(ErrorCode::InvalidArgument,
              fmt::format("checking the spec: this controller does not know {}{}; leave out what "
                          "came with a newer muster, or upgrade the controller",
                          fmt::join(unknown | std::views::take(kUnknownNamed), ", "),
                          unknown.size() > kUnknownNamed
                              ? fmt::format(" and {} more", unknown.size() - kUnknownNamed)
                              : ""));
}

// Checked before anything else.
Result<void> check_known(const v1::JobSpec& given) {
  if (given.ByteSizeLong() > spec::kSpecBytesMax) {
    return fail(ErrorCode::InvalidArgument,
                "checking the spec: it has " + std::to_string(given.ByteSizeLong()) +
                    " bytes, at most " + std::to_string(spec::kSpecBytesMax));
  }
  return check_unknown(given);
}

// "/shared/x", or "${stages.S.out}/x" of its stage.
bool is_place_to_fetch(const v1::FetchSpec& fetch) {
  const std::string& dir = fetch.dir();
  const std::string stage_out = fmt::format("${{stages.{}.out}}", fetch.stage());
  const bool of_stage = !fetch.stage().empty() && dir.starts_with(stage_out);
  const auto names = engine::template_names(dir);
  if (!names || names->size() > (of_stage ? 1U : 0U)) return false;
  if (!fetch.stage().empty() && !spec::is_stage_name(fetch.stage())) return false;
  return (of_stage || dir.starts_with('/')) && !has_controls(dir) && !has_controls(fetch.below()) &&
         (dir + "/").find("/../") == std::string::npos &&
         fetch.below().find('/') == std::string::npos && fetch.below() != "..";
}

// `jobs`: those of the submission.
Result<void> check_fetches(const Fetches& fetches, const std::set<std::string>& jobs) {
  std::size_t bytes = 0;
  for (const v1::JobFetches& one : fetches) {
    if (auto known = check_unknown(one); !known) return known;
    bytes += one.ByteSizeLong();
    if (bytes > kFetchesBytesMax)
      return fail(
          ErrorCode::InvalidArgument,
          fmt::format("checking the spec: its fetches have more than {} bytes", kFetchesBytesMax));
    if (!jobs.contains(one.job_name()))
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("checking the spec: fetches are for job '{}', which is not submitted",
                              shown(one.job_name())));
    for (const v1::FetchSpec& fetch : one.fetches())
      if (!is_place_to_fetch(fetch))
        return fail(ErrorCode::InvalidArgument,
                    fmt::format("checking job '{}': '{}' is no directory to fetch (absolute, or "
                                "below ${{stages.S.out}} of its stage)",
                                shown(one.job_name()), shown(fetch.dir())));
  }
  return {};
}

void take_fetches(JobToSubmit& job, const Fetches& fetches) {
  for (const v1::JobFetches& one : fetches)
    if (one.job_name() == job.spec.name()) job.resolved.mutable_fetches()->MergeFrom(one.fetches());
}

// A stage that a spec names, and the key where the spec names it.
struct Named {
  std::string key;
  std::string stage;
};
std::vector<Named> stages_named(const v1::JobSpec& spec) {
  std::vector<Named> named;
  const auto add = [&named](std::string key, std::string_view text) {
    if (const spec::Source source = spec::source_of(text); source.kind == "stage")
      named.push_back({std::move(key), std::string(source.name)});
  };
  for (int i = 0; i < spec.schedule().after_size(); ++i)
    add(fmt::format("schedule.after[{}]", i), spec.schedule().after(i));
  add("start.from", spec.start().from());
  for (const v1::InputSpec& input : spec.inputs())
    add(fmt::format("inputs.{}", shown(input.name())), input.from());
  return named;
}

class ChainChecker {
 public:
  explicit ChainChecker(Chain& chain) : chain_(chain) {}

  std::vector<spec::Problem> run() {
    for (const auto& [stage, job] : chain_.done)
      if (!spec::is_stage_name(stage))
        problem(stage, "", "is not a stage's name (a-z 0-9 _ -, a letter or digit first and last)");
    for (const JobToSubmit& job : chain_.stages) all_.insert(job.spec.stage().name());
    for (JobToSubmit& job : chain_.stages) check(job);
    return std::move(problems_);
  }

 private:
  void problem(const std::string& stage, const std::string& key, std::string message) {
    problems_.push_back(
        {.key = fmt::format("stages.{}{}{}", shown(stage), key.empty() ? "" : ".", key),
         .message = std::move(message)});
  }

  void check(JobToSubmit& submitted) {
    v1::JobSpec& spec = submitted.spec;
    const std::string stage = spec.stage().name();
    if (spec.stage().chain_name() != chain_.name)
      problem(stage, "stage.chain_name",
              fmt::format("'{}' is not '{}', the name of the chain's first stage",
                          shown(spec.stage().chain_name()), shown(chain_.name)));
    if (chain_.done.contains(stage))
      problem(stage, "",
              "is to be submitted, and to be done already; leave it out of one of the two");
    std::set<std::string> before;
    for (const auto& [name, job] : chain_.done) before.insert(name);
    for (const Named& named : stages_named(spec)) {
      if (const auto found = before_.find(named.stage); found != before_.end()) {
        before.insert(found->second.begin(), found->second.end());
        before.insert(named.stage);
      } else if (!chain_.done.contains(named.stage)) {
        problem(stage, named.key, missing(stage, named.stage));
      }
    }
    // From here on a stage that the spec names and that is not listed is an error.
    v1::ResolvedStage& resolved = *submitted.resolved.mutable_stage();
    for (const std::string& name : before) resolved.add_dirs()->set_stage(name);
    for (spec::Problem& found : spec::complete(spec, &submitted.resolved))
      problem(stage, found.key, std::move(found.message));
    if (!before_.emplace(stage, std::move(before)).second) problem(stage, "", "is there twice");
  }

  [[nodiscard]] std::string missing(const std::string& stage, const std::string& named) const {
    if (named == stage) return "names this stage itself; it can only come behind others";
    if (all_.contains(named))
      return fmt::format("stage '{}' comes behind this one; a stage names only those before it",
                         shown(named));
    std::vector<std::string_view> known(all_.begin(), all_.end());
    for (const auto& [name, job] : chain_.done) known.push_back(name);
    const std::string_view near = nearest(named, known);
    return fmt::format("there is no stage '{}' in this chain{}", shown(named),
                       near.empty() ? "" : fmt::format("; did you mean '{}'?", near));
  }

  Chain& chain_;
  std::set<std::string> all_;
  std::map<std::string, std::set<std::string>> before_;  // of the stages that were checked
  std::vector<spec::Problem> problems_;
};

}  // namespace

Result<JobToSubmit> complete_spec(const v1::JobSpec& given, const Fetches& fetches) {
  if (auto known = check_known(given); !known) return fail(std::move(known.error()));
  JobToSubmit job{.spec = given, .resolved = {}};
  job.spec.clear_stage();
  const auto problems = spec::complete(job.spec);
  if (!problems.empty()) return fail(ErrorCode::InvalidArgument, spec::format(problems, "spec"));
  if (auto sound = check_fetches(fetches, {job.spec.name()}); !sound)
    return fail(std::move(sound.error()));
  take_fetches(job, fetches);
  // Everything that would be refused at a start is refused now.
  if (auto launches = check_launches(job.spec); !launches)
    return fail(ErrorCode::InvalidArgument, launches.error().message);
  return job;
}

Result<Chain> complete_chain(const google::protobuf::RepeatedPtrField<v1::JobSpec>& given,
                             const google::protobuf::RepeatedPtrField<v1::DoneStage>& done,
                             const Fetches& fetches) {
  if (given.empty() || given.size() > kStagesMax || done.size() > kStagesMax)
    return fail(ErrorCode::InvalidArgument,
                fmt::format("checking the chain: it has {} stages and {} that are done (1..{} of "
                            "the first, at most as many of the others)",
                            given.size(), done.size(), kStagesMax));
  Chain chain{.name = given[0].stage().chain_name(), .stages = {}, .done = {}};
  for (const v1::DoneStage& one : done) {
    if (!chain.done.emplace(one.stage(), one.job_id()).second)
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("checking chain '{}': stage '{}' is done twice", shown(chain.name),
                              shown(one.stage())));
  }
  for (int i = 0; i < given.size(); ++i) {
    const std::string which = fmt::format(
        "stage '{}' of chain '{}': ", shown(given[i].stage().name()), shown(chain.name));
    if (auto known = check_known(given[i]); !known)
      return fail(known.error().code, which + known.error().message);
    v1::JobSpec& spec =
        chain.stages.emplace_back(JobToSubmit{.spec = given[i], .resolved = {}}).spec;
    if (!spec.has_stage())
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("checking the chain: job '{}' does not say which stage it is",
                              shown(spec.name())));
    if (spec.stage().number() == 0 || spec.stage().count() == 0) {
      spec.mutable_stage()->set_number(static_cast<std::uint32_t>(i + 1));
      spec.mutable_stage()->set_count(static_cast<std::uint32_t>(given.size()));
    }
  }
  if (const auto problems = ChainChecker(chain).run(); !problems.empty())
    return fail(ErrorCode::InvalidArgument, spec::format(problems, "spec"));
  std::set<std::string> names;
  for (const JobToSubmit& job : chain.stages) names.insert(job.spec.name());
  if (auto sound = check_fetches(fetches, names); !sound) return fail(std::move(sound.error()));
  for (JobToSubmit& job : chain.stages) {
    take_fetches(job, fetches);
    if (auto launches = check_launches(job.spec); !launches)
      return fail(ErrorCode::InvalidArgument, launches.error().message);
  }
  return chain;
}

}  // namespace muster::controller
