#include "agent/link/store_reports.h"

#include <sys/eventfd.h>

#include <chrono>
#include <exception>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "agent/store/store_list.h"
#include "common/log/log.h"
#include "common/store/profile.h"
#include "muster/v1/agent_service.grpc.pb.h"

namespace muster::agent {
namespace {

constexpr std::chrono::seconds kClientWaits{60};

v1::ReportStoreRequest trouble(const std::string& text) {
  v1::ReportStoreRequest found;
  found.set_trouble(text);
  return found;
}

v1::ReportStoreRequest listed(process::ToolRunner& runner, const v1::StoreCheck& check,
                              int cancel_fd) {
  const auto url = store::parse_url(check.url());
  if (!url) return trouble("'" + check.url() + "' " + url.error().message);
  if (const auto sound = store::check_profile(check.profile()); !sound)
    return trouble(sound.error().message);
  if (check.measure()) {
    const std::vector<std::string> include(check.include().begin(), check.include().end());
    const auto size = measure_store(runner, check.profile(), *url, check.key(), include, cancel_fd);
    if (!size) return trouble(size.error().message);
    v1::ReportStoreRequest found;
    found.set_objects(size->objects);
    found.set_bytes(size->bytes);
    return found;
  }
  const auto listing = list_store(runner, check.profile(), *url, check.key(), cancel_fd);
  if (!listing) return trouble(listing.error().message);
  v1::ReportStoreRequest found;
  found.set_count(listing->count);
  found.set_more(listing->more);
  for (const std::string& name : listing->names) found.add_names(name);
  return found;
}

}  // namespace

StoreReports::StoreReports(Options options)
    : options_(std::move(options)), ends_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void StoreReports::check(v1::StoreCheck check) {
  const MutexLock lock(mutex_);
  if (stopped_) return;
  const bool is_full = waiting_.size() >= kWaitingMost;
  if (waiting_.size() >= 2 * kWaitingMost) return;  // no controller of this release does that
  waiting_.push_back({.check = std::move(check),
                      .until = std::chrono::steady_clock::now() + kClientWaits,
                      .refusal = is_full ? "as many checks as may be wait on this node already; "
                                           "try again in a minute"
                                         : ""});
  if (threads_ >= kThreads) return;
  ++threads_;
  try {
    std::thread([this] { work(); }).detach();
  } catch (const std::system_error& error) {
    if (--threads_ > 0) return;  // another one takes it
    waiting_.clear();
    log::warn("stores are not checked: no thread is to be had", {{"why", error.code().message()}});
  }
}

void StoreReports::work() {
  process::ToolRunner runner;  // remembers an rclone that does not die
  for (;;) {
    Waiting next;
    {
      const MutexLock lock(mutex_);
      if (stopped_ || waiting_.empty()) {
        --threads_;
        all_gone_.notify_all();
        return;
      }
      next = std::move(waiting_.front());
      waiting_.pop_front();
    }
    if (std::chrono::steady_clock::now() > next.until) continue;
    if (!next.refusal.empty()) {
      report(next.check, trouble(next.refusal));
      continue;
    }
    try {
      report(next.check, listed(runner, next.check, ends_.get()));
    } catch (const std::exception& error) {  // of a parser, by an end's words
      report(next.check, trouble(std::string("an answer cannot be read: ") + error.what()));
    }
  }
}

void StoreReports::report(const v1::StoreCheck& check, v1::ReportStoreRequest found) {
  const auto self = options_.self();
  const auto endpoint = options_.endpoint();
  if (!self || !endpoint) return;  // the end of the connection notifies the waiting client
  found.set_cluster_id(self->cluster_id());
  found.set_node(self->node());
  found.set_instance(self->instance());
  found.set_ticket(check.ticket());
  const auto stub = v1::AgentService::NewStub(rpc::make_channel(*endpoint));
  grpc::ClientContext context;
  const OpenCalls::Call call(calls_, context);
  if (call.stopped()) return;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  v1::ReportStoreResponse none;
  const grpc::Status status = stub->ReportStore(&context, found, &none);
  if (!status.ok() && status.error_code() != grpc::StatusCode::NOT_FOUND)
    log::warn("what a store has was not reported", {{"why", status.error_message()}});
}

void StoreReports::stop() {
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
  }
  if (ends_) (void)::eventfd_write(ends_.get(), 1);
  calls_.stop(std::chrono::seconds(10));
  const MutexLock lock(mutex_);
  while (threads_ > 0) all_gone_.wait(mutex_);
}

}  // namespace muster::agent
