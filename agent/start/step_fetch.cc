// The steps of a start that ask the controller for something: Fetch and Secrets.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "agent/launch/disk_view.h"
#include "agent/start/start_work.h"
#include "common/engine/model/layout.h"
#include "common/io/file.h"

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

// A file that is on no disk and that no path names, with these bytes, to be read from its
// beginning. Io: the node's trouble.
Result<io::UniqueFd> in_memory(std::string_view bytes) {
  constexpr const char* kDoing = "keeping the job's secrets in memory";
  constexpr unsigned kNoExec = 0x8;  // MFD_NOEXEC_SEAL (Linux 6.3), which some hosts demand
  io::UniqueFd fd(::memfd_create("secrets", MFD_CLOEXEC | kNoExec));
  if (!fd && errno == EINVAL) fd.reset(::memfd_create("secrets", MFD_CLOEXEC));
  std::size_t written = 0;
  int error = fd ? io::write_all(fd.get(), bytes, written) : errno;
  if (error == 0 && ::lseek(fd.get(), 0, SEEK_SET) != 0) error = errno;
  if (error != 0) {
    auto failed = fail_errno(kDoing, error);
    failed.error().code = ErrorCode::Io;
    return failed;
  }
  return fd;
}

}  // namespace

StepResult step_fetch(StartWork& work) {
  for (int number = 0; number < work.order.fetches_size(); ++number) {
    const v1::Fetch& what = work.order.fetches(number);
    work.progress->next_part(fetch_text(work.order, what));
    if (work.abandoned && work.abandoned()) return {};
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

StepResult step_secrets(StartWork& work) {
  if (!work.fetch_secrets)
    return std::unexpected(refusal_of(
        {ErrorCode::Unsupported, "asking for the job's secrets: this agent asks for nothing"}));
  auto values = work.fetch_secrets(work.order);
  if (!values) return std::unexpected(refusal_of(values.error()));
  auto kept = in_memory(values->SerializeAsString());
  if (!kept) return std::unexpected(refusal_of(kept.error()));
  work.secrets = *std::move(kept);
  return {};
}

}  // namespace muster::agent
