#include "client/commands/follow.h"

#include <fmt/format.h>

#include <condition_variable>
#include <cstdio>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <variant>

#include "client/render/event_text.h"
#include "client/render/incident.h"
#include "client/render/live_view.h"
#include "client/render/text.h"
#include "common/base/time.h"
#include "common/rpc/backoff.h"

namespace muster::client {
namespace {

using namespace std::chrono_literals;

struct StreamEnded {
  grpc::Status status;
};
struct LogsEnded {};
using News = std::variant<v1::WatchResponse, v1::ReadLogsResponse, StreamEnded, LogsEnded>;

// Bounded: a reader waits when the terminal is slower than the job.
class NewsQueue {
 public:
  void push(News news) {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [this] { return news_.size() < kMost || closed_; });
    news_.push_back(std::move(news));
    ready_.notify_one();
  }
  // Everything there is; waits until there is something, `until`, or wake().
  std::deque<News> take(std::chrono::steady_clock::time_point until) {
    std::unique_lock lock(mutex_);
    ready_.wait_until(lock, until, [this] { return !news_.empty() || woken_; });
    std::deque<News> out;
    out.swap(news_);
    room_.notify_all();
    return out;
  }
  void wake() {
    const std::scoped_lock lock(mutex_);
    woken_ = true;
    closed_ = true;
    ready_.notify_all();
    room_.notify_all();
  }

 private:
  static constexpr std::size_t kMost = 4096;
  std::mutex mutex_;
  std::condition_variable ready_, room_;
  std::deque<News> news_;
  bool woken_ = false, closed_ = false;
};

// Whole lines of each rank, from chunks cut anywhere.
class LineCutter {
 public:
  template <class Each>
  void add(std::uint32_t rank, const std::string& data, Each each) {
    std::string& rest = rest_[rank];
    rest += data;
    std::size_t start = 0;
    for (std::size_t end = rest.find('\n'); end != std::string::npos; end = rest.find('\n', start)) {
      each(std::string_view(rest).substr(start, end - start));
      start = end + 1;
    }
    rest.erase(0, start);
    if (rest.size() > 65536) {  // a line without end: shown in pieces
      each(std::string_view(rest));
      rest.clear();
    }
  }

 private:
  std::unordered_map<std::uint32_t, std::string> rest_;
};

bool looks_like_error(std::string_view line) {
  for (const std::string_view sign : {"Traceback (most recent", "Error:", "ERROR", "FATAL", "Exception:", "Segmentation fault", "out of memory", "Killed"}) {
    if (line.find(sign) != std::string_view::npos) return true;
  }
  return false;
}

class Follower {
 public:
  Follower(const Context& context, const Session& session, Interrupt& interrupt, const FollowOptions& options)
      : context_(context), session_(session), interrupt_(interrupt), options_(options), terminal_(render::is_terminal(2) && context.err.colour && !options.quiet) {}

  int run() {
    if (!refresh()) return interrupt_.fired() ? leave() : report(context_, session_, last_status_);
    interrupt_.on_fire([this] { news_.wake(); });
    std::thread events([this] { read_events(); });
    std::thread logs;
    if (options_.logs && !options_.quiet) logs = std::thread([this] { read_logs(); });
    else logs_ended_ = true;
    const int code = loop();
    stopping_ = true;
    news_.wake();
    {
      const std::scoped_lock lock(calls_mutex_);
      for (grpc::ClientContext* call : calls_) call->TryCancel();
      stop_changed_.notify_all();
    }
    events.join();
    if (logs.joinable()) logs.join();
    interrupt_.on_fire({});
    return code;
  }

 private:
  bool refresh() {
    grpc::ClientContext call;
    session_.prepare(call);
    const Interrupt::Guard guard(interrupt_, call);
    v1::GetJobRequest request;
    request.set_job(options_.job);
    v1::GetJobResponse response;
    last_status_ = session_.jobs->GetJob(&call, request, &response);
    if (!last_status_.ok()) return false;
    job_ = response.job();
    view_.set_job(job_);
    return true;
  }

  // Runs `read` on a call that can be cancelled, again and again with back-off until it says that it is done.
  template <class Read>
  void with_retries(Read read) {
    rpc::Backoff backoff(std::hash<std::string>{}(options_.job) + reinterpret_cast<std::uintptr_t>(&read));
    while (!stopping_ && !interrupt_.fired()) {
      grpc::ClientContext call;
      session_.prepare(call, std::nullopt);
      {
        const std::scoped_lock lock(calls_mutex_);
        calls_.push_back(&call);
      }
      const Interrupt::Guard guard(interrupt_, call);
      const bool done = read(call, backoff);
      std::unique_lock lock(calls_mutex_);
      std::erase(calls_, &call);
      if (done) return;
      stop_changed_.wait_for(lock, backoff.next(), [this] { return stopping_.load() || interrupt_.fired(); });
    }
  }

  void read_events() {
    std::uint64_t index = 0;
    with_retries([&](grpc::ClientContext& call, rpc::Backoff& backoff) {
      v1::WatchRequest request;
      request.set_job(job_.id());
      request.set_from_index(index);
      request.set_samples(true);
      request.set_until_final(true);
      auto stream = session_.jobs->Watch(&call, request);
      v1::WatchResponse response;
      while (stream->Read(&response)) {
        backoff.reset();
        if (response.has_event()) index = std::max(index, response.event().index());
        news_.push(response);
      }
      const grpc::Status status = stream->Finish();
      const bool again = status.error_code() == grpc::StatusCode::UNAVAILABLE || status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED;
      if (!again) news_.push(StreamEnded{status});
      return !again;
    });
  }

  void read_logs() {
    // Offsets a rank and attempt, so that a lost controller costs no line and doubles none.
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> seen;
    with_retries([&](grpc::ClientContext& call, rpc::Backoff& backoff) {
      v1::ReadLogsRequest request;
      request.set_job(job_.id());
      request.set_all_attempts(true);
      request.set_follow(true);
      auto stream = session_.jobs->ReadLogs(&call, request);
      v1::ReadLogsResponse response;
      while (stream->Read(&response)) {
        backoff.reset();
        std::uint64_t& have = seen[{response.attempt(), response.rank()}];
        const std::uint64_t end = response.offset() + response.data().size();
        if (end <= have) continue;
        if (response.offset() < have) response.mutable_data()->erase(0, have - response.offset());
        have = end;
        news_.push(response);
      }
      const grpc::Status status = stream->Finish();
      if (status.error_code() == grpc::StatusCode::UNAVAILABLE) return false;
      news_.push(LogsEnded{});
      return true;
    });
  }

  int loop() {
    bool ended = false;
    auto grace = std::chrono::steady_clock::time_point::max();
    while (!interrupt_.fired()) {
      const auto wake = std::min(grace, std::chrono::steady_clock::now() + 200ms);
      for (News& news : news_.take(terminal_ ? wake : std::min(grace, std::chrono::steady_clock::now() + 1s))) {
        if (auto* response = std::get_if<v1::WatchResponse>(&news)) on_watch(*response);
        else if (auto* chunk = std::get_if<v1::ReadLogsResponse>(&news)) on_log(*chunk);
        else if (auto* end = std::get_if<StreamEnded>(&news)) {
          if (!end->status.ok() && end->status.error_code() != grpc::StatusCode::CANCELLED) {
            erase_block();
            return report(context_, session_, end->status);
          }
          ended = true;
          grace = std::chrono::steady_clock::now() + 5s;  // the last log bytes may still be on their way
        } else {
          logs_ended_ = true;
        }
      }
      draw_block();
      if (ended && (logs_ended_ || std::chrono::steady_clock::now() >= grace)) return finish();
    }
    erase_block();
    return leave();
  }

  // Time is up or Ctrl-C; perhaps before the job's name was learnt.
  int leave() {
    const std::string name = job_.spec().name().empty() ? options_.job : job_.spec().name();
    if (interrupt_.timed_out()) {
      fmt::print(stderr, "muster: time is up; job '{0}' goes on; come back with 'muster watch {0}'\n", name);
      return kTimedOut;
    }
    fmt::print(stderr, "detached; job '{0}' goes on. Come back with 'muster watch {0}', stop it with 'muster cancel {0}'\n", name);
    return kOk;
  }

  void on_watch(const v1::WatchResponse& response) {
    const WallTime now = system_clock().now().wall;
    if (response.has_sample()) {
      view_.set_progress(response.sample().progress(), now);
      spokesman_ = response.sample().progress().spokesman();
      progress_line(response.sample().progress());
      return;
    }
    const v1::Event& event = response.event();
    if (event.type() == "attempt-placed") refresh();
    view_.set_phase(event.phase(), event.attempt());
    if (!options_.quiet && render::worth_showing(event)) say(render::event_line(event, terminal_ ? context_.err : context_.out, false));
  }

  void on_log(const v1::ReadLogsResponse& chunk) {
    if (!chunk.gap().empty()) say(fmt::format("[rank {}] -- log bytes missing here: {}", chunk.rank(), chunk.gap()));
    cutter_.add(chunk.rank(), chunk.data(), [&](std::string_view line) {
      const bool error = looks_like_error(line);
      if (!error && (terminal_ || chunk.rank() != spokesman_)) return;
      say(render::printable(fmt::format("[rank {}] {}", chunk.rank(), line)));
    });
  }

  // A pipe gets one line every two seconds; a terminal has the live block.
  void progress_line(const v1::Progress& progress) {
    if (terminal_ || options_.quiet || progress.step() < 0) return;
    const auto now = std::chrono::steady_clock::now();
    if (now - last_progress_ < 2s) return;
    last_progress_ = now;
    say(fmt::format("progress: step {}{}{}", progress.step(), progress.total() > 0 ? fmt::format("/{}", progress.total()) : "", progress.has_loss() ? fmt::format(", loss {:.6f}", progress.loss()) : ""));
  }

  void say(const std::string& line) {
    if (terminal_) {
      erase_block();
      fmt::print(stderr, "{}\n", render::clip(line, render::terminal_width(2) * 4));
    } else {
      fmt::print("{}\n", line);
      std::fflush(stdout);
    }
  }
  void erase_block() {
    if (drawn_ > 0) fmt::print(stderr, "\x1b[{}A\x1b[J", drawn_);
    drawn_ = 0;
  }
  void draw_block() {
    if (!terminal_) return;
    erase_block();
    for (const auto& line : view_.lines(context_.err, render::terminal_width(2), system_clock().now().wall)) {
      fmt::print(stderr, "{}\n", line);
      ++drawn_;
    }
    std::fflush(stderr);
  }

  // The whole curve: readings are merged on their way here, the controller's series is not.
  void read_series() {
    grpc::ClientContext call;
    session_.prepare(call);
    const Interrupt::Guard guard(interrupt_, call);
    v1::ReadSeriesRequest request;
    request.set_job(job_.id());
    v1::ReadSeriesResponse response;
    if (!session_.jobs->ReadSeries(&call, request, &response).ok()) return;
    for (const auto& point : response.points()) {
      if (point.has_loss()) view_.add_loss(point.step(), point.loss());
    }
  }

  int finish() {
    erase_block();
    if (!refresh()) return interrupt_.fired() ? leave() : report(context_, session_, last_status_);
    read_series();
    std::FILE* to = terminal_ ? stderr : stdout;
    const render::Style& style = terminal_ ? context_.err : context_.out;
    if (!options_.quiet) {
      for (const auto& incident : job_.incidents()) fmt::print(to, "\n{}", render::incident_text(incident, style));
      if (const auto chart = view_.chart(style, terminal_ ? render::terminal_width(2) : 80, 8); !chart.empty()) {
        fmt::print(to, "\nloss\n");
        for (const auto& line : chart) fmt::print(to, "{}\n", line);
      }
      fmt::print(to, "\n");
    }
    const Duration took = job_.has_ended_at() ? render::wall_time(job_.ended_at()) - render::wall_time(job_.submitted_at()) : Duration::zero();
    fmt::print(to, "{} {} after {}{}\n", job_.spec().name(), style.paint(render::phase_tint(job_.phase()), render::phase_text(job_.phase())), render::duration_text(took),
               job_.restarts() > 0 ? fmt::format(", {} restart{}", job_.restarts(), job_.restarts() == 1 ? "" : "s") : "");
    if (job_.phase() == v1::JOB_PHASE_FAILED && job_.has_verdict()) {
      fmt::print(to, "{}: {}\n", render::class_text(job_.verdict().class_()), render::printable(job_.verdict().reason()));
      if (!job_.verdict().evidence().empty()) fmt::print(to, "  {}\n", render::printable(job_.verdict().evidence()));
      fmt::print(to, "more: muster why {}, muster logs {}\n", job_.id(), job_.id());
    }
    std::fflush(to);
    return exit_code(job_.phase());
  }

  const Context& context_;
  const Session& session_;
  Interrupt& interrupt_;
  const FollowOptions& options_;
  const bool terminal_;
  v1::Job job_;
  grpc::Status last_status_;
  render::LiveView view_;
  LineCutter cutter_;
  NewsQueue news_;
  std::uint32_t spokesman_ = 0;
  std::size_t drawn_ = 0;
  bool logs_ended_ = false;
  std::chrono::steady_clock::time_point last_progress_{};
  std::atomic<bool> stopping_ = false;
  std::mutex calls_mutex_;
  std::condition_variable stop_changed_;
  std::vector<grpc::ClientContext*> calls_;
};

}  // namespace

int follow(const Context& context, const Session& session, Interrupt& interrupt, const FollowOptions& options) {
  return Follower(context, session, interrupt, options).run();
}

}  // namespace muster::client
