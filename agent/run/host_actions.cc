// Carries out what reconcile() requests, on disk and on processes. A crash may interrupt each
// action at any line: the next start sees how far it came.
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "agent/run/host_impl.h"
#include "agent/run/state_dir.h"
#include "common/io/file.h"
#include "common/process/cgroup.h"

namespace muster::agent {

void Host::Impl::act(const SignalStop& stop) {
  Entry* entry = find(stop.run);
  if (entry == nullptr) return;
  const auto sent = entry->worker.stop(entry->view);
  if (sent) {
    if (*sent) entry->worker.update(entry->view, entry->seen, entry->lease.until());
    return;
  }
  if (sent.error().code != ErrorCode::NotFound)
    trouble(fmt::format("stopping run '{}': {}", name_of(stop.run), sent.error().message));
  refresh(stop.run, *entry, true);
}

std::string Host::Impl::process_tag_of(const RunKey& run, const Entry& entry) const {
  if (entry.view.launch() != nullptr && !entry.view.launch()->process_tag().empty())
    return entry.view.launch()->process_tag();
  return rundir::process_tag(options.cluster, run.first, run.second, options.node);
}

// Returns the group's path; empty: the run has none. There may be no launch record: the state
// directory was restored from an older copy, or newly made. Then this is the group that a run of
// this name would have had here, or had with an earlier instance. A base belongs to one instance
// only.
std::string Host::Impl::group_of(const RunKey& run, const Entry& entry) const {
  if (entry.view.launch() != nullptr) return entry.view.launch()->cgroup();
  if (!options.cgroup_base) return {};
  const std::filesystem::path own = *options.cgroup_base / name_of(run);
  if (::access(own.c_str(), F_OK) == 0) return own.string();
  for (const std::filesystem::path& base :
       earlier_bases(*options.cgroup_base, options.layout, options.self.instance)) {
    if (::access((base / name_of(run)).c_str(), F_OK) == 0) return (base / name_of(run)).string();
  }
  return own.string();
}

void Host::Impl::act(const SweepRun& wanted) {
  Entry* entry = find(wanted.run);
  if (entry == nullptr || entry->sweep || entry->seen.swept) return;
  const RunView& view = entry->view;
  RunSweep::Options sweep{.name = name_of(wanted.run),
                          .process_tag = process_tag_of(wanted.run, *entry),
                          .users = {.known = view.launch() != nullptr},
                          .group = group_of(wanted.run, *entry),
                          .since = view.claimed_since(),
                          .family = {},
                          .container = {}};
  if (const auto* launch = view.launch()) {
    sweep.family = process::Family{.leaders = {view.leaders().begin(), view.leaders().end()},
                                   .since = sweep.since};
    if (launch->set_user()) sweep.family->user = launch->uid();
    if (launch->set_user()) sweep.users.run = launch->uid();
    if (launch->has_container()) sweep.container = launch->container();
  }
  entry->sweep = std::make_unique<RunSweep>(
      loop, std::move(sweep),
      RunSweep::Callbacks{
          .ended = [this, run = wanted.run, why = wanted.why](bool done) { swept(run, why, done); },
          .trouble = [this](const std::string& text) { trouble(text); }});
  entry->sweep->begin();
}

void Host::Impl::swept(const RunKey& run, v1::SweptWhy why, bool done) {
  Entry* entry = find(run);
  if (entry == nullptr) return;
  const std::unique_ptr<RunSweep> ended = std::move(entry->sweep);
  // after an error reconcile() requests the sweep again
  if (done) mark_swept(run, *entry, why);
}

void Host::Impl::act(const MarkSwept& mark) {
  Entry* entry = find(mark.run);
  if (entry == nullptr || entry->seen.swept) return;
  mark_swept(mark.run, *entry, mark.why);
}

void Host::Impl::mark_swept(const RunKey& run, Entry& entry, v1::SweptWhy why) {
  rundir::v1::Mark mark = new_mark();
  mark.mutable_swept()->set_why(why);
  remove_group(run, entry);
  if (remember(run, entry, {mark})) return;
  // A worker that cannot record an end ends itself, which is not its own fault.
  const int refused = write_error(options.layout);
  entry.unwritten.swept = {
      .why = why == v1::SWEPT_WHY_WORKER_DIED && (refused == EROFS || refused == EIO)
                 ? v1::SWEPT_WHY_DISK_REFUSED_WRITES
                 : why,
      .at = options.clock->now().wall};
  overlay(entry);
  tell(run, entry);
}

void Host::Impl::act(const ForgetRun& forget) {
  loop.assert_on();
  Entry* entry = find(forget.run);
  if (entry == nullptr) return;
  if (options.watch != nullptr) entry->reporting.close(*options.watch, forget.run);
  // The rename comes before the removal. A crash while gigabytes are being removed must not leave
  // an incomplete run directory that looks unclaimed.
  // A link in its place is renamed itself.
  const std::filesystem::path from = entry->view.layout().root();
  const std::string to = kGonePrefix + from.filename().string();
  std::error_code error;
  std::filesystem::rename(from, from.parent_path() / to, error);
  if (error && error != std::errc::no_such_file_or_directory)
    trouble(fmt::format("removing run '{}': {}", name_of(forget.run), error.message()));
  const RunKey run = forget.run;
  end_start(*entry);
  // The worker wrote its last event and may still be exiting. If its entry is removed before it is
  // reaped, a zombie stays.
  if (entry->worker.has_child()) leave(std::move(entries.at(run)));
  entries.erase(run);
  all_seen.erase(run);
  if (!error) dispose(to);
}

}  // namespace muster::agent
