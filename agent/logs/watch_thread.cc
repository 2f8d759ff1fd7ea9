#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "agent/logs/file_watch.h"
#include "agent/logs/room.h"
#include "common/io/room.h"
#include "common/rundir/layout.h"

namespace muster::agent {
namespace {

// "rank-12.log" -> 12
std::optional<std::uint32_t> rank_of(std::string_view name) {
  if (!name.starts_with("rank-") || !name.ends_with(".log")) return std::nullopt;
  name = name.substr(5, name.size() - 9);
  std::uint32_t rank = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), rank);
  return error == std::errc() && end == name.data() + name.size() ? std::optional(rank)
                                                                  : std::nullopt;
}

}  // namespace

void FileWatch::bytes_moved() {
  const std::scoped_lock lock(wake_mutex_);
  if (wake_) wake_();
}

void FileWatch::tell(const RunPtr& run, std::function<void()> closure) {
  {
    const std::scoped_lock lock(mutex_);
    if (run->removed || stopping_) return;
  }
  post_(std::move(closure));
}

void FileWatch::trouble(const RunPtr& run, WatchedRank* rank, const Error& error) {
  if (rank && std::exchange(rank->troubled, true)) return;
  if (!callbacks_.on_trouble) return;
  tell(run, [callback = callbacks_.on_trouble, text = error.message + ", trying on"] {
    callback(text);
  });
}

void FileWatch::begin(const RunPtr& run) {
  run->begun = true;
  run->owner = next_owner_;
  next_owner_ += 2;
  owners_[run->owner] = run;
  owners_[run->owner + 1] = run;
  watch_logs(*run);
  // No rank waits for it yet; it finds out the file system of the file.
  if (!run->any_success_file().empty()) check_success(run);
}

// This is tried again later: another agent may have closed its instance.
void FileWatch::ask_kernel() {
  if (inotify_.works()) return;
  auto made = Inotify::make(options_.inotify_init);
  if (made) {
    inotify_ = std::move(*made);
    return;
  }
  if (std::exchange(instance_troubled_, true)) return;
  say(fmt::format(
      "watching files: {}; logs are read every {} ms and save directories scanned every {} ms "
      "instead, runs go on as ever{}",
      made.error().message, options_.unnotified_scan / std::chrono::milliseconds(1),
      options_.blind_scan / std::chrono::milliseconds(1),
      made.error().code == ErrorCode::ResourceExhausted
          ? "; raise fs.inotify.max_user_instances (sysctl), which bounds how many a user may have"
          : ""));
}

void FileWatch::watch_logs(WatchedRun& run) {
  const auto watching = inotify_.watch(run.logs_dir.string(), run.owner, true);
  run.logs_watched = watching == Inotify::Watching::New || watching == Inotify::Watching::Already;
  if (watching != Inotify::Watching::NoneLeft || std::exchange(watches_troubled_, true)) return;
  say(
      fmt::format("watching files: this user's inotify watches are used up; logs are read every {} "
                  "ms instead, runs go on as ever; raise fs.inotify.max_user_watches (sysctl)",
                  options_.unnotified_scan / std::chrono::milliseconds(1)));
}

void FileWatch::say(std::string text) {
  if (callbacks_.on_trouble)
    post_([callback = callbacks_.on_trouble, text = std::move(text)] { callback(text); });
}

void FileWatch::end(const RunPtr& run) {
  inotify_.forget(run->owner);
  inotify_.forget(run->owner + 1);
  owners_.erase(run->owner);
  owners_.erase(run->owner + 1);
  for (const Inotify::Owner own : {run->owner, run->owner + 1})
    hangs_reported_.erase({ScanThreads::LaneKind::Run, own});
  for (const WatchedRank* log : run->logs)
    if (log->source) hangs_reported_.erase({ScanThreads::LaneKind::Run, log->source->own});
}

void FileWatch::changed(Inotify::Owner owner, std::string_view name) {
  const auto found = owners_.find(owner);
  if (found == owners_.end()) return;
  WatchedRun& run = *found->second;
  if (owner != run.owner) {
    run.scan_due = true;
    return;
  }
  if (name.empty()) {
    run.logs_watched = false;
    for (WatchedRank* log : run.logs) log->dirty = true;
  } else if (const auto number = rank_of(name)) {
    const auto rank = run.ranks.find(*number);
    if (rank != run.ranks.end()) rank->second->dirty = true;
  } else if (const auto log_name = rundir::name_of_node_log(name)) {
    const std::scoped_lock lock(mutex_);
    const auto log = run.auxiliaries.find(*log_name);
    if (log != run.auxiliaries.end()) log->second->dirty = true;
  }
}

// With less free space on its disk, a rank's last lines may be missing.
constexpr std::uint64_t kLineBytes = 64 << 10;

bool FileWatch::read_rank(const RunPtr& run, WatchedRank& rank, BootTime now) {
  bool swept = false;
  {
    // Read this before the log: bytes that are read to the end after the sweep are final.
    const std::scoped_lock lock(mutex_);
    swept = run->swept && (!rank.source || rank.source->over);
  }
  const auto publish = [&] {
    const LogFile::Extent extent = rank.file->extent();
    {
      const std::scoped_lock lock(mutex_);
      rank.extent = extent;
    }
    bytes_moved();
  };
  auto round = rank.reader.read(buffer_, publish);
  if (!round) {
    trouble(run, &rank, round.error());
    rank.dirty = false;  // the next blind scan tries again
    return false;
  }
  const bool script_ended =
      rank.source && !rank.source->end_due && run->ranks.begin()->second->end_asked;
  const bool end_seen = round->at_end && (rank.end_asked || script_ended || swept);
  if (end_seen) rank.reader.finish_line(*round);
  std::optional<std::int64_t> first;
  if ((rank.auxiliary.empty() || rank.source) &&
      (!round->steps.empty() || round->loss_vanished || !run->first_step_reported)) {
    const std::uint32_t number = rank.source ? run->ranks.begin()->first : rank.number;
    const bool tells = speaks(*run, rank, !round->steps.empty());
    const WallTime at = system_clock().now().wall;
    // An earlier incarnation of the agent may have read these bytes. Their age is at least that of
    // the log's last byte.
    const Duration behind = run->stepped_at ? Duration::zero() : rank.file->since_written(at);
    const std::scoped_lock lock(mutex_);
    if (tells) {
      for (const engine::StepLine& step : round->steps)
        run->progress.step(number, step, at, ++mark_);
      if (round->loss_vanished) run->progress.loss_vanished(number);
      if (!round->steps.empty() || (!run->stepped_at && run->progress.any()))
        run->stepped_at = now - behind;
    }
    if (!run->first_step_reported && run->progress.any()) {
      const auto* latest = run->progress.latest(number);
      if (latest) first = round->steps.empty() ? latest->step : round->steps.front().step;
    }
  }
  if (first) {
    run->first_step_reported = true;
    if (callbacks_.on_first_step)
      tell(run, [callback = callbacks_.on_first_step, key = run->key, step = *first] {
        callback(key, step);
      });
  }
  if (auto kept = rank.reader.remember(now, end_seen); !kept) trouble(run, &rank, kept.error());
  if (!round->at_end) return true;
  rank.dirty = false;
  if (rank.end_asked && !script_logs_pending(*run)) {
    rank.end_asked = false;
    finish_rank(run, rank);
  }
  if (swept) {
    {
      const std::scoped_lock lock(mutex_);
      rank.ended = true;
    }
    publish();
  }
  if (!rank.source) return false;
  wake_script(*run);
  return run->ranks.begin()->second->dirty;
}

void FileWatch::finish_rank(const RunPtr& run, WatchedRank& rank) {
  RankEnd answer{.evidence = {}, .success_seen = rank.reader.success_seen()};
  if (const engine::StepLine* latest = rank.reader.latest()) {
    answer.step = latest->step;
    if (latest->total > 0) answer.total = latest->total;
  }
  bool failed = false;
  {
    const std::scoped_lock lock(mutex_);
    failed = rank.failed;
  }
  int reported = 0;
  if (auto evidence = rank.reader.evidence()) {
    answer.evidence = std::move(evidence->line);
    answer.evidence_kind = evidence->kind;
    reported = evidence->rank;
  } else {
    trouble(run, &rank, evidence.error());
  }
  reported = take_script_logs(*run, rank, answer, failed, reported);
  if (failed) take_plog(rank, answer, reported);
  if (failed && reported == 0 && answer.evidence.empty() &&
      free_bytes(run->logs_dir).value_or(kLineBytes) < kLineBytes) {
    answer.evidence = fmt::format(
        "No space left on device: the disk of '{}' is full, so that the rank's log may end before "
        "it could say why",
        run->logs_dir.string());
    answer.evidence_kind = v1::EVIDENCE_KIND_CAUSE;
  }
  if (failed || answer.success_seen || run->success_file(rank.number).empty())
    return tell_rank_end(run, RankNo(rank.number), std::move(answer));
  run->success_due.emplace_back(RankNo(rank.number), std::move(answer));
  check_success(run);
}

std::optional<std::uint64_t> FileWatch::free_bytes(const std::filesystem::path& dir) const {
  if (options_.free_bytes) return options_.free_bytes(dir);
  const auto room = io::room_at(dir);
  return room ? std::optional(room->bytes) : std::nullopt;
}

void FileWatch::tell_rank_end(const RunPtr& run, RankNo rank, RankEnd answer) {
  if (!callbacks_.on_rank_end) return;
  tell(run, [callback = callbacks_.on_rank_end, key = run->key, rank, answer = std::move(answer)] {
    callback(key, rank, answer);
  });
}

bool FileWatch::pass(BootTime now) {
  bool more = false;
  for (const RunPtr& run : all_runs()) {
    if (!run->begun) continue;  // begin() is still queued
    // The evidence of ranks that have ended is waited for, so their logs come first.
    for (const bool waited_for : {true, false}) {
      for (WatchedRank* log : run->logs) {
        if (log->dirty && log->end_asked == waited_for) more = read_rank(run, *log, now) || more;
      }
    }
    for (WatchedRank* log : run->logs)
      if (log->source && log->source->due && !log->source->over && !log->source->scan.out)
        copy_script_log(run, *log);
    if (run->checkpoints && !run->saves.out &&
        ((run->scan_due && now >= run->scan_at) || now >= run->scan_sure_at))
      scan_saves(run, now);
  }
  return more;
}

void FileWatch::scan_blindly() {
  for (const RunPtr& run : all_runs()) {
    if (!run->begun) continue;
    if (!run->logs_watched) watch_logs(*run);
    for (WatchedRank* log : run->logs) {
      bool ended = false;
      {
        const std::scoped_lock lock(mutex_);
        ended = log->ended;
      }
      if (!ended) log->dirty = true;
      if (log->source) log->source->due = !log->source->over;
    }
  }
}

// Returns the time between two blind scans.
Duration FileWatch::scan_interval() {
  const auto unnotified = [](const RunPtr& run) {
    return run->begun && !run->logs_watched &&
           std::ranges::any_of(run->logs, [](const WatchedRank* log) { return !log->ended; });
  };
  const std::scoped_lock lock(mutex_);
  const bool any =
      std::ranges::any_of(runs_, [&](const auto& entry) { return unnotified(entry.second); });
  return any ? std::min(options_.unnotified_scan, options_.blind_scan) : options_.blind_scan;
}

void FileWatch::keep_room(BootTime now) {
  if (now < room_at_) return;
  room_at_ = now + options_.blind_scan;
  std::vector<std::shared_ptr<LogFile>> files;
  std::filesystem::path somewhere;
  for (const RunPtr& run : all_runs()) {
    if (!run->begun) continue;
    for (const WatchedRank* log : run->logs) files.push_back(log->file);
    somewhere = run->logs_dir;
  }
  if (files.empty()) return;
  std::uint64_t missing = 0;
  if (const auto free = free_bytes(somewhere))
    missing = *free < options_.disk_mark ? options_.disk_mark - *free : 0;
  if (missing > 0) give_up_plogs();
  auto given_up = make_room(files, options_.soft_cap, missing);
  const bool trouble_now = !given_up || *given_up > 0;
  if (trouble_now && !std::exchange(room_troubled_, true)) {
    say(given_up ? fmt::format("keeping room on the disk of '{}': {} unshipped bytes of the oldest "
                               "log lines were given up; free some space",
                               somewhere.string(), *given_up)
                 : given_up.error().message);
  }
  if (missing == 0) room_troubled_ = false;
}

void FileWatch::work() {
  BootTime next_pass{}, last_scan = system_clock().now().boot;
  room_at_ = last_scan + options_.blind_scan;
  bool more = false;
  ask_kernel();
  for (;;) {
    const BootTime now = system_clock().now().boot;
    // Between passes inotify is not even polled: a rank that writes a thousand lines a second wakes
    // this thread fifty times.
    const bool listen = now >= next_pass;
    const BootTime next_scan = last_scan + scan_interval();
    BootTime until = std::min(next_scan, scans_until());
    bool scan_waits = false;
    for (const RunPtr& run : all_runs()) {
      if (run->checkpoints && run->scan_due && !run->saves.out) {
        until = std::min(until, run->scan_at);
        scan_waits = scan_waits || now >= run->scan_at;
      }
    }
    if (!listen) until = std::min(until, next_pass);
    const Duration wait = more ? Duration{} : std::max<Duration>(Duration{}, until - now);
    pollfd fds[2] = {{inbox_->fd(), POLLIN, 0}, {inotify_.fd(), POLLIN, 0}};
    const timespec timeout{wait / std::chrono::seconds(1),
                           (wait % std::chrono::seconds(1)).count()};
    (void)::ppoll(fds, listen ? 2 : 1, &timeout, nullptr);

    std::vector<Inbox::Task> tasks;
    if (!inbox_->take(tasks)) return;
    for (Inbox::Task& task : tasks) task();
    const bool events = listen && (fds[1].revents & POLLIN) != 0;
    if (events)
      inotify_.drain([this](Inotify::Owner owner, std::string_view name) { changed(owner, name); });

    const BootTime then = system_clock().now().boot;
    const bool scan = then >= next_scan;
    if (scan) {
      ask_kernel();
      scan_blindly();
      read_plogs(system_clock().now());
      keep_room(then);
      scans_.kick();
      last_scan = then;
    }
    if (!tasks.empty() || events || scan || more || scan_waits) {
      more = pass(then);
      if (!more) next_pass = then + options_.coalesce;
    }
    check_scans(then);
  }
}

}  // namespace muster::agent
