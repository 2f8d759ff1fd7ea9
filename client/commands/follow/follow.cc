#include "client/commands/follow/follow.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "client/commands/call/call.h"
#include "client/commands/call/out.h"
#include "client/commands/follow/bar_pace.h"
#include "client/commands/follow/job_streams.h"
#include "client/commands/follow/line_cutter.h"
#include "client/commands/follow/log_label.h"
#include "client/commands/follow/news_queue.h"
#include "client/commands/follow/reporting_rank.h"
#include "client/commands/follow/screen.h"
#include "client/render/event_text.h"
#include "client/render/incident.h"
#include "client/render/live_view.h"
#include "client/render/printed_reasons.h"
#include "client/render/progress_text.h"
#include "client/render/text.h"
#include "client/render/wrap.h"
#include "common/base/time.h"
#include "common/proto/proto_time.h"

namespace muster::client {
namespace {

using namespace std::chrono_literals;

constexpr auto kRedraw = 200ms;  // the block's clock advances without news
constexpr auto kRefresh = 1000ms;
constexpr auto kWhyFirst = 3s;  // wait; most jobs are placed and started by then
// Later pauses double each time, because an answer makes the controller search its queue.
constexpr auto kWhyNext = 10s;
constexpr auto kWhyMost = 300s;
constexpr auto kWhyTime = 2000ms;  // for the answer
// wait after the job's end for log bytes that are still on their way
constexpr auto kLastLines = 5s;
constexpr std::size_t kLineMost = 65536;  // a longer one is printed in pieces
constexpr std::uint64_t kTailLines = 20;  // of each earlier log, when a user begins to watch
// limit of nodes of an attempt whose setup lines are printed: usually all nodes print the same
constexpr std::size_t kSetupsMost = 4;

bool is_error_line(std::string_view line) {
  for (const std::string_view sign :
       {"Traceback (most recent", "Error:", "ERROR", "FATAL", "Exception:", "Segmentation fault",
        "out of memory", "Killed", "错误：", "错误:", "异常："}) {
    if (line.find(sign) != std::string_view::npos) return true;
  }
  return false;
}

class Follower {
 public:
  Follower(const Context& context, const Session& session, Interrupt& interrupt,
           const FollowOptions& options)
      : context_(context),
        session_(session),
        interrupt_(interrupt),
        options_(options),
        screen_(context.out, context.err, options.quiet) {}

  Result<int> run() {
    if (auto found = refresh(); !found) return lost(std::move(found.error()));
    if (job_.has_progress()) reporting_rank_.on_progress(job_.progress());
    const bool began_before = job_.attempt() > 0;
    if (screen_.has_block() && began_before) read_series();
    const Interrupt::OnFire wake(interrupt_, [this] { news_.close(); });
    JobStreams streams(session_, job_.id(), options_.logs && !options_.quiet, news_);
    Result<int> code = loop(streams, options_.joins ? job_.last_index() : 0,
                            options_.joins && began_before ? kTailLines : 0);
    screen_.erase();
    return code;
  }

 private:
  Result<void> refresh() { return refresh(&interrupt_, kCallTime); }
  Result<void> refresh(Interrupt* ended_by, std::chrono::milliseconds time) {
    v1::GetJobRequest request;
    // A name may belong to another job by now.
    request.set_job(job_.id().empty() ? options_.job : job_.id());
    auto response = ask(session_, &Jobs::GetJob, request, ended_by, time);
    if (!response) return fail(std::move(response.error()));
    job_ = std::move(*response->mutable_job());
    view_.set_job(job_);
    view_.set_progress(job_.progress(), system_clock().now().wall);
    return {};
  }

  // The logs start after the events up to `history_to` are printed, so that a line never comes
  // before its cause.
  Result<int> loop(JobStreams& streams, std::uint64_t history_to, std::uint64_t tail) {
    if (history_to == 0) streams.begin_logs(tail);
    bool ended = false;
    auto grace = std::chrono::steady_clock::time_point::max();
    while (!interrupt_.fired()) {
      for (const News& news :
           news_.take(std::min(grace, std::chrono::steady_clock::now() +
                                          (screen_.has_block() ? kRedraw : kRefresh)))) {
        if (const auto* response = std::get_if<v1::WatchResponse>(&news)) {
          on_watch(*response);
          // A sample comes after all earlier events.
          if (response->has_sample() || response->event().index() >= history_to)
            streams.begin_logs(tail);
        }
        if (const auto* chunk = std::get_if<v1::ReadLogsResponse>(&news)) on_log(*chunk);
        if (const auto* end = std::get_if<LogsEnded>(&news)) {
          logs_ended_ = true;
          if (!end->how)
            screen_.say("the ranks' lines end here: " +
                        render::printable(end->how.error().message));
        }
        if (const auto* end = std::get_if<EventsEnded>(&news)) {
          if (!end->how) return fail(end->how.error());
          streams.begin_logs(tail);
          ended = true;
          grace = std::chrono::steady_clock::now() + kLastLines;
        }
      }
      // This is only for the view; old values are good enough if the call fails.
      if (std::exchange(changed_, false)) (void)refresh();
      say_why_it_waits();
      if (screen_.has_block()) screen_.draw(block());
      if (ended && (logs_ended_ || std::chrono::steady_clock::now() >= grace)) return finish();
    }
    return leave();
  }

  // A call without an answer: Ctrl-C or the time-out ended it, or it is an error.
  Result<int> lost(Error error) {
    if (interrupt_.fired()) return leave();
    return fail(std::move(error));
  }

  // Ends the follower after Ctrl-C or the time-out, perhaps before the job's name is known.
  Result<int> leave() {
    screen_.erase();
    if (interrupt_.timed_out()) return time_up();
    fmt::print(stderr,
               "detached; {1} '{0}' goes on. Come back with 'muster watch {0}', stop it with "
               "'muster cancel {0}'\n",
               name(), what());
    return kOk;
  }

  Result<int> time_up() {
    auto found = refresh(nullptr, kLastCallTime);
    if (found && render::is_final(job_.phase()) && options_.chain.empty()) return report_end();
    if (!found && !may_pass(found.error())) return fail(std::move(found.error()));
    if (!found)
      fmt::print(stderr, "muster: time is up, and the state of {} '{}' is not known: {}\n", what(),
                 name(), render::printable(found.error().message));
    else
      fmt::print(stderr,
                 "muster: time is up; {1} '{0}' goes on; come back with 'muster watch {0}'\n",
                 name(), what());
    return kTimedOut;
  }

  [[nodiscard]] std::string name() const {
    return render::printable(!options_.chain.empty()      ? options_.chain
                             : job_.spec().name().empty() ? options_.job
                                                          : job_.spec().name());
  }
  [[nodiscard]] std::string_view what() const { return options_.chain.empty() ? "job" : "chain"; }

  void on_watch(const v1::WatchResponse& response) {
    if (response.has_sample()) {
      const v1::Progress& progress = response.sample().progress();
      view_.set_progress(progress, system_clock().now().wall);
      on_progress(progress);
      progress_line(progress);
      return;
    }
    const v1::Event& event = response.event();
    if (event.index() > job_.last_index()) {  // older events: job_ is newer already
      if (event.phase() != v1::JOB_PHASE_UNSPECIFIED) job_.set_phase(event.phase());
      view_.set_phase(event.phase(), event.attempt());
      changed_ = changed_ || screen_.has_block();
    }
    const bool in_block = screen_.is_one() && event.type() == "checkpoint-completed";
    if (options_.quiet || in_block || !render::worth_showing(event)) return;
    v1::Event shown = event;
    shown.set_text(printed_reasons_.once(event.text()));
    const std::size_t width = render::row_width(STDOUT_FILENO);
    screen_.say(screen_.is_one() ? render::short_event_line(shown, screen_.line_style(), width)
                                 : render::event_line(shown, screen_.line_style(), false, width));
  }

  // There is no event for what a job waits for, nor for the progress of its image and its setup. So
  // this asks the controller.
  void say_why_it_waits() {
    const v1::JobPhase phase = job_.phase();
    const bool waits = phase == v1::JOB_PHASE_QUEUED || phase == v1::JOB_PHASE_LAUNCHING;
    if (!waits || options_.quiet || std::exchange(why_phase_, phase) != phase) why_at_.reset();
    if (!waits || options_.quiet) return;
    const auto now = std::chrono::steady_clock::now();
    if (!why_at_) {
      why_at_ = now + kWhyFirst;
      why_pause_ = kWhyNext;
    }
    if (now < *why_at_) return;
    why_at_ = now + why_pause_;
    why_pause_ = std::min<std::chrono::seconds>(2 * why_pause_, kWhyMost);
    v1::ExplainJobRequest request;
    request.set_job(job_.id());
    const auto answer = ask(session_, &Jobs::ExplainJob, request, &interrupt_, kWhyTime);
    if (!answer || answer->phase() != phase) return;
    const std::set<std::string> printed =
        std::exchange(why_, {answer->lines().begin(), answer->lines().end()});
    for (const std::string& line : answer->lines()) {
      if (printed.contains(line)) continue;
      const std::string text =
          render::printable(fmt::format("{}: {}", render::phase_text(phase), line));
      screen_.say(render::wrap(text, 2, render::row_width(STDOUT_FILENO)));
    }
  }

  void on_progress(const v1::Progress& progress) {
    for (const ReportingRank::Line& line : reporting_rank_.on_progress(progress))
      say_line({.attempt = line.attempt, .rank = line.rank}, line.text);
  }

  void on_log(const v1::ReadLogsResponse& chunk) {
    const LogLabel log = label_of(chunk);
    const auto each = [&](std::string_view line, bool redrawn) { on_line(log, line, redrawn); };
    if (!chunk.gap().empty()) {
      cutter_.end(log, each);
      say_line(log, fmt::format("-- log bytes missing here: {}", chunk.gap()));
    }
    cutter_.add(log, chunk.data(), each);
  }

  void on_line(const LogLabel& log, std::string_view line, bool redrawn) {
    const bool error = is_error_line(line);
    const bool heard = !log.auxiliary.empty() || reporting_rank_.speaks(log.rank);
    if (redrawn && !error && !(heard && bars_.due(log, std::chrono::steady_clock::now()))) return;
    if (!log.auxiliary.empty()) return on_setup_line(log, line);
    if (error || reporting_rank_.on_line(log.attempt, log.rank, line)) say_line(log, line);
  }

  void on_setup_line(const LogLabel& log, std::string_view line) {
    auto& shown = setups_shown_[log.attempt];
    if (shown.contains(log.node) || shown.size() < kSetupsMost) {
      shown.insert(log.node);
      say_line(log, line);
    } else {
      ++setup_lines_not_shown_;
    }
  }

  void say_line(const LogLabel& log, std::string_view line) {
    const render::Style& style = screen_.line_style();
    const std::string label =
        style.paint(render::Tint::Accent, render::printable(fmt::format("[{}]", log.text())));
    screen_.say(fmt::format("{} {}", label, render::coloured(line, style)));
    printed_reasons_.pass();
  }

  // Prints one line every two seconds, if no live block is below the lines.
  void progress_line(const v1::Progress& progress) {
    if (screen_.is_one() || options_.quiet || !progress.has_step()) return;
    const auto now = std::chrono::steady_clock::now();
    if (now - last_progress_ < 2s) return;
    last_progress_ = now;
    screen_.say(fmt::format("progress: step {}{}{}", progress.step(),
                            progress.total() > 0 ? fmt::format("/{}", progress.total()) : "",
                            progress.has_loss() || progress.loss_not_finite()
                                ? ", loss " + render::loss_text(progress, 6)
                                : ""));
  }

  [[nodiscard]] std::vector<std::string> block() const {
    return view_.lines(screen_.block_style(), screen_.block_width(), system_clock().now().wall);
  }

  // Reads the whole curve. Readings are merged before they arrive here, but the controller's series
  // is complete.
  void read_series() {
    v1::ReadSeriesRequest request;
    request.set_job(job_.id());
    const auto response = ask(session_, &Jobs::ReadSeries, request, &interrupt_);
    if (!response) return;
    for (const auto& point : response->points()) {
      if (point.has_loss()) view_.add_loss(point.step(), point.loss());
    }
  }

  Result<int> finish() {
    if (auto found = refresh(); !found) return lost(std::move(found.error()));
    return report_end();
  }

  // `job_` must have its final state.
  int report_end() {
    screen_.erase();
    if (job_.has_progress()) on_progress(job_.progress());
    cutter_.end_all(
        [this](const LogLabel& log, std::string_view line) { on_line(log, line, false); });
    read_series();
    screen_.end(block());
    const render::Style& style = screen_.line_style();
    const std::string id = render::printable(job_.id());
    if (!options_.quiet) {
      for (v1::Incident& incident : *job_.mutable_incidents()) {
        // The reason was printed just before.
        const bool last =
            job_.phase() == v1::JOB_PHASE_FAILED && incident.attempt() == job_.attempt();
        if (last)
          incident.mutable_verdict()->set_reason(
              printed_reasons_.reason(incident.verdict().reason()));
        if (last) incident.mutable_verdict()->clear_evidence();  // printed below
        fmt::print("\n{}", render::incident_text(incident, job_.attempts(), style,
                                                 render::row_width(STDOUT_FILENO)));
      }
      if (const auto chart = view_.chart(style, screen_.is_one() ? screen_.block_width() : 80, 8);
          !chart.empty()) {
        fmt::print("\nloss\n");
        for (const auto& line : chart) fmt::print("{}\n", line);
      }
      fmt::print("\n");
    }
    if (!logs_ended_ && options_.logs && !options_.quiet)
      fmt::print(
          "the last lines of the ranks may be missing, they did not reach the controller in time; "
          "muster logs {} has them when they do\n",
          id);
    if (const std::uint64_t count = reporting_rank_.not_shown(); count > 0) {
      fmt::print("{} line{} of other ranks not shown: muster logs {} --rank all{}\n", count,
                 count == 1 ? "" : "s", id, job_.attempt() > 1 ? " --attempt all" : "");
    }
    if (setup_lines_not_shown_ > 0) {
      fmt::print(
          "{} line{} of the setup on other nodes not shown: muster logs {} --auxiliary setup{}\n",
          setup_lines_not_shown_, setup_lines_not_shown_ == 1 ? "" : "s", id,
          job_.attempt() > 1 ? " --attempt all" : "");
    }
    const Duration took = job_.has_ended_at()
                              ? to_wall(job_.ended_at()) - to_wall(job_.submitted_at())
                              : Duration::zero();
    fmt::print("{} {} after {}{}\n", render::printable(job_.spec().name()),
               style.paint(render::phase_tint(job_.phase()), render::phase_text(job_.phase())),
               render::duration_text(took),
               job_.restarts() > 0
                   ? fmt::format(", {} restart{}", job_.restarts(), job_.restarts() == 1 ? "" : "s")
                   : "");
    if (job_.phase() == v1::JOB_PHASE_FAILED && job_.has_verdict()) {
      const std::string reason = options_.quiet ? job_.verdict().reason()
                                                : printed_reasons_.reason(job_.verdict().reason());
      const std::size_t width = render::row_width(STDOUT_FILENO);
      const std::string verdict = fmt::format(
          "{}: {}", render::class_text(job_.verdict().failure_class()), render::printable(reason));
      fmt::print("{}\n", render::wrap(verdict, 2, width));
      if (!job_.verdict().evidence().empty()) {
        const std::string evidence = "  " + render::printable(job_.verdict().evidence());
        fmt::print("{}\n", render::wrap(evidence, 2, width));
      }
      const std::string more = fmt::format("more: muster why {}, muster logs {}", id, id);
      fmt::print("{}\n", render::wrap(more, 2, width));
    }
    flush_out();
    return exit_code(job_.phase());
  }

  const Context& context_;
  const Session& session_;
  Interrupt& interrupt_;
  const FollowOptions& options_;
  Screen screen_;
  v1::Job job_;
  render::LiveView view_;
  bool changed_ = false;  // the job, by an event without all details
  LineCutter cutter_{kLineMost, Returns::Cut};
  BarPace bars_;
  render::PrintedReasons printed_reasons_;
  ReportingRank reporting_rank_;
  NewsQueue news_;
  std::map<std::uint32_t, std::set<std::string>> setups_shown_;  // attempt to nodes
  std::uint64_t setup_lines_not_shown_ = 0;
  // time of the next request; nothing: the job does not wait
  std::optional<std::chrono::steady_clock::time_point> why_at_;
  std::chrono::seconds why_pause_{};
  v1::JobPhase why_phase_ = v1::JOB_PHASE_UNSPECIFIED;  // the phase for why_at_
  std::set<std::string> why_;                           // the lines of the last answer
  bool logs_ended_ = false;
  std::chrono::steady_clock::time_point last_progress_{};
};

}  // namespace

Result<int> follow(const Context& context, const Session& session, Interrupt& interrupt,
                   const FollowOptions& options) {
  return Follower(context, session, interrupt, options).run();
}

}  // namespace muster::client
