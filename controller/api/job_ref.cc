#include "controller/api/job_ref.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <set>
#include <vector>

#include "controller/api/chain_view.h"
#include "controller/api/job_id.h"
#include "controller/core/chains/chains.h"

namespace muster::controller {
namespace {

bool has_id_form(const std::string& text) {
  return text.size() == kJobIdLength && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z');
         });
}

JobRef stage_of(const core::Ledger& ledger, const JobId& chain) {
  JobRef ref{.id = stage_that_matters(ledger, chain), .chain = chain};
  ref.archived = !ledger.jobs.contains(ref.id);
  return ref;
}

constexpr std::size_t kEndLeast = 4;  // characters of an id: as many as are random
constexpr std::size_t kNamedMost = 4;

template <class Map>
void add_with_prefix(const Map& map, const std::string& prefix, bool archived,
                     std::vector<JobRef>& found) {
  for (auto at = map.lower_bound(JobId(prefix));
       at != map.end() && at->first.str().starts_with(prefix) && found.size() < kNamedMost; ++at) {
    found.push_back({.id = at->first, .archived = archived});
  }
}

template <class Map>
void add_with_end(const Map& map, const std::string& end, bool archived,
                  std::vector<JobRef>& found) {
  for (auto at = map.rbegin(); at != map.rend() && found.size() < kNamedMost; ++at) {
    if (at->first.str().ends_with(end)) found.push_back({.id = at->first, .archived = archived});
  }
}

Error ambiguous(const std::string& doing, std::string_view part, const std::vector<JobRef>& found) {
  std::string some;
  for (const JobRef& one : found) some += (some.empty() ? "'" : ", '") + one.id.str() + "'";
  return {ErrorCode::Conflict,
          fmt::format("{}: the {} is ambiguous ({}); give more of the id", doing, part, some)};
}

// Names that begin with `prefix`: of what has not ended, else of all. If a chain is among them, its
// name replaces those of its stages.
std::set<std::string> names_beginning(const core::Ledger& ledger, const std::string& prefix) {
  std::set<std::string> live, ended;
  const auto add = [&](bool is_live, const std::string& name) {
    if (name.starts_with(prefix)) (is_live ? live : ended).insert(name);
  };
  for (const auto& [id, job] : ledger.jobs) add(!core::is_final(job.phase), job.spec.name());
  for (const auto& [id, stone] : ledger.tombstones) add(false, stone.name);
  for (const auto& [name, chain] : ledger.indexes.chain_names) {
    if (!name.starts_with(prefix)) continue;
    std::erase_if(live, [&](const std::string& one) { return one.starts_with(name + "."); });
    std::erase_if(ended, [&](const std::string& one) { return one.starts_with(name + "."); });
    add(is_live_chain(ledger, chain), name);
  }
  return live.empty() ? ended : live;
}

std::string some_of(const std::set<std::string>& names) {
  std::string some;
  std::size_t count = 0;
  for (const std::string& name : names) {
    if (++count > kNamedMost) return some + fmt::format(" and {} more", names.size() - kNamedMost);
    some += (some.empty() ? "'" : ", '") + name + "'";
  }
  return some;
}

constexpr std::string_view kChainMark = "chain:";

Result<JobRef> resolve_chain(const core::Ledger& ledger, const std::string& id,
                             const std::string& doing) {
  if (const JobId chain = core::chain_of(ledger, JobId(id)); !chain.empty())
    return stage_of(ledger, chain);
  std::vector<JobId> found;
  for (auto at = ledger.indexes.chains.lower_bound(JobId(id));
       !id.empty() && at != ledger.indexes.chains.end() && at->first.str().starts_with(id) &&
       found.size() < 2;
       ++at)
    found.push_back(at->first);
  if (found.size() == 1) return stage_of(ledger, found.front());
  if (!found.empty())
    return fail(ErrorCode::Conflict,
                fmt::format("{}: the prefix is ambiguous ('{}', '{}'); give more of the id", doing,
                            found[0].str(), found[1].str()));
  return fail(ErrorCode::NotFound,
              doing +
                  ": no chain has a job of this id; 'muster ps -a' lists the jobs, and what ended "
                  "more than 7 days ago is shown by their own ids alone");
}

}  // namespace

Result<JobRef> resolve_job(const core::Ledger& ledger, const std::string& text, RefFor use) {
  const std::string doing = "finding job '" + text + "'";
  if (text.empty())
    return fail(ErrorCode::InvalidArgument, "finding a job: no id, name or '@last' was given");
  if (text == "@last") {
    const bool live = !ledger.jobs.empty();
    const bool gone = !ledger.tombstones.empty();
    if (!live && !gone) return fail(ErrorCode::NotFound, doing + ": no job was submitted yet");
    if (!live || (gone && ledger.tombstones.rbegin()->first > ledger.jobs.rbegin()->first))
      return JobRef{.id = ledger.tombstones.rbegin()->first, .archived = true};
    return JobRef{.id = ledger.jobs.rbegin()->first};
  }
  if (text.starts_with(kChainMark))
    return resolve_chain(ledger, text.substr(kChainMark.size()),
                         "finding chain '" + text.substr(kChainMark.size()) + "'");
  const JobId id(text);
  if (ledger.jobs.contains(id)) return JobRef{.id = id};
  if (ledger.tombstones.contains(id)) return JobRef{.id = id, .archived = true};
  if (const auto live = ledger.indexes.live_names.find(text);
      live != ledger.indexes.live_names.end())
    return JobRef{.id = live->second};
  const auto chain = ledger.indexes.chain_names.find(text);
  const bool chained = chain != ledger.indexes.chain_names.end();
  if (chained && is_live_chain(ledger, chain->second)) return stage_of(ledger, chain->second);
  std::optional<JobRef> named;
  for (const auto& [job, record] : std::views::reverse(ledger.jobs)) {
    if (record.spec.name() != text) continue;
    named = JobRef{.id = job};
    break;
  }
  for (const auto& [job, stone] : std::views::reverse(ledger.tombstones)) {
    if (named && named->id > job) break;
    if (stone.name != text) continue;
    named = JobRef{.id = job, .archived = true};
    break;
  }
  if (chained && (!named || chain->second > named->id)) return stage_of(ledger, chain->second);
  if (named) return *named;
  std::vector<JobRef> found;
  add_with_prefix(ledger.jobs, text, false, found);
  add_with_prefix(ledger.tombstones, text, true, found);
  if (found.size() == 1) return found.front();
  if (found.size() > 1) return fail(ambiguous(doing, "prefix", found));
  if (text.size() >= kEndLeast) {
    add_with_end(ledger.jobs, text, false, found);
    add_with_end(ledger.tombstones, text, true, found);
  }
  if (found.size() == 1) return found.front();
  if (found.size() > 1) return fail(ambiguous(doing, "end", found));
  // The job may be older than every tombstone.
  if (has_id_form(text)) return JobRef{.id = id, .archived = true};
  const std::set<std::string> names = names_beginning(ledger, text);
  if (use == RefFor::Acting && !names.empty())
    return fail(ErrorCode::NotFound,
                fmt::format("{}: no job has this id or name; write the whole name of {}", doing,
                            some_of(names)));
  if (names.size() == 1) return resolve_job(ledger, *names.begin());
  if (names.size() > 1)
    return fail(ErrorCode::Conflict,
                fmt::format("{}: several names begin so ({}); give more of the name", doing,
                            some_of(names)));
  return fail(ErrorCode::NotFound,
              doing + ": no job has this id, prefix or name; 'muster ps -a' lists them");
}

}  // namespace muster::controller
