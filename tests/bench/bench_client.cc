// The API client of tests/bench/run, where python's own time would spoil a figure. All times are
// CLOCK_MONOTONIC nanoseconds.
//   bench_client watch ENDPOINT               one Watch stream over everything, kept open: "NS TYPE
//                                             JOB ATTEMPT RANK" as each event arrives
//   bench_client rate ENDPOINT JOBS OPEN TAG  JOBS trivial jobs, OPEN at a time, from submission to
//                                             job-ended: "NS of each ended", then "total ..."
//   bench_client listen ENDPOINT NODES        "listen NS" when the endpoint file is replaced,
//                                             "attached NS" when NODES are connected
//   bench_client back ENDPOINT NODES          "lost NS" when fewer than NODES are connected,
//                                             "attached NS" when all are again
// "ready" is the first line: from then on nothing is missed.
#include <sys/inotify.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "common/rpc/channel.h"
#include "common/rpc/endpoint_file.h"
#include "muster/v1/job_service.grpc.pb.h"
#include "muster/v1/node_service.grpc.pb.h"
#include "tests/support/stub_trainer/stamp.h"

namespace {

using namespace muster;

constexpr auto kPatience = std::chrono::seconds(60);
constexpr useconds_t kCheckAgainUs = 1000;

[[noreturn]] void give_up(const std::string& text) {
  std::fprintf(stderr, "bench_client: %s\n", text.c_str());
  std::exit(1);
}

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

std::string now_text() { return std::to_string(::stub::monotonic_ns()); }

struct Session {
  std::unique_ptr<v1::JobService::Stub> jobs;
  std::unique_ptr<v1::NodeService::Stub> nodes;
};

Session connect(const std::filesystem::path& endpoint_file) {
  const auto endpoint = rpc::load_endpoint(endpoint_file, {});
  if (!endpoint) give_up(endpoint.error().message);
  const auto channel = rpc::make_channel(*endpoint);
  return {v1::JobService::NewStub(channel), v1::NodeService::NewStub(channel)};
}

v1::GetClusterStatusResponse cluster_status(const Session& session) {
  grpc::ClientContext call;
  call.set_wait_for_ready(true);
  call.set_deadline(std::chrono::system_clock::now() + kPatience);
  v1::GetClusterStatusResponse status;
  if (const auto asked = session.nodes->GetClusterStatus(&call, {}, &status); !asked.ok())
    give_up("asking for the cluster's state: " + asked.error_message());
  return status;
}

std::unique_ptr<grpc::ClientReader<v1::WatchResponse>> watch_from_now(const Session& session,
                                                                      grpc::ClientContext& call) {
  v1::WatchRequest request;
  request.set_from_index(cluster_status(session).journal_index());
  return session.jobs->Watch(&call, request);
}

int watch(const Session& session) {
  grpc::ClientContext call;
  const auto stream = watch_from_now(session, call);
  say("ready");
  v1::WatchResponse response;
  while (stream->Read(&response)) {
    const auto at = now_text();
    if (!response.has_event()) continue;
    const auto& event = response.event();
    say(at + " " + event.type() + " " + (event.job_id().empty() ? "-" : event.job_id()) + " " +
        std::to_string(event.attempt()) + " " +
        (event.has_rank() ? std::to_string(event.rank()) : "-1"));
  }
  return 0;
}

// One submission in flight of `OPEN`; lives until its answer is in.
struct Submission {
  grpc::ClientContext call;
  v1::SubmitJobRequest request;
  v1::SubmitJobResponse response;
};

class Submitter {
 public:
  Submitter(const Session& session, std::string tag) : session_(session), tag_(std::move(tag)) {}

  void submit(unsigned number) {
    auto submission = std::make_shared<Submission>();
    auto& spec = *submission->request.mutable_spec();
    spec.set_name(tag_ + "-" + std::to_string(number));
    spec.set_engine("command");
    spec.mutable_code()->set_at("/");
    spec.mutable_launch()->set_per(v1::LAUNCH_PER_RANK);
    spec.mutable_launch()->add_run("/bin/true");
    spec.mutable_resources()->set_nodes(1);
    spec.mutable_resources()->set_devices(1);
    spec.mutable_resources()->set_type("cpu");
    session_.jobs->async()->SubmitJob(&submission->call, &submission->request,
                                      &submission->response,
                                      [submission](const grpc::Status& status) {
                                        if (!status.ok())
                                          give_up("submitting: " + status.error_message());
                                      });
  }

 private:
  const Session& session_;
  std::string tag_;
};

int rate(const Session& session, unsigned jobs, unsigned open, const std::string& tag) {
  grpc::ClientContext call;
  const auto stream = watch_from_now(session, call);
  Submitter submitter(session, tag);
  say("ready");
  const auto began = ::stub::monotonic_ns();
  unsigned submitted = 0;
  while (submitted < open && submitted < jobs) submitter.submit(submitted++);
  unsigned ended = 0;
  unsigned succeeded = 0;
  v1::WatchResponse response;
  while (ended < jobs && stream->Read(&response)) {
    const auto& event = response.event();
    if (!response.has_event() || event.type() != "job-ended" ||
        !event.job_name().starts_with(tag + "-"))
      continue;
    ++ended;
    if (event.phase() == v1::JOB_PHASE_SUCCEEDED) ++succeeded;
    if (submitted < jobs) submitter.submit(submitted++);
  }
  const auto took = static_cast<double>(::stub::monotonic_ns() - began) / 1e9;
  if (ended < jobs) give_up("the watch stream ended early");
  say("total " + std::to_string(took) + " " + std::to_string(succeeded));
  call.TryCancel();
  return 0;
}

int until_attached(const Session& session, std::uint32_t nodes) {
  while (cluster_status(session).nodes_connected() < nodes) ::usleep(kCheckAgainUs);
  say("attached " + now_text());
  return 0;
}

int listen(const std::filesystem::path& endpoint_file, std::uint32_t nodes) {
  const int notify = ::inotify_init1(IN_CLOEXEC);
  if (::inotify_add_watch(notify, endpoint_file.parent_path().c_str(), IN_MOVED_TO) < 0)
    give_up("watching the endpoint file's directory");
  say("ready");
  alignas(inotify_event) char room[4096];
  for (bool seen = false; !seen;) {
    const auto bytes = ::read(notify, room, sizeof room);
    if (bytes <= 0) give_up("reading inotify");
    for (const char* at = room; at < room + bytes;) {
      const auto* event = reinterpret_cast<const inotify_event*>(at);
      seen = seen || (event->len > 0 && endpoint_file.filename() == event->name);
      at += sizeof(inotify_event) + event->len;
    }
  }
  say("listen " + now_text());
  ::close(notify);
  return until_attached(connect(endpoint_file), nodes);
}

int back(const Session& session, std::uint32_t nodes) {
  say("ready");
  while (cluster_status(session).nodes_connected() >= nodes) ::usleep(kCheckAgainUs);
  say("lost " + now_text());
  return until_attached(session, nodes);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) give_up("usage: bench_client watch|rate|listen|back ENDPOINT [...]");
  const std::string verb = argv[1];
  const std::filesystem::path endpoint = argv[2];
  const auto number = [&](int at) {
    return at < argc ? static_cast<unsigned>(std::atoi(argv[at])) : 0;
  };
  if (verb == "watch") return watch(connect(endpoint));
  if (verb == "rate" && argc > 5) return rate(connect(endpoint), number(3), number(4), argv[5]);
  if (verb == "listen" && argc > 3) return listen(endpoint, number(3));
  if (verb == "back" && argc > 3) return back(connect(endpoint), number(3));
  give_up("unknown verb '" + verb + "' or too few arguments");
}
