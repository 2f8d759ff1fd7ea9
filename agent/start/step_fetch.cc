// The steps of a start that ask the controller for something: Fetch and Secrets.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "agent/launch/disk_view.h"
#include "agent/start/start_work.h"
#include "common/engine/model/layout.h"
#include "common/io/memory_file.h"

namespace muster::agent {
namespace {

// True if an earlier start has fetched it: the ranks' files of that step, each of which was moved
// there complete.
bool lies_here(const StartWork& work, const v1::Fetch& what) {
  if (what.layout().empty() || what.only().empty()) return false;
  const auto layout = engine::make_layout(what.layout());
  if (!layout) return false;
  const InReach reach(reach_of(work.order, work.owner()));
  const engine::LinkPlan plan =
      (*layout)->resume_links(DiskView(nullptr, &reach), what.path(), what.step());
  return std::ranges::all_of(what.only(), [&](const std::string& rank) {
    return std::ranges::any_of(
        plan.links, [&](const auto& link) { return link.first.starts_with(rank + "/"); });
  });
}

}  // namespace

StepResult step_fetch(StartWork& work) {
  for (int number = 0; number < work.order.fetches_size(); ++number) {
    const v1::Fetch& what = work.order.fetches(number);
    work.progress->next_part(fetch_text(work.order, what));
    if (work.abandoned->is_set()) return {};
    if (lies_here(work, what)) continue;
    if (!work.fetch)
      return std::unexpected(
          refusal_of({ErrorCode::Unsupported,
                      fmt::format("fetching '{}' from node '{}': this agent fetches nothing",
                                  what.path(), what.node())}));
    if (auto fetched = work.fetch(work.order, number, work.owner()); !fetched)
      return std::unexpected(refusal_of(fetched.error()));
  }
  return {};
}

Result<const SecretsByName*> StartWork::secrets_given() {
  if (given) return &*given;
  if (!fetch_secrets)
    return fail(ErrorCode::Unsupported,
                "asking for the job's secrets: this agent asks for nothing");
  auto asked = fetch_secrets(order);
  if (!asked) return fail(std::move(asked.error()));
  given = *std::move(asked);
  return &*given;
}

StepResult step_secrets(StartWork& work) {
  const auto given = work.secrets_given();
  if (!given) return std::unexpected(refusal_of(given.error()));
  rundir::v1::SecretValues values;
  for (const v1::SecretVariable& one : work.order.secrets()) {
    const auto value = (*given)->find(one.secret());
    if (value == (*given)->end())
      return std::unexpected(
          refusal_of({ErrorCode::Internal,
                      fmt::format("asking for the job's secrets: the answer has no secret '{}'",
                                  one.secret())}));
    values.add_values(value->second);
  }
  auto kept = io::MemoryFile::make(values.SerializeAsString());
  if (!kept)
    return std::unexpected(
        refusal_of({ErrorCode::Io, "keeping the job's secrets: " + kept.error().message}));
  work.secrets = std::move(*kept).release();
  return {};
}

}  // namespace muster::agent
