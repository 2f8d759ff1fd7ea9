#include "agent/watch/watch.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "agent/watch/checkpoint_watch.h"
#include "agent/watch/disk_view.h"
#include "agent/watch/inotify.h"
#include "agent/watch/progress.h"
#include "agent/watch/rank_reader.h"
#include "agent/watch/room.h"
#include "common/rundir/layout.h"

namespace muster::agent {
namespace {

constexpr std::size_t kBuffer = 256 << 10;
constexpr Duration kScanApart = std::chrono::milliseconds(50);
constexpr Duration kScanSure = std::chrono::seconds(10);  // where the kernel does tell, but only of the directories that could be watched

struct Rank {
  Rank(std::uint32_t number, std::shared_ptr<LogFile> file, const std::shared_ptr<const Patterns>& patterns)
      : number(number), file(file), reader(std::move(file), patterns) {}
  const std::uint32_t number;
  const std::shared_ptr<LogFile> file;

  // The watch's thread:
  RankReader reader;
  bool dirty = true;
  bool end_asked = false;
  bool troubled = false;

  // Under Watch's mutex:
  LogFile::Extent extent;
  bool failed = false;
  bool ended = false;
  bool complete = false;
};

struct Run {
  RunKey key;
  std::filesystem::path logs_dir;
  std::shared_ptr<const Patterns> patterns;

  // The watch's thread:
  bool begun = false;
  Inotify::Owner owner = 0;  // +1: its save directory's
  bool logs_watched = false;
  bool scan_due = true;
  bool blind = false;       // its save directory is on a file system that does not tell
  BootTime scan_at{};       // not before
  BootTime scan_sure_at{};  // at the latest
  bool first_step_told = false;

  // Under Watch's mutex (the map itself never changes):
  std::map<std::uint32_t, std::unique_ptr<Rank>> ranks;
  std::unique_ptr<CheckpointWatch> checkpoints;  // look() and dirs(): the watch's thread, without the mutex
  Progress progress;
  bool swept = false;
  bool removed = false;
};

// "rank-12.log" -> 12
std::optional<std::uint32_t> rank_of(std::string_view name) {
  if (!name.starts_with("rank-") || !name.ends_with(".log")) return std::nullopt;
  name = name.substr(5, name.size() - 9);
  std::uint32_t rank = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), rank);
  return error == std::errc() && end == name.data() + name.size() ? std::optional(rank) : std::nullopt;
}

class FileWatch final : public Watch {
 public:
  FileWatch(WatchOptions options, Post post, WatchCallbacks callbacks, Inotify inotify, io::UniqueFd wake_fd)
      : options_(std::move(options)),
        post_(std::move(post)),
        callbacks_(std::move(callbacks)),
        inotify_(std::move(inotify)),
        wake_fd_(std::move(wake_fd)),
        buffer_(kBuffer),
        thread_([this] { work(); }) {}
  ~FileWatch() override { stop(); }

  void stop() override;
  Result<void> add(const RunKey& run, const std::filesystem::path& run_dir, const v1::Watching& watching, const std::vector<std::uint32_t>& ranks) override;
  void rank_ended(const RunKey& run, RankNo rank, bool failed) override;
  void run_swept(const RunKey& run) override;
  void remove(const RunKey& run) override;
  bool logs_complete(const RunKey& run) override;
  Readings readings(std::uint64_t since) override;

  std::vector<LogStatus> logs() override;
  Result<LogPiece> read(const LogName& name, std::uint64_t from, std::size_t most) override;
  void controller_has(const LogName& name, std::uint64_t offset, std::uint64_t synced, bool complete) override;
  void on_bytes(std::function<void()> wake) override;

 private:
  using RunPtr = std::shared_ptr<Run>;
  void work();
  void enqueue(std::function<void()> task);
  RunPtr find(const RunKey& run);
  std::vector<RunPtr> all_runs();
  void tell(const RunPtr& run, std::function<void()> closure);
  void trouble(const RunPtr& run, Rank* rank, const Error& error);
  void bytes_moved();

  void begin(const RunPtr& run);
  void end(const RunPtr& run);
  bool pass(BootTime now);
  bool read_rank(const RunPtr& run, Rank& rank, BootTime now);
  void finish_rank(const RunPtr& run, Rank& rank);
  void scan(const RunPtr& run, BootTime now);
  void look_blindly();
  void changed(Inotify::Owner owner, std::string_view name);

  const WatchOptions options_;
  const Post post_;
  const WatchCallbacks callbacks_;

  std::mutex mutex_;
  std::map<RunKey, RunPtr> runs_;
  std::vector<std::function<void()>> tasks_;
  std::uint64_t mark_ = 0;
  bool stopping_ = false;

  std::mutex wake_mutex_;  // held while `wake_` runs, so that on_bytes can end it
  std::function<void()> wake_;

  // The watch's thread:
  Inotify inotify_;
  const io::UniqueFd wake_fd_;
  std::vector<char> buffer_;
  std::map<Inotify::Owner, RunPtr> owners_;
  Inotify::Owner next_owner_ = 0;
  bool room_troubled_ = false;

  std::thread thread_;  // last: it uses all of the above
};

// --- any thread -----------------------------------------------------------------------------------------------------------------------

void FileWatch::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  const std::uint64_t one = 1;
  (void)!::write(wake_fd_.get(), &one, sizeof one);
  if (thread_.joinable()) thread_.join();
}

void FileWatch::enqueue(std::function<void()> task) {
  {
    const std::scoped_lock lock(mutex_);
    if (stopping_) return;
    tasks_.push_back(std::move(task));
  }
  const std::uint64_t one = 1;
  (void)!::write(wake_fd_.get(), &one, sizeof one);
}

FileWatch::RunPtr FileWatch::find(const RunKey& run) {
  const std::scoped_lock lock(mutex_);
  const auto found = runs_.find(run);
  return found == runs_.end() ? nullptr : found->second;
}

std::vector<FileWatch::RunPtr> FileWatch::all_runs() {
  const std::scoped_lock lock(mutex_);
  std::vector<RunPtr> runs;
  runs.reserve(runs_.size());
  for (const auto& [key, run] : runs_) runs.push_back(run);
  return runs;
}

Result<void> FileWatch::add(const RunKey& key, const std::filesystem::path& run_dir, const v1::Watching& watching, const std::vector<std::uint32_t>& ranks) {
  const std::string doing = fmt::format("watching job '{}' attempt {}", key.first.str(), key.second.value);
  const rundir::RunLayout layout(run_dir);
  const auto run = std::make_shared<Run>();
  run->key = key;
  run->logs_dir = layout.logs();
  auto patterns = Patterns::make(watching);
  if (!patterns) return fail(std::move(patterns.error()).in(doing));
  run->patterns = std::move(*patterns);
  auto checkpoints = CheckpointWatch::make(watching);
  if (!checkpoints) return fail(std::move(checkpoints.error()).in(doing));
  run->checkpoints = std::move(*checkpoints);
  for (const std::uint32_t number : ranks) {
    auto file = LogFile::open(layout.rank_log(number), layout.rank_cursor(number));
    if (!file) return fail(std::move(file.error()).in(doing));
    auto rank = std::make_unique<Rank>(number, std::shared_ptr<LogFile>(std::move(*file)), run->patterns);
    if (const auto* latest = rank->reader.latest()) run->progress.restore(number, *latest);
    run->ranks.emplace(number, std::move(rank));
  }
  {
    const std::scoped_lock lock(mutex_);
    if (!runs_.emplace(key, run).second) return {};  // known already: adding is idempotent
  }
  enqueue([this, run] { begin(run); });
  return {};
}

void FileWatch::rank_ended(const RunKey& key, RankNo number, bool failed) {
  const RunPtr run = find(key);
  const auto found = run ? run->ranks.find(number.value) : decltype(run->ranks.find(0)){};
  if (!run || found == run->ranks.end()) return;
  Rank* rank = found->second.get();
  {
    const std::scoped_lock lock(mutex_);
    rank->failed = failed;
  }
  enqueue([run, rank] {
    rank->end_asked = true;
    rank->dirty = true;
  });
}

void FileWatch::run_swept(const RunKey& key) {
  const RunPtr run = find(key);
  if (!run) return;
  enqueue([this, run] {
    {
      const std::scoped_lock lock(mutex_);
      run->swept = true;
    }
    for (const auto& [number, rank] : run->ranks) rank->dirty = true;
    run->scan_due = true;
    run->scan_at = {};
  });
}

void FileWatch::remove(const RunKey& key) {
  RunPtr run;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = runs_.find(key);
    if (found == runs_.end()) return;
    run = found->second;
    run->removed = true;
    runs_.erase(found);
  }
  enqueue([this, run] { end(run); });
}

bool FileWatch::logs_complete(const RunKey& key) {
  const std::scoped_lock lock(mutex_);
  const auto found = runs_.find(key);
  return found != runs_.end() && std::ranges::all_of(found->second->ranks, [](const auto& entry) { return entry.second->complete; });
}

Readings FileWatch::readings(std::uint64_t since) {
  const std::scoped_lock lock(mutex_);
  Readings all{.mark = mark_};
  for (const auto& [key, run] : runs_) {
    v1::AttemptReading& reading = all.readings.emplace_back();
    reading.set_job_id(key.first.str());
    reading.set_attempt(key.second.value);
    for (const auto& [number, rank] : run->ranks) {
      v1::RankReading& to = *reading.add_ranks();
      to.set_rank(number);
      to.set_log_bytes(rank->extent.end);
    }
    run->progress.fill(reading, since);
    if (run->checkpoints) run->checkpoints->fill(reading, since);
  }
  return all;
}

std::vector<LogStatus> FileWatch::logs() {
  std::vector<LogStatus> failed, others;
  const std::scoped_lock lock(mutex_);
  for (const auto& [key, run] : runs_) {
    for (const auto& [number, rank] : run->ranks) {
      if (rank->complete) continue;
      (rank->failed ? failed : others).push_back({{key, RankNo(number)}, rank->extent.end, rank->extent.segment, rank->ended, rank->failed});
    }
  }
  failed.insert(failed.end(), std::make_move_iterator(others.begin()), std::make_move_iterator(others.end()));
  return failed;
}

Result<LogPiece> FileWatch::read(const LogName& name, std::uint64_t from, std::size_t most) {
  std::shared_ptr<LogFile> file;
  bool ended = false;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = runs_.find(name.run);
    if (found == runs_.end() || !found->second->ranks.contains(name.rank.value)) return LogPiece{.offset = from};
    const Rank& rank = *found->second->ranks[name.rank.value];
    file = rank.file;
    ended = rank.ended;
  }
  return file->read(from, most, ended);
}

void FileWatch::controller_has(const LogName& name, std::uint64_t offset, std::uint64_t synced, bool complete) {
  const RunPtr run = find(name.run);
  const auto found = run ? run->ranks.find(name.rank.value) : decltype(run->ranks.find(0)){};
  if (!run || found == run->ranks.end()) return;
  found->second->file->controller_has(offset, synced);
  const LogFile::Extent extent = found->second->file->extent();
  const std::scoped_lock lock(mutex_);
  found->second->extent = extent;
  if (complete) found->second->complete = true;
}

void FileWatch::on_bytes(std::function<void()> wake) {
  const std::scoped_lock lock(wake_mutex_);
  wake_ = std::move(wake);
}

// --- the watch's thread -----------------------------------------------------------------------------------------------------------------

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

void FileWatch::trouble(const RunPtr& run, Rank* rank, const Error& error) {
  if (rank && std::exchange(rank->troubled, true)) return;
  if (!callbacks_.on_trouble) return;
  tell(run, [told = callbacks_.on_trouble, text = error.message + ", trying on"] { told(text); });
}

void FileWatch::begin(const RunPtr& run) {
  run->begun = true;
  run->owner = next_owner_;
  next_owner_ += 2;
  owners_[run->owner] = run;
  owners_[run->owner + 1] = run;
  run->logs_watched = inotify_.watch(run->logs_dir.string(), run->owner, true) != Inotify::Watching::No;
  run->blind = run->checkpoints && is_network_file_system(run->checkpoints->save_dir());
}

void FileWatch::end(const RunPtr& run) {
  inotify_.forget(run->owner);
  inotify_.forget(run->owner + 1);
  owners_.erase(run->owner);
  owners_.erase(run->owner + 1);
}

void FileWatch::changed(Inotify::Owner owner, std::string_view name) {
  const auto found = owners_.find(owner);
  if (found == owners_.end()) return;
  Run& run = *found->second;
  if (owner != run.owner) {
    run.scan_due = true;
    return;
  }
  if (name.empty()) {
    run.logs_watched = false;
    for (const auto& [number, rank] : run.ranks) rank->dirty = true;
  } else if (const auto number = rank_of(name)) {
    const auto rank = run.ranks.find(*number);
    if (rank != run.ranks.end()) rank->second->dirty = true;
  }
}

bool FileWatch::read_rank(const RunPtr& run, Rank& rank, BootTime now) {
  bool swept = false;
  {
    // Before the read: what is read to its end after the sweep is final.
    const std::scoped_lock lock(mutex_);
    swept = run->swept;
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
    rank.dirty = false;  // the blind look tries again
    return false;
  }
  const bool end_seen = round->at_end && (rank.end_asked || swept);
  if (end_seen) rank.reader.finish_line(*round);
  std::optional<std::int64_t> first;
  if (!round->steps.empty() || !run->first_step_told) {
    const WallTime at = system_clock().now().wall;
    const std::scoped_lock lock(mutex_);
    for (const engine::StepLine& step : round->steps) run->progress.step(rank.number, step, at, ++mark_);
    if (!run->first_step_told && run->progress.any()) {
      const auto* latest = run->progress.latest(rank.number);
      if (latest) first = round->steps.empty() ? latest->step : round->steps.front().step;
    }
  }
  if (first) {
    run->first_step_told = true;
    if (callbacks_.on_first_step) tell(run, [told = callbacks_.on_first_step, key = run->key, step = *first] { told(key, step); });
  }
  if (auto kept = rank.reader.remember(now, end_seen); !kept) trouble(run, &rank, kept.error());
  if (!round->at_end) return true;
  rank.dirty = false;
  if (std::exchange(rank.end_asked, false)) finish_rank(run, rank);
  if (swept) {
    {
      const std::scoped_lock lock(mutex_);
      rank.ended = true;
    }
    publish();
  }
  return false;
}

void FileWatch::finish_rank(const RunPtr& run, Rank& rank) {
  RankEnd answer{.evidence = {}, .success_seen = rank.reader.success_seen()};
  if (auto evidence = rank.reader.evidence()) {
    answer.evidence = std::move(*evidence);
  } else {
    trouble(run, &rank, evidence.error());
  }
  if (!run->patterns->success_file.empty() && ::access(run->patterns->success_file.c_str(), F_OK) == 0) answer.success_seen = true;
  if (callbacks_.on_rank_end) {
    tell(run, [told = callbacks_.on_rank_end, key = run->key, number = RankNo(rank.number), answer = std::move(answer)] { told(key, number, answer); });
  }
}

void FileWatch::scan(const RunPtr& run, BootTime now) {
  run->scan_due = false;
  run->scan_sure_at = now + (run->blind ? options_.blind_scan : kScanSure);
  auto found = run->checkpoints->look();
  const auto dirs = run->checkpoints->dirs(found);
  inotify_.keep(run->owner + 1, dirs);
  bool all_watched = true;
  bool new_dir = false;
  for (const std::string& dir : dirs) {
    const Inotify::Watching watched = inotify_.watch(dir, run->owner + 1, false);
    all_watched = all_watched && watched != Inotify::Watching::No;
    new_dir = new_dir || watched == Inotify::Watching::New;
  }
  // What happened in a directory between the look and its watch is only seen by looking again.
  if (new_dir) run->scan_due = true;
  if (!all_watched) run->scan_sure_at = now + options_.blind_scan;
  // A slow file system is not looked at more than a tenth of the time.
  const BootTime done = system_clock().now().boot;
  run->scan_at = done + std::max<Duration>(kScanApart, 10 * (done - now));
  bool news = false;
  {
    const std::scoped_lock lock(mutex_);
    news = run->checkpoints->accept(std::move(found), ++mark_);
  }
  if (news && callbacks_.on_shard_finished) tell(run, [told = callbacks_.on_shard_finished, key = run->key] { told(key); });
}

bool FileWatch::pass(BootTime now) {
  bool more = false;
  for (const RunPtr& run : all_runs()) {
    if (!run->begun) continue;  // on the way
    // Somebody waits for the evidence of those that have ended.
    for (const bool waited_for : {true, false}) {
      for (const auto& [number, rank] : run->ranks) {
        if (rank->dirty && rank->end_asked == waited_for) more = read_rank(run, *rank, now) || more;
      }
    }
    if (run->checkpoints && ((run->scan_due && now >= run->scan_at) || now >= run->scan_sure_at)) scan(run, now);
  }
  return more;
}

void FileWatch::look_blindly() {
  std::vector<std::shared_ptr<LogFile>> files;
  std::filesystem::path somewhere;
  for (const RunPtr& run : all_runs()) {
    if (!run->begun) continue;
    if (!run->logs_watched) run->logs_watched = inotify_.watch(run->logs_dir.string(), run->owner, true) != Inotify::Watching::No;
    for (const auto& [number, rank] : run->ranks) {
      bool ended = false;
      {
        const std::scoped_lock lock(mutex_);
        ended = rank->ended;
      }
      if (!ended) rank->dirty = true;
      files.push_back(rank->file);
    }
    somewhere = run->logs_dir;
  }
  if (files.empty()) return;
  std::uint64_t missing = 0;
  if (options_.free_bytes) {
    const std::uint64_t free = options_.free_bytes(somewhere);
    missing = free < options_.disk_mark ? options_.disk_mark - free : 0;
  } else {
    struct statvfs about{};
    if (::statvfs(somewhere.c_str(), &about) == 0) {
      const std::uint64_t free = static_cast<std::uint64_t>(about.f_bavail) * about.f_frsize;
      missing = free < options_.disk_mark ? options_.disk_mark - free : 0;
    }
  }
  auto given_up = make_room(files, options_.soft_cap, missing);
  const bool trouble_now = !given_up || *given_up > 0;
  if (trouble_now && !std::exchange(room_troubled_, true) && callbacks_.on_trouble) {
    std::string text = given_up ? fmt::format("keeping room on the disk of '{}': {} unshipped bytes of the oldest log lines were given up; free some space",
                                              somewhere.string(), *given_up)
                                : given_up.error().message;
    post_([told = callbacks_.on_trouble, text = std::move(text)] { told(text); });
  }
  if (missing == 0) room_troubled_ = false;
}

void FileWatch::work() {
  BootTime next_pass{}, next_look = system_clock().now().boot + options_.blind_scan;
  bool more = false;
  for (;;) {
    const BootTime now = system_clock().now().boot;
    // Between passes inotify is not even asked: a rank that writes a thousand lines a second wakes us fifty times.
    const bool listen = now >= next_pass;
    BootTime until = next_look;
    bool scan_waits = false;
    for (const RunPtr& run : all_runs()) {
      if (run->checkpoints && run->scan_due) {
        until = std::min(until, run->scan_at);
        scan_waits = scan_waits || now >= run->scan_at;
      }
    }
    if (!listen) until = std::min(until, next_pass);
    const Duration wait = more ? Duration{} : std::max<Duration>(Duration{}, until - now);
    pollfd fds[2] = {{wake_fd_.get(), POLLIN, 0}, {inotify_.fd(), POLLIN, 0}};
    const timespec timeout{wait / std::chrono::seconds(1), (wait % std::chrono::seconds(1)).count()};
    (void)::ppoll(fds, listen ? 2 : 1, &timeout, nullptr);

    std::vector<std::function<void()>> tasks;
    {
      const std::scoped_lock lock(mutex_);
      if (stopping_) return;
      tasks.swap(tasks_);
    }
    if ((fds[0].revents & POLLIN) != 0) {
      std::uint64_t count = 0;
      (void)!::read(wake_fd_.get(), &count, sizeof count);
    }
    for (const auto& task : tasks) task();
    const bool events = listen && (fds[1].revents & POLLIN) != 0;
    if (events) inotify_.drain([this](Inotify::Owner owner, std::string_view name) { changed(owner, name); });

    const BootTime then = system_clock().now().boot;
    const bool look = then >= next_look;
    if (look) {
      look_blindly();
      next_look = then + options_.blind_scan;
    }
    if (!tasks.empty() || events || look || more || scan_waits) {
      more = pass(then);
      if (!more) next_pass = then + options_.coalesce;
    }
  }
}

}  // namespace

Result<std::unique_ptr<Watch>> Watch::start(WatchOptions options, Post post, WatchCallbacks callbacks) {
  auto inotify = Inotify::make();
  if (!inotify) return fail(std::move(inotify.error()));
  io::UniqueFd wake(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!wake) return fail_errno("making an event descriptor for the log watch", errno);
  return std::unique_ptr<Watch>(new FileWatch(std::move(options), std::move(post), std::move(callbacks), std::move(*inotify), std::move(wake)));
}

}  // namespace muster::agent
