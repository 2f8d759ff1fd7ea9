#include "controller/api/job_page.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "controller/api/bounded.h"
#include "controller/api/convert.h"
#include "controller/shell/replay.h"

namespace muster::controller {
namespace {

constexpr std::size_t kWhyBytesMost = 256;
// Archived jobs in memory at once: the rows of one job may have megabytes.
constexpr std::size_t kStride = 16;

}  // namespace

void JobPage::add(v1::Job job) {
  bytes_ += job.ByteSizeLong();
  jobs_.push_back(std::move(job));
}

void JobPage::explain(const std::map<JobId, std::string>& why) {
  for (v1::Job& job : jobs_)
    if (const auto reason = why.find(JobId(job.id())); reason != why.end())
      job.set_waits_for(bounded(reason->second, kWhyBytesMost));
}

// Behind the end of a page that was cut, nothing is known.
JobPage JobPage::merged(JobPage live, JobPage archived) {
  JobPage page(live.size_);
  auto a = live.jobs_.begin(), b = archived.jobs_.begin();
  while (!page.full() && (a != live.jobs_.end() || b != archived.jobs_.end())) {
    if ((a == live.jobs_.end() && live.more) || (b == archived.jobs_.end() && archived.more)) break;
    const bool from_live =
        b == archived.jobs_.end() || (a != live.jobs_.end() && a->id() >= b->id());
    if (from_live && b != archived.jobs_.end() && a->id() == b->id()) ++b;
    page.add(std::move(from_live ? *a++ : *b++));
  }
  page.more = live.more || archived.more || a != live.jobs_.end() || b != archived.jobs_.end();
  return page;
}

void JobPage::fill(v1::ListJobsResponse& response) {
  if (more && !jobs_.empty()) response.set_next_page_token(jobs_.back().id());
  for (v1::Job& job : jobs_) *response.add_jobs() = std::move(job);
}

Result<JobPage> archived_page(journal::Journal& journal, const std::string& page_token,
                              std::size_t size, const std::string& cluster_out) {
  JobPage page(size);
  std::optional<JobId> before;
  if (!page_token.empty()) before = JobId(page_token);
  while (!page.full()) {
    auto archived = journal.archived(before, kStride);
    if (!archived) return fail(std::move(archived.error()));
    for (const journal::ArchivedJob& one : *archived) {
      before = one.job;
      if (page.full()) break;
      if (auto record = refold(one))
        page.add(to_v1(*record, core::Presence(), cluster_out, Detail::List));
    }
    if (archived->size() < kStride) break;
  }
  page.more = page.full();
  return page;
}

}  // namespace muster::controller
