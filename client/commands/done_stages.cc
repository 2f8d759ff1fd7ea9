#include "client/commands/done_stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "client/commands/stage_keys.h"
#include "client/render/text.h"
#include "common/base/time.h"

namespace muster::client {

Result<DoneStages> find_done_stages(const Session& session, std::vector<v1::JobSpec>& stages, Interrupt* interrupt) {
  DoneStages done;
  done.told = set_stage_keys(stages, [&](const std::string& job) -> std::string {
    v1::GetJobRequest request;
    request.set_job(job);
    const auto answer = ask(session, &Jobs::GetJob, request, interrupt);
    return answer ? answer->job().id() : "";  // one that is not there is the submission's error
  });
  v1::FindStagesRequest request;
  for (const v1::JobSpec& spec : stages) {
    if (spec.stage().key().empty()) continue;
    v1::WantedStage& wanted = *request.add_stages();
    wanted.set_job_name(spec.name());
    wanted.set_key(spec.stage().key());
  }
  if (request.stages().empty()) return done;
  const auto answer = ask(session, &Jobs::FindStages, request, interrupt);
  if (!answer) return fail(answer.error());
  std::map<std::string, v1::FoundStage> there;  // by the job's name
  for (const v1::FoundStage& found : answer->stages()) there[found.job_name()] = found;
  const WallTime now = system_clock().now().wall;
  for (const v1::JobSpec& spec : stages) {
    const auto found = there.find(spec.name());
    const std::vector<std::string> named = stages_named(spec);
    if (found == there.end() || !std::ranges::all_of(named, [&](const std::string& name) { return done.found.contains(name); })) continue;
    const std::string& stage = spec.stage().name();
    std::error_code error;
    if (!std::filesystem::exists(found->second.creates(), error)) {
      done.told.push_back(
          fmt::format("stage '{}' runs again: '{}', which job {} had made, is not there any more", stage, found->second.creates(), found->second.job_id()));
      continue;
    }
    const std::string age = found->second.has_ended_at() ? fmt::format(" of {}", render::ago_text(found->second.ended_at(), now)) : "";
    done.told.push_back(fmt::format("stage '{}' is done: job {}{} made '{}'", stage, found->second.job_id(), age, found->second.creates()));
    done.found[stage] = found->second;
  }
  return done;
}

}  // namespace muster::client
