#include "controller/api/resolve_after.h"

#include <fmt/format.h>

#include <memory>
#include <ranges>
#include <utility>
#include <vector>

#include "common/spec/values.h"
#include "controller/api/archive_read.h"
#include "controller/api/job_ref.h"

namespace muster::controller {
namespace {

constexpr std::size_t kNewestNamed = 4;

// For whoever named one that there is not.
std::string newest_jobs(const core::Ledger& ledger) {
  std::string text;
  for (const auto& [id, job] : ledger.jobs | std::views::reverse | std::views::take(kNewestNamed))
    text += fmt::format("{}'{}' ({})", text.empty() ? "; the newest are " : ", ", job.spec.name(), id.str());
  return text;
}

Error of_entry(const Error& error, int entry, const std::string& more) {
  return {error.code, fmt::format("schedule.after[{}]: {}{}", entry, error.message, more)};
}

// Those that only the archive knows, one after another: each is a read of its own, between other work of the journal's thread.
struct ArchiveLook {
  Edge& edge;
  ResolvedAfter found;
  std::vector<std::pair<int, JobId>> left;  // of which entry, from the last to the first
  std::move_only_function<void(Result<ResolvedAfter>)> done;
};

void look_on(std::unique_ptr<ArchiveLook> look) {
  if (look->left.empty()) return look->done(std::move(look->found));
  const auto [entry, id] = look->left.back();
  look->left.pop_back();
  Shell& shell = look->edge.shell;
  read_archived(shell, id, false, [look = std::move(look), entry](Result<ArchivedRecord> record) mutable {
    if (!record) return look->done(fail(of_entry(record.error(), entry, "")));
    look->found.archived[record->job.id] = {.name = record->job.spec.name(), .phase = record->job.phase};
    look_on(std::move(look));
  });
}

}  // namespace

void resolve_after(Edge& edge, const View& view, v1::JobSpec spec, std::move_only_function<void(Result<ResolvedAfter>)> done) {
  auto look = std::make_unique<ArchiveLook>(ArchiveLook{.edge = edge, .found = {.spec = std::move(spec), .archived = {}}, .left = {}, .done = std::move(done)});
  auto& after = *look->found.spec.mutable_schedule()->mutable_after();
  std::map<JobId, int> seen;
  for (int i = 0; i < after.size(); ++i) {
    const auto ref = resolve_job(view.ledger, after[i]);
    if (!ref) return look->done(fail(of_entry(ref.error(), i, ref.error().code == ErrorCode::NotFound ? newest_jobs(view.ledger) : "")));
    const auto [same, fresh] = seen.emplace(ref->id, i);
    if (!fresh) {
      return look->done(fail(ErrorCode::InvalidArgument, fmt::format("schedule.after[{}]: '{}' is the same job as schedule.after[{}]: '{}' ({})", i,
                                                                     spec::shown(after[i]), same->second, spec::shown(after[same->second]), ref->id.str())));
    }
    if (const auto stone = view.ledger.tombstones.find(ref->id); stone != view.ledger.tombstones.end()) {
      look->found.archived[ref->id] = {.name = stone->second.name, .phase = stone->second.phase};
    } else if (ref->archived) {
      look->left.emplace(look->left.begin(), i, ref->id);
    }
  }
  for (const auto& [id, entry] : seen) after[entry] = id.str();
  look_on(std::move(look));
}

}  // namespace muster::controller
