#include "agent/stage/input_fetch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "agent/store/rclone_verdict.h"
#include "common/base/controls.h"
#include "common/digest/file_digests.h"
#include "common/io/file.h"
#include "common/io/memory_file.h"
#include "common/io/remove_tree.h"
#include "common/io/room.h"

namespace muster::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kKeptAtOnce = 1'000;
constexpr std::size_t kListBytes = 512 << 20, kLogBytes = 64 << 20;
constexpr std::chrono::hours kListTime{1}, kBatchTime{24};

// A run of rclone that nobody waits for any more is ended.
process::ToolLimits limits_of(const FetchCalls& calls, milliseconds time, std::size_t bytes,
                              std::function<void(pid_t, std::string_view)> observe) {
  return {.each = time,
          .total = time,
          .parallel = 1,
          .bytes = bytes,
          .cancel_fd = calls.abandoned.fd(),
          .observe = std::move(observe),
          .observe_interval = milliseconds(500)};
}

// Why a failed run is not tried again; none: it is.
std::optional<ErrorCode> final_error(const process::ToolAnswer& answer, Verdict verdict) {
  if (answer.absent) return ErrorCode::Io;
  if (answer.why.starts_with("it printed more than")) return ErrorCode::InvalidArgument;
  switch (verdict) {
    case Verdict::Refused: return ErrorCode::NotAllowed;
    case Verdict::DiskFull: return ErrorCode::ResourceExhausted;
    case Verdict::NodeFault: return ErrorCode::Io;
    case Verdict::TryAgain:
    case Verdict::Absent:
    case Verdict::Directory: break;
  }
  return std::nullopt;
}

// The waits between tries of one thing: longer ones, and at last none.
class Tries {
 public:
  explicit Tries(const FetchCalls& calls) : abandoned_(calls.abandoned), most_(calls.away_most) {}
  // Something has come.
  void restart() {
    until_ = std::chrono::steady_clock::now() + most_;
    next_ = seconds(1);
  }
  [[nodiscard]] bool is_over() const { return std::chrono::steady_clock::now() > until_; }
  [[nodiscard]] std::string text(std::string_view why) const {
    const auto whole = std::chrono::floor<std::chrono::minutes>(most_);
    return fmt::format(
        "nothing has come for {}: {}",
        whole == most_ ? fmt::format("{} min", whole.count()) : fmt::format("{} ms", most_.count()),
        why);
  }
  // After a failure. Success: try again, now.
  Result<void> wait(const std::string& why) {
    if (is_over()) return fail(ErrorCode::Unreachable, text(why));
    abandoned_.wait(next_);
    next_ = std::min<milliseconds>(2 * next_, seconds(30));
    return {};
  }

 private:
  const Abandoned& abandoned_;
  const milliseconds most_;
  std::chrono::steady_clock::time_point until_ = std::chrono::steady_clock::now() + most_;
  milliseconds next_ = seconds(1);
};

// rclone lists each of them, or asks for each object: what are fewer requests.
std::size_t directories_of(const std::vector<store::Object>& batch) {
  std::set<std::string_view> directories;
  for (const store::Object& one : batch) {
    const std::size_t slash = one.name.rfind('/');
    directories.insert(slash == std::string::npos ? ""
                                                  : std::string_view(one.name).substr(0, slash));
  }
  return directories.size();
}

// A run of rclone that copies a batch, seen from outside. It ends the run where that writes what it
// must not.
class Watch {
 public:
  Watch(const FetchPlace& place, const std::vector<store::Object>& batch)
      : place_(place), batch_(batch) {}

  // The bytes that have come.
  std::uint64_t check(pid_t pid) {
    std::uint64_t bytes = 0;
    for (const store::Object& one : batch_) {
      struct stat status{};
      if (::stat((place_.partial / store::local_name(one.name)).c_str(), &status) != 0) continue;
      const auto size = static_cast<std::uint64_t>(status.st_size);
      if (size > one.size) end(pid, ErrorCode::DataLoss, too_long(one));
      bytes += std::min(size, one.size);  // not its blocks: rclone reserves all of them first
    }
    if (const auto room = io::room_at(place_.partial); room && room->bytes < place_.min_free_bytes)
      end(pid, ErrorCode::ResourceExhausted, "the disk is full: others write to it, too");
    return bytes;
  }
  // The run leads a process group of its own, and is not reaped yet.
  void end(pid_t pid, ErrorCode code, std::string why) {
    if (!error_) error_ = Error{code, std::move(why)};
    ::kill(-pid, SIGKILL);
  }
  // Why the run was ended.
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  static std::string too_long(const store::Object& one) {
    return fmt::format("'{}' is longer than the {} bytes that the list says",
                       without_controls(one.name), one.size);
  }

  const FetchPlace& place_;
  const std::vector<store::Object>& batch_;
  std::optional<Error> error_;
};

class Fetch {
 public:
  Fetch(process::ToolRunner& runner, const RcloneRun& rclone, const FetchPlace& place,
        InputCache& cache, const FetchCalls& calls)
      : runner_(runner), rclone_(rclone), place_(place), cache_(cache), calls_(calls) {}

  Result<void> run(std::vector<store::Object> missing) {
    auto fetched = fetch_all(std::move(missing));
    (void)remove_partial();  // else the next fetch removes it
    return fetched;
  }

 private:
  // A run that was not tried for the last time: why. Empty: all has come.
  using Outcome = Result<std::string>;

  Result<void> fetch_all(std::vector<store::Object> missing) {
    while (!missing.empty() && !calls_.abandoned.is_set()) {
      std::string why;
      for (auto& batch : store::batches(missing, store::kBatchBytes, store::kBatchCount)) {
        auto reason = one_batch(batch, missing);
        if (!reason) return fail(std::move(reason.error()));
        why = *std::move(reason);
        if (!why.empty() || calls_.abandoned.is_set()) break;
      }
      if (why.empty()) continue;
      // It may be the room of another start while this one waits.
      if (auto gone = remove_partial(); !gone) return gone;
      if (auto again = tries_.wait(why); !again) return again;
    }
    return {};
  }

  Outcome one_batch(const std::vector<store::Object>& batch, std::vector<store::Object>& missing) {
    if (auto gone = remove_partial(); !gone) return fail(std::move(gone.error()));
    if (auto made = io::make_dirs(place_.partial, 0700); !made)
      return fail(std::move(made.error()));
    std::vector<std::string> words = {
        "--multi-thread-streams", "0", "--transfers", "8", "--use-server-modtime",
        "--ignore-times"};
    std::string names;
    for (const store::Object& one : batch) names += one.name + "\n";
    auto list = io::MemoryFile::make(names);
    if (!list) return fail(std::move(list.error()));
    if (!place_.is_file) words.insert(words.end(), {"--files-from-raw", list->path()});
    const bool lists = !place_.is_file && !one_by_one_ && batch.size() > directories_of(batch);
    if (!lists) words.emplace_back("--no-traverse");
    words.insert(words.end(), {rclone_.source(), place_.partial.native()});
    Watch watch(place_, batch);
    // A run that fetches again what an earlier one had is not silent.
    Tries silence(calls_);
    std::uint64_t before = 0;
    const process::ToolAnswer answer = rclone_.run(
        runner_, "copy", std::move(words), Patience::Long,
        limits_of(calls_, kBatchTime, kLogBytes, [&](pid_t pid, std::string_view) {
          const std::uint64_t now = watch.check(pid);
          if (now > before) silence.restart();
          before = now;
          if (now > came_) {
            came_ = now;
            tries_.restart();
          }
          if (silence.is_over())
            watch.end(pid, ErrorCode::Unreachable, silence.text("rclone waits for the store"));
          calls_.progress(done_ + now);
        }));
    if (watch.error()) return fail(Error(*watch.error()));
    if (auto kept = keep_all(batch, missing, answer, lists); !kept)
      return fail(std::move(kept.error()));
    if (answer.why.empty() && !answer.absent) return std::string();
    RunFailure failure = why_failed(answer);
    const Verdict verdict =
        verdict_of(failure.message, place_.partial.native(), rclone_.has_own_ca());
    if (const auto code = final_error(answer, verdict)) return fail(*code, std::move(failure.text));
    if (verdict == Verdict::Absent)
      return fail(
          ErrorCode::Conflict,
          failure.text + "; it was there when this start listed: was it removed meanwhile?");
    return std::move(failure.text);
  }

  // What of the batch has come is missing no more.
  Result<void> keep_all(const std::vector<store::Object>& batch,
                        std::vector<store::Object>& missing, const process::ToolAnswer& answer,
                        bool lists) {
    // A run that was killed, or died of its own fault (status 2), may have left anything.
    const Ended ended = answer.why.empty() && !answer.absent   ? Ended::Well
                        : answer.status && *answer.status != 2 ? Ended::Orderly
                                                               : Ended::Anyhow;
    std::set<std::string_view> here;
    std::vector<InputCache::Fetched> read;
    Result<void> all;
    for (const store::Object& one : batch) {
      auto sha256 = sha256_of(one, ended, lists);
      if (calls_.abandoned.is_set()) return {};
      if (!sha256) {
        all = fail(std::move(sha256.error()));
        break;  // those before it are kept
      }
      if (sha256->empty()) continue;
      read.push_back(
          {.key = cache_key(place_, one), .sha256 = *std::move(sha256), .file = file_of(one)});
      done_ += one.size;
      here.insert(one.name);
      if (read.size() < kKeptAtOnce) continue;
      if (auto put = cache_.put(std::exchange(read, {}), calls_.now()); !put) return put;
    }
    if (!read.empty())
      if (auto put = cache_.put(read, calls_.now()); !put) return put;
    if (!here.empty()) {
      tries_.restart();
      came_ = 0;
    }
    std::erase_if(missing, [&](const store::Object& one) { return here.contains(one.name); });
    calls_.progress(done_);
    return all;
  }

  Result<void> remove_partial() const {
    const std::filesystem::path above = place_.partial.parent_path();
    if (auto made = io::make_dirs(above, 0700); !made) return made;
    auto dir = io::Beneath::open(above);
    if (!dir) return fail(std::move(dir.error()));
    return io::remove_tree(*dir, place_.partial.filename().native());
  }

  enum class Ended : std::uint8_t {
    Well,     // rclone says that all is there
    Orderly,  // some has failed, and what is there of the others is whole: it removes failed files
    Anyhow,
  };
  [[nodiscard]] std::filesystem::path file_of(const store::Object& object) const {
    return place_.partial / store::local_name(object.name);
  }

  // Empty: the object has not come whole. `lists`: rclone has looked for it in the list of its
  // directory. Some ends leave out there what they have in the list of everything (seen with
  // s3rver 3.7.1: a directory that has only directories).
  Result<std::string> sha256_of(const store::Object& object, Ended ended, bool lists) {
    const bool well = ended == Ended::Well;
    const std::filesystem::path file = file_of(object);
    const std::string doing = fmt::format("reading '{}'", without_controls(file.native()));
    const io::UniqueFd fd(::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd && (errno == ENOENT || errno == ENOTDIR)) {
      if (well && lists) one_by_one_ = true;
      if (!well || lists) return std::string();
      return fail(ErrorCode::DataLoss,
                  fmt::format("'{}' was there, and has not come", without_controls(object.name)));
    }
    if (!fd) return fail_errno(doing, errno);
    struct stat status{};
    if (::fstat(fd.get(), &status) != 0) return fail_errno(doing, errno);
    const bool is_long_enough = static_cast<std::uint64_t>(status.st_size) == object.size;
    if (!well && (!is_long_enough || (ended == Ended::Anyhow && object.md5.empty())))
      return std::string();
    const Digests which = object.md5.empty() ? Digests::Sha256 : Digests::Sha256AndMd5;
    const auto digests = digests_of(fd.get(), which, [&] { return calls_.abandoned.is_set(); });
    if (!digests && calls_.abandoned.is_set()) return std::string();
    if (!digests) return fail(Error(digests.error()).in(doing));
    const bool same = digests->bytes == object.size &&
                      (object.md5.empty() || digests->md5.empty() || digests->md5 == object.md5);
    if (!same && !well) return std::string();
    if (!same)
      return fail(ErrorCode::DataLoss,
                  fmt::format("'{}' is not what the list says: {} bytes{}; listed with {} bytes{}; "
                              "was it written meanwhile?",
                              without_controls(object.name), digests->bytes,
                              digests->md5.empty() ? "" : ", MD5 " + digests->md5, object.size,
                              object.md5.empty() ? "" : ", MD5 " + object.md5));
    return digests->sha256;
  }

  process::ToolRunner& runner_;
  const RcloneRun& rclone_;
  const FetchPlace& place_;
  InputCache& cache_;
  const FetchCalls& calls_;
  Tries tries_{calls_};
  bool one_by_one_ = false;  // rclone asks for each object, and lists no directory
  std::uint64_t done_ = 0;
  std::uint64_t came_ = 0;  // the most that a run has brought since an object was kept
};

}  // namespace

Result<store::Manifest> list_input(process::ToolRunner& runner, const RcloneRun& rclone,
                                   const store::Url& url, const store::Selection& wanted,
                                   const FetchCalls& calls) {
  const auto list = [&](std::vector<std::string> words) -> Result<store::Manifest> {
    words.insert(words.begin(), {"--recursive", "--no-mimetype", "--use-server-modtime"});
    // The other ends have none, or would have to read everything for it.
    if (url.scheme == store::Scheme::Obs || url.scheme == store::Scheme::S3)
      words.insert(words.begin(), {"--hash", "--hash-type", "md5"});
    Tries tries(calls);
    std::size_t came = 0;
    for (;;) {
      process::ToolAnswer answer = rclone.run(
          runner, "lsjson", words, Patience::Long,
          limits_of(calls, kListTime, kListBytes, [&](pid_t pid, std::string_view output) {
            if (output.size() > came) {
              came = output.size();
              tries.restart();
            } else if (tries.is_over()) {
              ::kill(-pid, SIGKILL);
            }
          }));
      if (calls.abandoned.is_set()) return fail(ErrorCode::Unreachable, answer.why);
      if (answer.why.empty() && !answer.absent) return store::parse_listing(answer.output, &wanted);
      RunFailure failure = why_failed(answer);
      const Verdict verdict = verdict_of(failure.message, "", rclone.has_own_ca());
      if (verdict == Verdict::Directory) return store::Manifest();
      if (const auto code = final_error(answer, verdict))
        return fail(*code, std::move(failure.text));
      if (verdict == Verdict::Absent) return fail(ErrorCode::NotAllowed, std::move(failure.text));
      if (auto again = tries.wait(failure.text); !again) return fail(std::move(again.error()));
    }
  };
  // First whether it is one object: asked for that alone, since rclone lists all that is beside an
  // object when it is asked to list it.
  if (!url.path.empty()) {
    const std::string name = url.path.substr(url.path.rfind('/') + 1);
    const auto names = io::MemoryFile::make(name + "\n");
    if (!names) return fail(Error(names.error()));
    auto one = list({"--no-traverse", "--files-from-raw", names->path(), rclone.source_above()});
    if (!one) return one;
    one->is_file = true;
    if (!one->objects.empty()) return one;
  }
  return list({"--fast-list", rclone.source()});
}

std::string cache_key(const FetchPlace& place, const store::Object& object) {
  const bool has_version = !object.md5.empty() || !object.modified.empty();
  const std::string name = place.is_file        ? place.path
                           : place.path.empty() ? object.name
                                                : place.path + "/" + object.name;
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}", place.prefix, name, object.size, object.md5,
                     object.modified, has_version ? "" : place.unversioned);
}

Result<void> fetch_objects(process::ToolRunner& runner, const RcloneRun& rclone,
                           const std::vector<store::Object>& missing, const FetchPlace& place,
                           InputCache& cache, const FetchCalls& calls) {
  return Fetch(runner, rclone, place, cache, calls).run(missing);
}

}  // namespace muster::agent
