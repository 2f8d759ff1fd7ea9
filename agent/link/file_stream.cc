#include "agent/link/file_stream.h"

#include <fmt/format.h>

#include <system_error>
#include <thread>

#include "agent/saves/files_out.h"
#include "agent/start/files_in.h"
#include "common/log/log.h"
#include "common/rpc/status.h"

namespace muster::agent {

Result<void> FileStreams::fetch(const v1::NodeLaunch& order, int number, const UserEntry* owner) {
  const v1::Fetch& what = order.fetches(number);
  const std::string doing = fmt::format("fetching '{}' from node '{}'", what.path(), what.node());
  grpc::ClientContext context;
  const OpenCalls::Call call(calls_, context);  // from here on stop() waits for it
  if (call.stopped())
    return fail(ErrorCode::Unreachable, fmt::format("{}: the agent is about to end", doing));
  const auto self = options_.self();
  if (!self)
    return fail(ErrorCode::Unreachable,
                fmt::format("{}: the controller is away; another start tries again", doing));
  auto endpoint = options_.endpoint();
  if (!endpoint) return fail(std::move(endpoint).error().in(doing));
  auto files = FilesIn::begin(what.path(), fmt::format("{}-{}", order.job_id(), number),
                              order.attempt(), owner);
  if (!files) return fail(std::move(files.error()));

  v1::FetchFilesRequest request;
  request.set_cluster_id(self->cluster_id());
  request.set_node(self->node());
  request.set_instance(self->instance());
  request.set_job_id(order.job_id());
  request.set_attempt(order.attempt());
  request.set_number(static_cast<std::uint32_t>(number));
  const auto stub = v1::AgentService::NewStub(rpc::make_channel(*endpoint));
  grpc::CompletionQueue queue;
  const auto reader = stub->PrepareAsyncFetchFiles(&context, request, &queue);
  bool silent = false;
  // Returns false when the call is over.
  const auto next = [&] {
    void* tag = nullptr;
    bool ok = false;
    const auto until =
        std::chrono::system_clock::now() +
        std::chrono::duration_cast<std::chrono::system_clock::duration>(options_.idle_most);
    if (queue.AsyncNext(&tag, &ok, until) == grpc::CompletionQueue::TIMEOUT) {
      silent = true;
      context.TryCancel();
      queue.Next(&tag, &ok);
    }
    return ok;
  };
  reader->StartCall(nullptr);
  Result<void> taken;
  bool on = next();
  while (on) {
    v1::FetchFilesResponse response;
    reader->Read(&response, nullptr);
    on = next();
    if (!on) break;
    taken = files->take(response.part());
    if (taken) continue;
    context.TryCancel();
    break;
  }
  grpc::Status status;
  reader->Finish(&status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  if (!taken) return fail(std::move(taken.error()));
  if (silent) {
    return fail(ErrorCode::TimedOut,
                fmt::format("{}: nothing came for {} s; look after node '{}'", doing,
                            options_.idle_most / std::chrono::seconds(1), what.node()));
  }
  if (!status.ok()) {
    Error why = rpc::to_error(status);
    // not the fault of the job: another start may succeed
    if (why.code != ErrorCode::ResourceExhausted) why.code = ErrorCode::Unreachable;
    return fail(std::move(why).in(fmt::format(
        "{} for job '{}'", doing, order.job_name().empty() ? order.job_id() : order.job_name())));
  }
  return files->put();
}

void FileStreams::send(v1::FilesWanted wanted) {
  {
    const MutexLock lock(mutex_);
    if (stopped_ || threads_ >= options_.sends_most) {
      log::warn(
          "files were asked for by another node, and none are sent: too many transfers are under "
          "way",
          {{"path", wanted.what().path()}});
      return;
    }
    ++threads_;
  }
  const auto over = [this] {
    const MutexLock lock(mutex_);
    --threads_;
    all_gone_.notify_all();
  };
  try {
    std::thread([this, wanted = std::move(wanted), over] {
      send_now(wanted);
      over();
    }).detach();
  } catch (const std::system_error& error) {
    over();
    log::warn("files were asked for by another node, and no thread is to be had that sends them",
              {{"why", error.code().message()}});
  }
}

void FileStreams::send_now(const v1::FilesWanted& wanted) {
  const auto self = options_.self();
  const auto endpoint = options_.endpoint();
  if (!self || !endpoint) return;  // the end of the connection notifies the waiting agent
  const auto stub = v1::AgentService::NewStub(rpc::make_channel(*endpoint));
  grpc::ClientContext context;
  const OpenCalls::Call call(calls_, context);
  v1::SendFilesResponse response;
  const auto writer = stub->SendFiles(&context, &response);
  v1::SendFilesRequest request;
  v1::FilesTicket& ticket = *request.mutable_ticket();
  ticket.set_cluster_id(self->cluster_id());
  ticket.set_node(self->node());
  ticket.set_instance(self->instance());
  ticket.set_ticket(wanted.ticket());
  bool on = writer->Write(request);
  const auto say = [&](v1::FilePart part) {
    *request.mutable_part() = std::move(part);
    on = on && writer->Write(request);
    return on;
  };
  UserEntry user;
  Result<void> read;
  if (!wanted.user().empty()) {
    auto found = find_user(wanted.user());
    if (found)
      user = *std::move(found);
    else
      read = fail(std::move(found.error()));
  }
  if (read && on) read = read_files(wanted.what(), wanted.user().empty() ? nullptr : &user, say);
  if (!read) {
    v1::FilePart failed;
    failed.mutable_failed()->set_text(read.error().message);
    (void)say(std::move(failed));
  }
  writer->WritesDone();
  const grpc::Status status = writer->Finish();
  if (!read)
    log::warn("files for another node were not sent", {{"why", read.error().message}});
  else if (!status.ok())
    log::warn("files for another node were not sent",
              {{"path", wanted.what().path()}, {"why", status.error_message()}});
}

void FileStreams::stop() {
  constexpr auto kPatience = std::chrono::seconds(10);
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
  }
  calls_.stop(kPatience);
  const MutexLock lock(mutex_);
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (threads_ > 0 && all_gone_.wait_until(mutex_, until)) {
  }
}

}  // namespace muster::agent
