#include "agent/run/run_reporting.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "agent/logs/auxiliary_log.h"

namespace muster::agent {
namespace {

constexpr Duration kEvidenceBound = std::chrono::seconds(1);
constexpr Duration kUnreadBound = std::chrono::seconds(10);
constexpr Duration kLastScanBound = std::chrono::seconds(15);
constexpr Duration kAddAgain = std::chrono::seconds(1);

bool has_success_file(const v1::RankProcess& rank) { return !rank.success_file().empty(); }

std::map<std::uint32_t, std::string> success_files(const v1::NodeLaunch& order) {
  std::map<std::uint32_t, std::string> files;
  for (const v1::RankProcess& rank : order.ranks())
    if (has_success_file(rank)) files[rank.rank()] = rank.success_file();
  return files;
}

bool is_named(const std::string& name) { return !name.empty() && name != "none"; }

bool tells_steps(const v1::Watching& watching) {
  return !watching.step_regex().empty() || is_named(watching.grammar());
}

bool success_wanted(const v1::NodeLaunch& order) {
  const v1::Watching& watching = order.watching();
  return !watching.success_regex().empty() || !watching.success_file().empty() ||
         watching.success_last_step() || std::ranges::any_of(order.ranks(), has_success_file);
}

bool failed(const ExitSeen& exit) {
  return (exit.code != 0 || exit.signal != 0) && !exit.stop_requested;
}

std::string name_of(const RunKey& run) {
  return fmt::format("{}.{}", run.first.str(), run.second.value);
}

}  // namespace

std::vector<std::string> RunReporting::update(Watch& watch, const RunKey& run, const RunView& view,
                                              const RunSeen& seen, BootTime now) {
  // nothing ever ran, or the record is damaged: no log can be named
  if (!view.order_known()) return {};
  std::vector<std::string> lines;
  if (std::string refused = add(watch, run, view, seen, now); !refused.empty())
    lines.push_back(std::move(refused));
  if (follows()) std::ranges::move(follow_script_logs(watch, run, seen), std::back_inserter(lines));
  tell_ends(watch, run, view, seen, now);
  if (seen.swept && following_ == Following::Yes) {
    following_ = Following::Swept;
    const v1::Watching& watching = view.order().watching();
    if (!watching.save_dir().empty() && is_named(watching.layout()))
      scan_until_ = now + kLastScanBound;
    watch.run_swept(run);
  }
  due_ = next(view, now);
  return lines;
}

// A lack of descriptors is temporary. An error in the order itself is permanent.
std::string RunReporting::add(Watch& watch, const RunKey& run, const RunView& view,
                              const RunSeen& seen, BootTime now) {
  if (following_ != Following::No || add_again_ > now) return {};
  const v1::NodeLaunch& order = view.order();
  auto added = watch.add(run, view.layout().root(), order.watching(), seen.ranks,
                         auxiliary_logs(order), success_files(order), view.reach());
  if (added) {
    following_ = Following::Yes;
    return {};
  }
  const Error& error = added.error();
  if (error.code == ErrorCode::InvalidArgument || error.code == ErrorCode::Unsupported) {
    following_ = Following::Refused;
  } else {
    add_again_ = now + kAddAgain;
  }
  if (!refused_.first(error.message)) return {};
  return fmt::format("watching the logs of run '{}': {}; its progress is not seen{}", name_of(run),
                     error.message,
                     following_ == Following::Refused ? "" : ", trying again until it is");
}

std::vector<std::string> RunReporting::follow_script_logs(Watch& watch, const RunKey& run,
                                                          const RunSeen& seen) {
  std::vector<std::string> lines;
  for (; script_logs_ < seen.script_logs.size(); ++script_logs_) {
    const ScriptLogSeen& log = seen.script_logs[script_logs_];
    if (auto follows = watch.follow(run, script_log(log)); !follows)
      lines.push_back(fmt::format("following the log of rank {} of run '{}': {}; it is left out",
                                  log.rank, name_of(run), follows.error().message));
  }
  return lines;
}

ExitWait RunReporting::wait_for(const ExitSeen& exit, const v1::NodeLaunch& order, BootTime now,
                                std::uint64_t read) const {
  if (failed(exit)) return follows() ? ExitWait::at_most(now, kEvidenceBound) : ExitWait();
  if (exit.stop_requested) return {};
  if (success_wanted(order)) return ExitWait::while_read(now, kUnreadBound, read);
  if (follows() && tells_steps(order.watching())) return ExitWait::at_most(now, kEvidenceBound);
  return {};
}

void RunReporting::tell_ends(Watch& watch, const RunKey& run, const RunView& view,
                             const RunSeen& seen, BootTime now) {
  for (const auto& [rank, exit] : seen.exits) {
    const bool known = view.marked_end(rank);
    const auto [wait, first] = exits_.try_emplace(rank);
    if (first) {
      if (!known && following_ != Following::Refused)
        wait->second = wait_for(exit, view.order(), now, watch.bytes_read(run));
    } else if (wait->second.until() <= now && follows() && !known) {
      wait->second.check(now, watch.bytes_read(run));
    }
    if (follows() && ended_.insert(rank).second) watch.rank_ended(run, RankNo(rank), failed(exit));
  }
}

void RunReporting::end_read(std::uint32_t rank) { exits_[rank] = ExitWait(); }

void RunReporting::last_scan() { scan_until_ = {}; }

void RunReporting::close(Watch& watch, const RunKey& run) {
  if (follows()) watch.remove(run);
}

bool RunReporting::ready(std::uint32_t rank, bool known, BootTime now) const {
  const auto wait = exits_.find(rank);
  return wait == exits_.end() || known || wait->second.until() <= now;
}

bool RunReporting::success_unknown(std::uint32_t rank, bool known) const {
  const auto wait = exits_.find(rank);
  return wait != exits_.end() && !known && wait->second.of_success();
}

std::optional<BootTime> RunReporting::next(const RunView& view, BootTime now) const {
  std::optional<BootTime> next;
  const auto consider = [&](BootTime until) {
    if (until > now) next = std::min(next.value_or(until), until);
  };
  for (const auto& [rank, wait] : exits_) {
    if (!view.marked_end(rank)) consider(wait.until());
  }
  consider(scan_until_);
  if (following_ == Following::No) consider(add_again_);
  return next;
}

}  // namespace muster::agent
