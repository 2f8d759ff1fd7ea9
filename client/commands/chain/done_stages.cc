#include "client/commands/chain/done_stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "client/commands/chain/stage_keys.h"
#include "client/render/text.h"
#include "common/base/time.h"

namespace muster::client {
namespace {

// Returns the path of a stage's `creates`, as far as it is known before the job has an id.
std::string known_place(const v1::JobSpec& spec) {
  std::string_view creates = spec.stage().creates();
  if (creates.starts_with('/'))
    return creates.find("${") == std::string_view::npos ? std::string(creates) : "";
  const std::string& out = spec.output_dir();
  if (creates.starts_with("${out}/")) creates.remove_prefix(std::string_view("${out}/").size());
  if (creates.empty() || !out.starts_with('/') || out.find("${") != std::string::npos ||
      creates.find("${") != std::string_view::npos)
    return {};
  return fmt::format("{}/{}", out, creates);
}

// For the stages that run. The program decides whether it makes the file anew; a program that keeps
// a complete file is fine. So this is a note and not a refusal.
void find_leftovers(const std::vector<v1::JobSpec>& stages, DoneStages& done) {
  for (const v1::JobSpec& spec : stages) {
    const std::string& stage = spec.stage().name();
    const std::string place = known_place(spec);
    std::error_code error;
    if (place.empty() || done.found.contains(stage) || !std::filesystem::exists(place, error))
      continue;
    done.leftover[stage] = place;
    done.notes.push_back(fmt::format(
        "stage '{}' runs, though '{}' is there: no job of the stage as it is now has made it. What "
        "is there when it ends counts as made; remove it first where an old one must not",
        stage, place));
  }
}

}  // namespace

Result<DoneStages> find_done_stages(const Session& session, std::vector<v1::JobSpec>& stages,
                                    Interrupt* interrupt) {
  DoneStages done;
  done.notes = set_stage_keys(stages, [&](const std::string& job) -> std::string {
    v1::GetJobRequest request;
    request.set_job(job);
    const auto answer = ask(session, &Jobs::GetJob, request, interrupt);
    return answer ? answer->job().id() : "";  // the submission reports a missing job
  });
  v1::FindStagesRequest request;
  for (const v1::JobSpec& spec : stages) {
    if (spec.stage().key().empty()) continue;
    v1::WantedStage& wanted = *request.add_stages();
    wanted.set_job_name(spec.name());
    wanted.set_key(spec.stage().key());
  }
  if (request.stages().empty()) {
    find_leftovers(stages, done);
    return done;
  }
  const auto answer = ask(session, &Jobs::FindStages, request, interrupt);
  if (!answer) return fail(answer.error());
  std::map<std::string, v1::FoundStage> there;  // by the job's name
  for (const v1::FoundStage& found : answer->stages()) there[found.job_name()] = found;
  const WallTime now = system_clock().now().wall;
  for (const v1::JobSpec& spec : stages) {
    const auto found = there.find(spec.name());
    const std::vector<std::string> named = stages_named(spec);
    if (found == there.end() || !std::ranges::all_of(named, [&](const std::string& name) {
          return done.found.contains(name);
        }))
      continue;
    const std::string& stage = spec.stage().name();
    std::error_code error;
    if (!std::filesystem::exists(found->second.creates(), error)) {
      done.notes.push_back(
          fmt::format("stage '{}' runs again: '{}', which job {} had made, is not there any more",
                      stage, found->second.creates(), found->second.job_id()));
      continue;
    }
    const std::string age =
        found->second.has_ended_at()
            ? fmt::format(" of {}", render::ago_text(found->second.ended_at(), now))
            : "";
    done.notes.push_back(fmt::format("stage '{}' is done: job {}{} made '{}'", stage,
                                     found->second.job_id(), age, found->second.creates()));
    done.found[stage] = found->second;
  }
  find_leftovers(stages, done);
  return done;
}

}  // namespace muster::client
