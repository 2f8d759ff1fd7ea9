#include "common/engine/model/start.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "common/engine/model/layout.h"
#include "common/engine/model/template.h"
#include "common/engine/model/training_end.h"
#include "common/engine/ranktable/words.h"
#include "common/text/words.h"

namespace muster::engine {
namespace {

using ranktable::shown;

// A path of the greatest possible length.
std::string made_up(std::string_view below) {
  return fmt::format("/{}/{}", std::string(1000, 'o'), below);
}

bool has_start_dir(std::string_view text) {
  if (text.find("${start.dir}") == std::string_view::npos) return false;
  const auto parsed = Template::parse(text);
  return parsed && std::ranges::count(parsed->names(), "start.dir") > 0;
}

// "; did you mean 'b'? (inputs: a, b)"
std::string which_there_are(std::string_view asked, const std::vector<std::string_view>& known,
                            std::string_view what) {
  if (known.empty()) return "";
  const std::string_view near = nearest(asked, known);
  return fmt::format("{} ({}: {})", near.empty() ? "" : fmt::format("; did you mean '{}'?", near),
                     what, fmt::join(known, ", "));
}

void check_resume(const v1::JobSpec& spec, Problems& problems) {
  if (!asks_for_training(spec))
    problems.push_back(
        {.key = "start.as",
         .message =
             "resume is for modes that train: the others go on from nothing; write weights"});
  if (starts_from_job(spec)) return;
  if (std::string wrong = resume_problem(spec.start().from()); !wrong.empty())
    problems.push_back(
        {.key = "start.from", .message = fmt::format("{}; or write start.as: weights", wrong)});
}

void check_weights(const v1::JobSpec& spec, Problems& problems) {
  const Engine* engine = find_engine(spec.engine());
  if (engine == nullptr || names_start_dir(spec)) return;
  if (engine->loads_start != nullptr && engine->loads_start(spec)) return;
  problems.push_back(
      {.key = "start.from",
       .message = engine->loads_start == nullptr
                      ? fmt::format("nothing would read the weights: of engine {} muster does not "
                                    "know which argument names them; put ${{start.dir}} where the "
                                    "program wants its directory (launch.args, launch.run, "
                                    "runtime.env)",
                                    engine->name)
                      : fmt::format("nothing would read the weights: the command line is none that "
                                    "engine {} knows to give them to; put ${{start.dir}} where the "
                                    "program wants its directory",
                                    engine->name)});
}

}  // namespace

bool names_start_dir(const v1::JobSpec& spec) {
  const v1::LaunchSpec& launch = spec.launch();
  const auto named = [](const std::string& text) { return has_start_dir(text); };
  const auto value_named = [](const auto& entry) { return has_start_dir(entry.second); };
  if (std::ranges::any_of(launch.run(), named) || std::ranges::any_of(launch.args(), named) ||
      has_start_dir(launch.cwd()))
    return true;
  if (std::ranges::any_of(spec.runtime().env(), value_named) ||
      std::ranges::any_of(launch.vars(), value_named))
    return true;
  return std::ranges::any_of(launch.patch(), [](const v1::ConfigPatch& file) {
    return std::ranges::any_of(file.changes(),
                               [](const auto& change) { return has_start_dir(change.value()); });
  });
}

bool has_start(const v1::JobSpec& spec) { return !spec.start().from().empty(); }

bool starts_as_weights(const v1::JobSpec& spec) {
  return has_start(spec) && spec.start().as() != v1::START_AS_RESUME &&
         spec.start().as() != v1::START_AS_RESUME_OR_SCRATCH;
}

bool starts_from_job(const v1::JobSpec& spec) {
  const std::string& from = spec.start().from();
  return (from.starts_with("job:") || from.starts_with("stage:")) &&
         from.find('/') == std::string::npos;
}

void check_start(const v1::JobSpec& spec, Problems& problems) {
  if (!has_start(spec)) return;
  if (starts_as_weights(spec))
    check_weights(spec, problems);
  else
    check_resume(spec, problems);
}

std::string input_path(const LaunchRequest& request, const v1::InputSpec& input) {
  if (input.from().starts_with('/')) return input.from();
  if (request.resolved == nullptr) return {};
  const auto known = request.resolved->inputs().find(input.name());
  return known == request.resolved->inputs().end() ? std::string() : known->second;
}

Result<std::string> input_value(const LaunchRequest& request, std::string_view input) {
  const auto& inputs = request.spec->inputs();
  const auto found = std::ranges::find(
      inputs, input, [](const v1::InputSpec& one) -> std::string_view { return one.name(); });
  if (found == inputs.end()) {
    std::vector<std::string_view> known;
    for (const v1::InputSpec& one : inputs) known.push_back(one.name());
    return fail(ErrorCode::InvalidArgument,
                fmt::format("'${{inputs.{}}}' is no input of this spec{}", input,
                            inputs.empty() ? ": it has none; name the files below inputs"
                                           : which_there_are(input, known, "inputs")));
  }
  if (const std::string path = input_path(request, *found); !path.empty()) return path;
  if (request.unresolved) return made_up(found->from());
  return fail(ErrorCode::InvalidArgument,
              fmt::format("'${{inputs.{}}}' has no value: '{}' was never looked up", input,
                          shown(found->from())));
}

Result<std::string> stage_value(const LaunchRequest& request, std::string_view rest) {
  const std::string_view name = rest.substr(0, rest.rfind('.'));
  if (!request.spec->has_stage())
    return fail(ErrorCode::InvalidArgument,
                fmt::format("'${{stages.{}}}' names a stage, and this job is in no chain", rest));
  std::vector<std::string_view> known;
  if (request.resolved != nullptr && request.resolved->has_stage()) {
    for (const v1::StageDir& dir : request.resolved->stage().dirs()) {
      known.push_back(dir.stage());
      if (dir.stage() != name) continue;
      if (!dir.out().empty()) return dir.out();
      if (request.unresolved) return made_up("");
    }
  } else if (request.unresolved) {
    return made_up("");  // every stage may be an earlier one
  }
  return fail(ErrorCode::InvalidArgument,
              fmt::format("'${{stages.{}}}': there is no stage '{}' before this one{}; name it in "
                          "schedule.after, or in that of one before",
                          rest, name, which_there_are(name, known, "before it")));
}

Result<std::string> start_value(const LaunchRequest& request) {
  if (!has_start(*request.spec))
    return fail(ErrorCode::InvalidArgument,
                "'${start.dir}' has no value: the spec names nothing to start from (start.from)");
  if (!starts_as_weights(*request.spec))
    return fail(ErrorCode::InvalidArgument,
                "'${start.dir}' is for start.as: weights; what a job goes on from is "
                "'${resume.dir}', and belongs in resume.args");
  return request.start_dir;
}

}  // namespace muster::engine
