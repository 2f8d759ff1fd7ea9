#include "agent/outputs/uploads.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "agent/outputs/stored_checkpoint.h"
#include "agent/outputs/upload_checkpoint.h"
#include "agent/outputs/upload_logs.h"
#include "agent/outputs/upload_outputs.h"
#include "common/engine/model/layout.h"
#include "common/log/log.h"
#include "common/proto/proto_time.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// The controller is away, perhaps: asked again after this time.
constexpr std::chrono::seconds kAskAgain{5};
// A store that is away for one job keeps no other from its own.
constexpr std::ptrdiff_t kAtOnce = 4;

Result<std::optional<UserEntry>> owner_of(const v1::NodeLaunch& order) {
  if (order.user().empty()) return std::optional<UserEntry>();
  auto found = find_user(order.user());
  if (!found) return fail(std::move(found.error()));
  // rclone would read with this agent's rights what a link of that user names.
  if (found->uid != ::geteuid())
    return fail(ErrorCode::Unsupported,
                fmt::format("outputs of another user ('{}') than the agent's are not uploaded",
                            found->name));
  return std::optional(*std::move(found));
}

// Each attempt has its own beside those of the others (common/engine/model/dirs.cc).
std::string save_dir_of(const v1::NodeLaunch& order, std::uint32_t attempt) {
  const fs::path own = order.watching().save_dir();
  return own.parent_path() / fmt::format("attempt-{}", attempt);
}

const UserEntry* pointer_to(const std::optional<UserEntry>& owner) {
  return owner ? &*owner : nullptr;
}

}  // namespace

void Uploads::want(const UploadTask& task, const v1::NodeLaunch& order) {
  const MutexLock lock(mutex_);
  if (stopped_) return;
  const auto same = [&](const Wanted& one) { return one.task == task && !one.abandoned->is_set(); };
  const auto known = std::ranges::find_if(wanted_, same);
  if (known != wanted_.end() && known->state == State::Waiting) known->task = task;
  if (known == wanted_.end())
    wanted_.push_back({.task = task,
                       .order = order,
                       .state = task.step && !task.seal ? State::ToFreeze : State::Waiting});
  start_thread();
  changed_.notify_all();
}

void Uploads::start_thread() {
  // One more, so that none waits to be frozen.
  const std::size_t needed = std::min<std::size_t>(
      std::max<std::size_t>(wanted_.size(), running_.empty() ? 0 : 1), 2 * kAtOnce + 1);
  if (threads_.size() >= needed) return;
  try {
    threads_.emplace_back([this] { work(); });
  } catch (const std::system_error& error) {
    log::warn("outputs wait: no thread is to be had", {{"why", error.code().message()}});
  }
}

void Uploads::while_running(const std::map<RunKey, const v1::NodeLaunch*>& orders) {
  const MutexLock lock(mutex_);
  if (stopped_) return;
  std::erase_if(running_, [&](const auto& one) { return !orders.contains(one.first); });
  for (const auto& [run, order] : orders) {
    const auto first = [](const auto& upload) {
      return upload.has_every() ? Clock::now() + to_duration(upload.every())
                                : Clock::time_point::max();
    };
    running_.try_emplace(run, Running{.order = *order,
                                      .due = first(order->upload()),
                                      .logs_due = first(order->logs_upload())});
  }
  for (Wanted& one : wanted_)
    if (one.task.others && !orders.contains(one.task.run)) one.abandoned->set();
  start_thread();
  changed_.notify_all();
}

bool Uploads::is_idle(const JobId& job, bool logs) {
  return std::ranges::none_of(wanted_, [&](const Wanted& one) {
    return one.task.run.first == job && one.task.logs == logs;
  });
}

Clock::time_point Uploads::want_others() {
  const auto now = Clock::now();
  auto next = now + std::chrono::hours(24);
  for (auto& [run, running] : running_) {
    // What is wanted of the job goes before, and another attempt of it may be over there.
    if (running.due <= now && is_idle(run.first, false)) {
      wanted_.push_back({.task = {.run = run, .others = true}, .order = running.order});
      running.due = now + to_duration(running.order.upload().every());
    }
    if (running.logs_due <= now && is_idle(run.first, true)) {
      wanted_.push_back(
          {.task = {.run = run, .logs = true, .others = true}, .order = running.order});
      running.logs_due = now + to_duration(running.order.logs_upload().every());
    }
    const auto first = std::min(running.due, running.logs_due);
    start_thread();
    next = std::min(next, std::max(first, now + std::chrono::seconds(1)));
  }
  return next;
}

void Uploads::keep_only(const std::set<UploadTask>& tasks) {
  const MutexLock lock(mutex_);
  for (auto one = wanted_.begin(); one != wanted_.end();) {
    if (one->task.others) {
      ++one;
      continue;
    }
    const bool goes_on = one->task.step && one->state == State::UnderWay &&
                         std::ranges::any_of(tasks, [&](const UploadTask& other) {
                           return other.run == one->task.run;
                         });
    if (goes_on || tasks.contains(one->task)) {
      ++one;
      continue;
    }
    one->abandoned->set();
    const bool is_idle = one->state == State::ToFreeze || one->state == State::Waiting;
    one = is_idle ? wanted_.erase(one) : std::next(one);
  }
}

void Uploads::forget_all_but(const std::set<JobId>& jobs) {
  const rundir::AgentLayout& layout = options_.layout;
  for (const std::filesystem::path& dir :
       {layout.uploaded(), layout.frozen(), layout.log_segments()}) {
    std::error_code wrong;
    for (std::filesystem::directory_iterator at(dir, wrong), end; !wrong && at != end;
         at.increment(wrong)) {
      const std::string name = at->path().filename().string();
      if (name.starts_with('.')) continue;  // io::replace_file is at work there
      std::error_code gone;
      if (!jobs.contains(JobId(name.substr(0, name.find('.')))))
        std::filesystem::remove_all(at->path(), gone);
    }
  }
}

void Uploads::stop() {
  std::vector<std::thread> threads;
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    for (const Wanted& one : wanted_) one.abandoned->set();
    changed_.notify_all();
    threads = std::move(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

Uploads::Place Uploads::next() {
  // One that nobody wanted any more, and that is wanted again, may still be under way.
  const auto to_freeze =
      std::ranges::find_if(wanted_, [this](const Wanted& one) MUSTER_REQUIRES(mutex_) {
        return one.state == State::ToFreeze &&
               std::ranges::none_of(wanted_, [&](const Wanted& other) {
                 return other.task == one.task &&
                        (other.state == State::Freezing || other.state == State::UnderWay);
               });
      });
  if (to_freeze != wanted_.end()) return to_freeze;
  return std::ranges::find_if(wanted_, [this](const Wanted& one) MUSTER_REQUIRES(mutex_) {
    if (one.state != State::Waiting) return false;
    std::ptrdiff_t under_way = 0;
    for (const Wanted& other : wanted_) {
      if (other.state != State::UnderWay || other.task.logs != one.task.logs) continue;
      if (++under_way >= kAtOnce || other.task.run.first == one.task.run.first) return false;
    }
    return true;
  });
}

// Only the thread that freezes or uploads one erases it.
void Uploads::work() {
  ::pthread_setname_np(::pthread_self(), "agent-upload");
  for (;;) {
    Place one;
    bool freezes = false;
    {
      const MutexLock lock(mutex_);
      for (;;) {
        if (stopped_) return;
        const auto until = want_others();
        if ((one = next()) != wanted_.end()) break;
        changed_.wait_until(mutex_, until);
      }
      freezes = one->state == State::ToFreeze;
      one->state = freezes ? State::Freezing : State::UnderWay;
      one->ranks_run = running_.contains(one->task.run);
    }
    if (freezes)
      freeze(one);
    else
      upload(one);
  }
}

std::set<std::string> Uploads::frozen_names(const RunKey& run) {
  std::set<std::string> names;
  for (const Wanted& one : wanted_)
    if (one.task.run == run && one.task.step && !one.abandoned->is_set())
      names.insert(place_of(one).name());
  return names;
}

void Uploads::freeze(Place one) {
  std::set<std::string> kept;
  {
    const MutexLock lock(mutex_);
    kept = frozen_names(one->task.run);
  }
  const auto owner = owner_of(one->order);
  if (!owner) return end(one, Uploaded::failed(owner.error()));
  thaw(one->order.upload().dir(), one->task.run.first, options_.layout.frozen(), kept,
       pointer_to(*owner));
  auto files = freeze_checkpoint(place_of(*one), pointer_to(*owner));
  if (!files) return end(one, Uploaded::failed(files.error()));
  const MutexLock lock(mutex_);
  if (one->abandoned->is_set()) {
    wanted_.erase(one);
  } else {
    one->files = *std::move(files);
    one->state = State::Waiting;
  }
  changed_.notify_all();
}

void Uploads::upload(Place one) { end(one, result_of(*one)); }

void Uploads::end(Place one, const Uploaded& uploaded) {
  std::optional<UploadTask> ended;
  {
    const MutexLock lock(mutex_);
    if (stopped_) return;
    if (!one->abandoned->is_set()) ended = one->task;
    wanted_.erase(one);
    changed_.notify_all();
  }
  if (!ended) return;
  if (!ended->others) return options_.on_end(*ended, uploaded);
  if (!uploaded.problem.empty())
    log::warn(fmt::format("not all {} are uploaded yet: {}", ended->logs ? "logs" : "outputs",
                          uploaded.problem),
              {{"job", ended->run.first.str()}});
}

CheckpointPlace Uploads::place_of(const Wanted& wanted) const {
  return {.out = wanted.order.upload().dir(),
          .save_dir = wanted.order.watching().save_dir(),
          .layout = wanted.order.watching().layout(),
          .run = wanted.task.run,
          .step = wanted.task.step.value_or(0),
          .records = options_.layout.frozen()};
}

Uploaded Uploads::result_of(const Wanted& wanted) const {
  if (wanted.task.logs) {
    const auto key = key_of(wanted);
    if (!key) return Uploaded::failed(key.error());
    Uploaded uploaded = logs_with(*key, wanted);
    // As below.
    if (!uploaded.problem.empty() && !wanted.abandoned->is_set())
      if (const auto now = key_of(wanted); now && *now != *key) uploaded = logs_with(*now, wanted);
    return uploaded;
  }
  const auto owner = owner_of(wanted.order);
  if (!owner) return Uploaded::failed(owner.error());
  if (!wanted.task.step && !wanted.task.others)
    thaw(wanted.order.upload().dir(), wanted.task.run.first, options_.layout.frozen(), {},
         pointer_to(*owner));
  const auto key = key_of(wanted);
  if (!key) return Uploaded::failed(key.error());
  Uploaded uploaded = uploaded_with(*key, pointer_to(*owner), wanted);
  // Perhaps somebody has set another key meanwhile.
  if (!uploaded.problem.empty() && !wanted.abandoned->is_set())
    if (const auto now = key_of(wanted); now && *now != *key)
      uploaded = uploaded_with(*now, pointer_to(*owner), wanted);
  // The seal is made of the frozen checkpoint, too.
  const bool is_done =
      wanted.task.seal || !wanted.order.upload().seals() || !uploaded.problem.empty();
  if (wanted.task.step && is_done && !wanted.abandoned->is_set())
    thaw_one(place_of(wanted), pointer_to(*owner));
  return uploaded;
}

Uploaded Uploads::uploaded_with(const std::string& key, const UserEntry* owner,
                                const Wanted& wanted) const {
  const v1::NodeLaunch& order = wanted.order;
  const UploadWork work{
      .upload = order.upload(),
      .key = key,
      .owner = owner,
      .job = wanted.task.run.first.str(),
      .sent = options_.layout.uploaded() / wanted.task.run.first.str(),
      .rate_limit = wanted.ranks_run ? order.upload().rate_limit() : 0,
      .abandoned = *wanted.abandoned,
      .away_most = wanted.task.others ? std::chrono::minutes(0) : kUploadAwayMost};
  if (wanted.task.others) return upload_others(work, order.watching().save_dir());
  if (wanted.task.seal) {
    Uploaded sealed = upload_seal(work, place_of(wanted), wanted.task.sums);
    remove_old(work, wanted, sealed);
    return sealed;
  }
  if (wanted.task.step) return upload_checkpoint(work, place_of(wanted), *wanted.files);
  OutputSaves saves{.layout = order.watching().layout(),
                    .dir = fs::path(order.watching().save_dir()).parent_path()};
  for (const RemoteCheckpoint& one : wanted.task.kept)
    saves.kept.emplace(fs::path(save_dir_of(order, one.attempt)).filename(), one.step);
  Uploaded all = upload_outputs(work, saves);
  remove_old(work, wanted, all);
  return all;
}

void Uploads::remove_old(const UploadWork& work, const Wanted& wanted, Uploaded& uploaded) {
  if (!uploaded.problem.empty() || wanted.task.remove.empty()) return;
  const auto layout = engine::make_layout(wanted.order.watching().layout());
  for (const RemoteCheckpoint& one : wanted.task.remove) {
    const fs::path dir = save_dir_of(wanted.order, one.attempt);
    const StoredCheckpoint old{.dir = dir.lexically_relative(work.upload.dir()), .step = one.step};
    const auto done =
        layout ? remove_checkpoint(work, old, **layout, one.mark) : fail(Error(layout.error()));
    if (!done) {
      // The next time: a store that refuses one refuses all, and somebody waits for this end.
      uploaded.not_removed =
          fmt::format("step {} of attempt {}: {}", one.step, one.attempt, done.error().message);
      return;
    }
    uploaded.removed.push_back({.attempt = one.attempt, .step = one.step});
  }
}

// The files belong to the agent's own user, whoever runs the ranks.
Uploaded Uploads::logs_with(const std::string& key, const Wanted& wanted) const {
  const auto& [job, attempt] = wanted.task.run;
  const v1::LogUpload& upload = wanted.order.logs_upload();
  return upload_logs(
      {.upload = upload,
       .key = key,
       .rate_limit = wanted.ranks_run ? upload.rate_limit() : 0,
       .abandoned = *wanted.abandoned,
       .away_most = wanted.task.others ? std::chrono::minutes(0) : kUploadAwayMost},
      {.run = wanted.task.run,
       .run_dir = options_.layout.run(job, attempt),
       .dir = options_.layout.log_segments() / fmt::format("{}.{}", job.str(), attempt.value),
       .logs = options_.logs(),
       .has_ended = !wanted.task.others});
}

Result<std::string> Uploads::key_of(const Wanted& wanted) const {
  const std::string& secret =
      wanted.task.logs ? wanted.order.logs_upload().secret() : wanted.order.upload().secret();
  if (secret.empty()) return std::string();
  const auto until = Clock::now() + kUploadAwayMost;
  for (bool is_first = true;; is_first = false) {
    const auto given = options_.fetch_secrets(wanted.order);
    if (given) {
      const auto found = given->find(secret);
      if (found != given->end()) return found->second;
      return fail(ErrorCode::Internal, "the controller gave no key of the store");
    }
    const bool may_pass = given.error().code == ErrorCode::Unreachable && Clock::now() < until;
    if (!may_pass || wanted.task.others) return fail(Error(given.error()));
    if (is_first)
      log::warn(
          fmt::format("{} wait for the key of their store", wanted.task.logs ? "logs" : "outputs"),
          {{"job", wanted.task.run.first.str()}, {"why", given.error().message}});
    if (wanted.abandoned->wait(kAskAgain)) return fail(Error(given.error()));
  }
}

}  // namespace muster::agent
