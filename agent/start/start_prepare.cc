#include "agent/start/start_prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "agent/code/code_copy.h"
#include "agent/container/container_prepare.h"
#include "agent/launch/core_shares.h"
#include "agent/launch/disk_view.h"
#include "agent/launch/plog_dirs.h"
#include "agent/launch/shim_dir.h"
#include "agent/saves/checkpoint_reading.h"
#include "agent/start/launch_files.h"
#include "agent/start/run_dirs.h"
#include "common/engine/model/layout.h"

namespace muster::agent {
namespace {

std::optional<Refusal> check(const StartRequest& request, UserEntry& user, bool& set_user) {
  const v1::NodeLaunch& order = request.order;
  if (auto refusal = check_devices(order, request.node)) return refusal;
  if (auto refusal = check_user(order, user, set_user)) return refusal;
  if (auto refusal = check_room(order, request.node)) return refusal;
  if (!order.has_code()) {  // otherwise the copy of the code does not exist yet
    if (auto refusal = check_files(order)) return refusal;
  }
  return check_ports(order);
}

std::unexpected<Refusal> refused(const Error& error) {
  return std::unexpected(Refusal{.why = failure_of(error), .text = error.message});
}

}  // namespace

v1::StartFailure failure_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::ResourceExhausted: return v1::START_FAILURE_DISK;
    case ErrorCode::InvalidArgument:
    case ErrorCode::NotAllowed:
    case ErrorCode::NotFound:
    case ErrorCode::Unsupported: return v1::START_FAILURE_LAUNCH;
    case ErrorCode::Unsatisfiable:
    case ErrorCode::Conflict:
    case ErrorCode::Unreachable:
    case ErrorCode::TimedOut:
    case ErrorCode::DataLoss:
    case ErrorCode::Io:
    case ErrorCode::Internal: return v1::START_FAILURE_NODE;
  }
  return v1::START_FAILURE_NODE;
}

namespace {

// True if an earlier start has fetched it: the ranks' files of that step, each of which was moved
// there complete.
bool lies_here(const v1::Fetch& what) {
  if (what.layout().empty() || what.only().empty()) return false;
  const auto layout = engine::make_layout(what.layout());
  if (!layout) return false;
  const engine::LinkPlan plan = (*layout)->resume_links(DiskView(), what.path(), what.step());
  return std::ranges::all_of(what.only(), [&](const std::string& rank) {
    return std::ranges::any_of(
        plan.links, [&](const auto& link) { return link.first.starts_with(rank + "/"); });
  });
}

}  // namespace

StartPrepared prepare_start(StartRequest request) {
  LaunchContext& context = request.context;
  const v1::NodeLaunch& order = request.order;
  const std::string whose =
      fmt::format("job '{}' attempt {}",
                  order.job_name().empty() ? order.job_id() : order.job_name(), order.attempt());
  now_preparing(
      fmt::format("looking for the user, directories and scripts of {} (working directory '{}')",
                  whose, order.ranks().empty() ? std::string() : order.ranks(0).cwd()));
  context.layout = &request.layout;
  if (auto refusal = check(request, context.user, context.set_user))
    return std::unexpected(*std::move(refusal));
  const UserEntry* owner = context.set_user ? &context.user : nullptr;
  if (order.has_scan_first()) {
    now_preparing(fmt::format("looking for earlier checkpoints of {} ('{}')", whose,
                              order.scan_first().dir()));
    v1::CheckpointReading reading;
    if (std::string text = find_newer(order, reading); !text.empty())
      return std::unexpected(Refusal{.why = v1::START_FAILURE_CHECKPOINT,
                                     .text = std::move(text),
                                     .checkpoint = std::move(reading)});
  }
  now_preparing(fmt::format("making the directories of {} ('{}')", whose,
                            order.make_dirs().empty() ? std::string() : order.make_dirs(0)));
  if (auto dirs = make_output_dirs(order, owner); !dirs) return refused(dirs.error());
  if (order.has_code()) {
    if (auto copy = make_code_copy(order, context.path, owner); !copy) return refused(copy.error());
    if (auto refusal = check_files(order)) return std::unexpected(*std::move(refusal));
  }
  now_preparing(fmt::format("writing the files of {}", whose));
  if (auto files = write_launch_files(order, request.layout, owner); !files)
    return refused(files.error());
  if (owner == nullptr) {  // another user could not reach them
    if (auto dirs = make_plog_dirs(order, request.layout); !dirs) return refused(dirs.error());
  }
  for (int i = 0; i < order.fetches_size(); ++i) {
    const v1::Fetch& what = order.fetches(i);
    if (lies_here(what)) continue;
    now_preparing(
        fmt::format("fetching '{}' from node '{}' for {}", what.path(), what.node(), whose));
    if (!request.fetch)
      return refused({ErrorCode::Unsupported,
                      fmt::format("fetching '{}' from node '{}': this agent fetches nothing",
                                  what.path(), what.node())});
    if (auto fetched = request.fetch(order, i, owner); !fetched) return refused(fetched.error());
  }
  if (order.has_resume()) {
    now_preparing(fmt::format("linking the checkpoint that {} resumes from ('{}')", whose,
                              order.resume().source()));
    v1::CheckpointReading reading;
    if (auto links = make_resume_links(order.resume(), owner, reading); !links) {
      if (reading.needed() == 0) return refused(links.error());
      return std::unexpected(Refusal{.why = v1::START_FAILURE_CHECKPOINT,
                                     .text = links.error().message,
                                     .checkpoint = std::move(reading)});
    }
  }
  rundir::v1::ContainerLaunch container;
  if (order.has_container()) {
    auto prepared = prepare_container(order, request.container, context, request.image);
    if (!prepared) return refused(prepared.error());
    container = std::move(prepared->launch);
    context.image_env = std::move(prepared->env);
  }
  now_preparing(fmt::format("looking for the programs of {}", whose));
  if (order.script().intercept()) {
    if (auto shim = make_shim_dir(request.layout, context.worker, order, context.path); !shim)
      return refused(shim.error());
  }
  auto launch = make_launch(order, context);
  if (!launch) return refused(launch.error());
  if (order.has_container()) *launch->mutable_container() = std::move(container);
  if (order.bind_cores()) bind_ranks(*launch, order, request.node.numa_nodes, request.node.sys);
  return std::move(*launch);
}

struct StartThreads::Home {
  std::mutex mutex;
  async::Loop* loop = nullptr;  // nullptr: closed
};

StartThreads::StartThreads(async::Loop& loop, std::size_t most, Duration patience)
    : home_(std::make_shared<Home>()),
      most_(most),
      patience_(patience),
      timer_(loop, "blocked starts") {
  home_->loop = &loop;
}

void StartThreads::run(std::function<StartPrepared()> work,
                       std::function<void(StartPrepared)> then) {
  if (home_->loop == nullptr) return;
  waiting_.push_back({std::move(work), std::move(then)});
  go_on();
}

void StartThreads::begin(Start start) {
  const auto doing = std::make_shared<StartDoing>();
  const auto tell = [home = home_, this, doing, then = start.then](StartPrepared outcome) {
    const std::lock_guard lock(home->mutex);
    if (home->loop == nullptr) return;
    home->loop->post("start prepared",
                     [home, this, doing, then, outcome = std::move(outcome)]() mutable {
                       // If it is closed, that happened on this loop, and this object may be
                       // destroyed.
                       if (home->loop == nullptr) return;
                       at_work_.remove(doing);
                       then(std::move(outcome));
                       if (home->loop != nullptr) go_on();
                     });
  };
  try {
    std::thread([work = std::move(start.work), tell, doing] {
      prepare_for(doing.get());
      tell(work());
      prepare_for(nullptr);
    }).detach();
    at_work_.push_back(doing);
  } catch (const std::system_error& error) {
    answer(std::move(start),
           std::unexpected(
               Refusal{.why = v1::START_FAILURE_NODE,
                       .text = fmt::format("preparing the start: no thread is to be had: {}; raise "
                                           "the limit of processes of the agent's user (ulimit "
                                           "-u), or pids.max of its control group",
                                           error.code().message())}));
  }
}

void StartThreads::answer(Start start, StartPrepared outcome) {
  home_->loop->post("start refused", [home = home_, then = std::move(start.then),
                                      outcome = std::move(outcome)]() mutable {
    if (home->loop != nullptr) then(std::move(outcome));
  });
}

// Gives free threads to the waiting starts. If the newest thread is also blocked, the waiting
// starts are refused.
void StartThreads::go_on() {
  while (!waiting_.empty() && at_work_.size() < most_) {
    Start start = std::move(waiting_.front());
    waiting_.pop_front();
    begin(std::move(start));
  }
  timer_.cancel();
  if (waiting_.empty()) return;
  const BootTime now = system_clock().now().boot;
  const BootTime until = at_work_.back()->since + patience_;
  if (now < until) return timer_.arm(until - now, [this] { go_on(); });
  const Refusal refusal = blocked(now);
  for (Start& start : std::exchange(waiting_, {}))
    answer(std::move(start), std::unexpected(refusal));
}

Refusal StartThreads::blocked(BootTime now) const {
  StartDoing& longest = *at_work_.front();
  const std::lock_guard lock(longest.mutex);
  return {
      .why = v1::START_FAILURE_NODE,
      .text = fmt::format("preparing the start: all {} threads for starts are blocked on this "
                          "node, the longest for {} s in {}; is that file system there? They come "
                          "back with it, or with a restart of the agent",
                          most_, (now - longest.since) / std::chrono::seconds(1), longest.what)};
}

void StartThreads::close() {
  {
    const std::lock_guard lock(home_->mutex);
    if (home_->loop == nullptr) return;
    home_->loop = nullptr;
  }
  timer_.cancel();
  waiting_.clear();
  at_work_.clear();
}

}  // namespace muster::agent
