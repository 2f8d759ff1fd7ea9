#include "agent/host/start_prepare.h"

#include <mutex>
#include <system_error>
#include <thread>

#include "agent/host/run_dirs.h"

namespace muster::agent {
namespace {

std::optional<Refusal> check(const StartRequest& request, UserEntry& user, bool& set_user) {
  const v1::NodeLaunch& order = request.order;
  if (auto refusal = check_devices(order, request.node)) return refusal;
  if (auto refusal = check_user(order, user, set_user)) return refusal;
  if (auto refusal = check_room(order, request.node)) return refusal;
  if (auto refusal = check_files(order)) return refusal;
  return check_ports(order);
}

std::unexpected<Refusal> refused(const Error& error) { return std::unexpected(Refusal{.why = failure_of(error), .text = error.message}); }

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

StartPrepared prepare_start(StartRequest request) {
  LaunchContext& context = request.context;
  context.layout = &request.layout;
  if (auto refusal = check(request, context.user, context.set_user)) return std::unexpected(*std::move(refusal));
  const UserEntry* owner = context.set_user ? &context.user : nullptr;
  if (auto dirs = make_output_dirs(request.order, owner); !dirs) return refused(dirs.error());
  if (request.order.has_resume()) {
    if (auto links = make_resume_links(request.order.resume(), owner); !links) return refused(links.error());
  }
  auto launch = make_launch(request.order, context);
  if (!launch) return refused(launch.error());
  return std::move(*launch);
}

struct StartThreads::Home {
  std::mutex mutex;
  async::Loop* loop = nullptr;  // none: closed
};

StartThreads::StartThreads(async::Loop& loop) : home_(std::make_shared<Home>()) { home_->loop = &loop; }

void StartThreads::run(std::function<StartPrepared()> work, std::function<void(StartPrepared)> then) {
  const auto tell = [home = home_, then = std::move(then)](StartPrepared outcome) {
    const std::lock_guard lock(home->mutex);
    if (home->loop == nullptr) return;
    home->loop->post("start prepared", [home, then, outcome = std::move(outcome)]() mutable {
      if (home->loop != nullptr) then(std::move(outcome));  // closed on this loop, if it is
    });
  };
  try {
    std::thread([work, tell] { tell(work()); }).detach();
  } catch (const std::system_error&) {
    tell(work());
  }
}

void StartThreads::close() {
  const std::lock_guard lock(home_->mutex);
  home_->loop = nullptr;
}

}  // namespace muster::agent
