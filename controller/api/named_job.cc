#include "controller/api/named_job.h"

#include <fmt/format.h>

#include <memory>
#include <ranges>
#include <utility>

#include "common/engine/model/engine.h"
#include "controller/api/archive_read.h"
#include "controller/api/job_ref.h"
#include "controller/core/chains/start_point.h"

namespace muster::controller {
namespace {

constexpr std::size_t kNewestNamed = 4;

// Added to the error for a job that does not exist.
std::string newest_jobs(const core::Ledger& ledger) {
  std::string text;
  for (const auto& [id, job] : ledger.jobs | std::views::reverse | std::views::take(kNewestNamed))
    text += fmt::format("{}'{}' ({})", text.empty() ? "; the newest are " : ", ", job.spec.name(),
                        id.str());
  return text;
}

Error at(const std::string& place, const Error& error, const std::string& more = "") {
  return {error.code, fmt::format("{}: {}{}", place, error.message, more)};
}

Result<void> check_whole(const JobAccess& access, const WantedJob& wanted,
                         const core::JobRecord& job) {
  if (wanted.only_end) return {};
  auto allowed = access.check(job.id.str(), job.owner);
  if (!allowed) return fail(at(wanted.place, allowed.error()));
  return {};
}

// Reads the jobs that are only in the archive, one after another. Each is a separate read, so that
// reads of other requests can run in between.
struct ArchiveLookup {
  Edge& edge;
  JobAccess access;
  NamedJobs found;
  std::vector<std::pair<WantedJob, JobId>> left;  // from the last to the first
  std::move_only_function<void(Result<NamedJobs>)> done;
};

void continue_lookup(std::unique_ptr<ArchiveLookup> lookup) {
  if (lookup->left.empty()) return lookup->done(std::move(lookup->found));
  const auto [wanted, id] = lookup->left.back();
  lookup->left.pop_back();
  Shell& shell = lookup->edge.shell;
  read_archived(shell, id, false,
                [lookup = std::move(lookup), wanted](Result<ArchivedRecord> record) mutable {
                  if (!record) return lookup->done(fail(at(wanted.place, record.error())));
                  if (auto allowed = check_whole(lookup->access, wanted, record->job); !allowed)
                    return lookup->done(fail(std::move(allowed.error())));
                  NamedJob job = named_job(record->job, lookup->edge.cluster_out);
                  job.archived = true;
                  lookup->found[wanted.text] = std::move(job);
                  continue_lookup(std::move(lookup));
                });
}

}  // namespace

NamedJob named_job(const core::JobRecord& job, const std::string& cluster_out) {
  NamedJob named{.id = job.id,
                 .name = job.spec.name(),
                 .phase = job.phase,
                 .layout = job.spec.checkpoint().layout(),
                 .whole = job.checkpoints};
  named.out = engine::out_dir(job.spec, job.resolved, job.id.str(), cluster_out);
  named.checkpoints =
      engine::checkpoint_dir(job.spec, named.out).value_or(named.out + "/checkpoints");
  for (const core::CheckpointRecord& one : job.checkpoints)
    if (const core::AttemptRecord* attempt = job.attempt(one.attempt))
      named.owned.try_emplace(one.attempt, core::owned_shards(job, *attempt));
  return named;
}

void find_named(Edge& edge, const JobAccess& access, const View& view,
                const std::vector<WantedJob>& wanted,
                std::move_only_function<void(Result<NamedJobs>)> done) {
  edge.shell.strand().assert_on();
  auto lookup = std::make_unique<ArchiveLookup>(ArchiveLookup{
      .edge = edge, .access = access, .found = {}, .left = {}, .done = std::move(done)});
  for (const WantedJob& one : wanted) {
    if (lookup->found.contains(one.text) && one.only_end) continue;
    const auto ref = resolve_job(view.ledger, one.text);
    if (!ref)
      return lookup->done(
          fail(at(one.place, ref.error(),
                  ref.error().code == ErrorCode::NotFound ? newest_jobs(view.ledger) : "")));
    if (!ref->chain.empty()) {
      return lookup->done(
          fail(ErrorCode::Conflict, fmt::format("{}: '{}' is a chain; name one of its stages, as "
                                                "{}.STAGE (`muster show {}` lists them)",
                                                one.place, one.text, one.text, one.text)));
    }
    const auto stone = view.ledger.tombstones.find(ref->id);
    if (const auto job = view.ledger.jobs.find(ref->id); job != view.ledger.jobs.end()) {
      if (auto allowed = check_whole(access, one, job->second); !allowed)
        return lookup->done(fail(std::move(allowed.error())));
      lookup->found[one.text] =
          one.only_end
              ? NamedJob{.id = ref->id, .name = job->second.spec.name(), .phase = job->second.phase}
              : named_job(job->second, edge.cluster_out);
    } else if (one.only_end && stone != view.ledger.tombstones.end()) {
      lookup->found[one.text] = {.id = ref->id,
                                 .name = stone->second.name,
                                 .phase = stone->second.phase,
                                 .archived = true};
    } else {
      lookup->left.emplace(lookup->left.begin(), one, ref->id);
    }
  }
  continue_lookup(std::move(lookup));
}

}  // namespace muster::controller
