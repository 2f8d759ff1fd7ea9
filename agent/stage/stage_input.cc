#include "agent/stage/stage_input.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/stage/input_tree.h"
#include "common/digest/sha256.h"
#include "common/io/file.h"
#include "common/io/remove_tree.h"
#include "common/io/room.h"
#include "common/store/selection.h"
#include "common/text/sizes.h"

namespace muster::agent {
namespace {

// An object may be removed for the room of another start before it is linked.
constexpr int kTriesMost = 3;
constexpr const char* kLock = ".lock";  // behind the name of a partial directory

// Who answers for a bucket or a host, and for whom: of stores that differ in it, none gets what
// another has fetched. The key of OBS and S3 does not count: the same bucket has the same objects,
// and each start lists them with its own key.
std::string prefix_of(const v1::StoreProfile& profile, const store::Url& url) {
  const bool has_buckets = url.scheme == store::Scheme::Obs || url.scheme == store::Scheme::S3;
  return fmt::format("{}://{}\n{}\n{}\n{}\n{}\n{}", store::name_of(url.scheme), url.place,
                     profile.endpoint(), profile.region(), profile.proxy(),
                     sha256_hex(profile.ca() + "\n" + profile.host_key()),
                     has_buckets ? "" : profile.user());
}

class Staging {
 public:
  Staging(const v1::StagedInput& input, std::string job, const UserEntry* owner,
          std::uint64_t min_free_bytes, const StageCalls& calls, store::Url url,
          store::Selection selection, RcloneRun rclone, InputCache cache)
      : input_(input),
        job_(std::move(job)),
        owner_(owner),
        min_free_bytes_(min_free_bytes),
        calls_(calls),
        root_(input.root()),
        url_(std::move(url)),
        selection_(std::move(selection)),
        rclone_(std::move(rclone)),
        cache_(std::move(cache)) {
    place_.prefix = prefix_of(input.profile(), url_);
    place_.path = url_.path;
    place_.unversioned = fmt::format("{} {}", job_, calls.fetch.now().time_since_epoch().count());
    place_.partial = partials() / sha256_hex(place_.prefix + "\n" + url_.path);
    place_.min_free_bytes = min_free_bytes;
  }

  Result<void> run() {
    auto turn = take_turn();
    if (!turn) return fail(std::move(turn.error()));
    remove_leftovers();
    for (int tries = 1;; ++tries) {
      if (calls_.fetch.abandoned.is_set()) return {};
      bool is_gone = false;
      auto done = once(is_gone);
      // What is damaged is the node's index, and not what the store has sent.
      if (!done && cache_.is_damaged()) done.error().code = ErrorCode::Io;
      if (done || tries == kTriesMost) return done;
      if (cache_.is_damaged()) {
        auto anew = InputCache::remake(root_);
        if (!anew) return fail(std::move(anew.error()));
        cache_ = *std::move(anew);
      } else if (!is_gone) {
        return done;
      }
    }
  }

 private:
  [[nodiscard]] std::filesystem::path partials() const { return root_ / "cache" / "partial"; }

  // The lock of this URL, which goes with the descriptor.
  Result<io::UniqueFd> take_turn() {
    if (auto made = io::make_dirs(partials(), 0700); !made) return fail(std::move(made.error()));
    const std::string file = place_.partial.native() + kLock;
    for (;;) {
      io::UniqueFd lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
      if (!lock) return fail_errno(fmt::format("opening '{}'", file), errno);
      while (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
          return fail_errno(fmt::format("locking '{}'", file), errno);
        calls_.at("waiting for another start that fetches the same");
        if (calls_.fetch.abandoned.wait(std::chrono::milliseconds(100))) return lock;
      }
      struct stat status{};
      if (::fstat(lock.get(), &status) == 0 && status.st_nlink > 0) return lock;
      // Another start has removed it as a leftover.
    }
  }

  // Of fetches whose agent was killed. What cannot be removed stays for the next start.
  void remove_leftovers() {
    const auto dir = io::Beneath::open(partials());
    if (!dir) return;
    // Its own, too: perhaps all had come, and nothing is fetched now.
    (void)io::remove_tree(*dir, place_.partial.filename().native());
    std::error_code wrong;
    std::vector<std::string> others;
    for (std::filesystem::directory_iterator at(partials(), wrong), end; !wrong && at != end;
         at.increment(wrong))
      if (at->path().extension() == kLock && at->path().stem() != place_.partial.filename())
        others.push_back(at->path().filename().native());
    for (const std::string& name : others) {
      const io::UniqueFd lock(
          ::openat(dir->fd(), name.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
      struct stat status{};
      // Without a name the lock is nobody's any more, and another start may have made a new one.
      if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0 ||
          ::fstat(lock.get(), &status) != 0 || status.st_nlink == 0)
        continue;
      if (io::remove_tree(*dir, std::filesystem::path(name).stem().native()))
        ::unlinkat(dir->fd(), name.c_str(), 0);
    }
  }

  // `is_gone`: an object was removed for the room of another start.
  Result<void> once(bool& is_gone) {
    calls_.at("listing");
    auto listing = list_input(runner_, rclone_, url_, selection_, calls_.fetch);
    if (!listing) return fail(std::move(listing.error()));
    place_.is_file = listing->is_file;
    const store::Manifest& manifest = listing->manifest;
    if (manifest.objects.empty() && manifest.empty.empty())
      return fail(ErrorCode::NotAllowed,
                  input_.include().empty()
                      ? "there is nothing at this URL"
                      : fmt::format("there is nothing at this URL of such a name (include: {})",
                                    fmt::join(input_.include(), ", ")));
    StageNews news{.objects = manifest.objects.size(), .bytes = manifest.bytes()};
    calls_.at("looking for what the node has already");
    auto known = find_all(manifest);
    if (!known) return fail(std::move(known.error()));
    if (calls_.fetch.abandoned.is_set()) return {};
    if (!known->missing.empty()) {
      for (const store::Object& one : known->missing)
        news.missing +=
            std::min(one.size, std::numeric_limits<std::uint64_t>::max() - news.missing);
      if (auto room = need_room(news.missing, known->objects); !room) return room;
      if (auto fetched = fetch(known->missing, news); !fetched) return fetched;
      if (calls_.fetch.abandoned.is_set()) return {};
      if (auto same = list_again(*listing); !same) return same;
      known = find_all(manifest);
      if (!known) return fail(std::move(known.error()));
      if (calls_.fetch.abandoned.is_set()) return {};
      is_gone = !known->missing.empty();
      if (is_gone)
        return fail(ErrorCode::ResourceExhausted,
                    "what was fetched was removed for the room of another start");
    }
    calls_.at("linking");
    auto made = make_tree({.jobs = root_ / "jobs",
                           .job = job_,
                           .input = input_.name(),
                           .name = std::filesystem::path(input_.path()).filename().native(),
                           .is_file = place_.is_file},
                          manifest, known->objects, owner_, cache_, calls_.fetch.abandoned);
    is_gone = !made && made.error().code == ErrorCode::NotFound;
    if (is_gone) made.error().code = ErrorCode::ResourceExhausted;
    return made;
  }

  struct Known {
    std::map<std::string, std::string> objects;  // SHA-256 by name
    std::vector<store::Object> missing;
  };
  Result<Known> find_all(const store::Manifest& manifest) {
    Known known;
    for (const store::Object& one : manifest.objects) {
      if (calls_.fetch.abandoned.is_set()) return known;
      auto sha256 = cache_.find(cache_key(place_, one), calls_.fetch.now(),
                                [&] { return calls_.fetch.abandoned.is_set(); });
      if (!sha256 && calls_.fetch.abandoned.is_set()) return known;
      if (!sha256) return fail(std::move(sha256.error()));
      if (*sha256)
        known.objects.emplace(one.name, **std::move(sha256));
      else
        known.missing.push_back(one);
    }
    return known;
  }

  // `objects` are what the node has of this input.
  Result<void> need_room(std::uint64_t bytes, const std::map<std::string, std::string>& objects) {
    const auto has = [&]() -> Result<std::uint64_t> {
      const auto room = io::room_at(root_);
      if (!room) return fail(Error(room.error()));
      return room->bytes > min_free_bytes_ ? room->bytes - min_free_bytes_ : 0;
    };
    auto room = has();
    if (!room) return fail(std::move(room.error()));
    if (*room >= bytes) return {};
    calls_.at("removing what no job uses");
    std::set<std::string> keep;
    for (const auto& [name, sha256] : objects) keep.insert(sha256);
    if (auto freed = cache_.make_room(bytes - *room, keep); !freed)
      return fail(std::move(freed.error()));
    room = has();
    if (!room) return fail(std::move(room.error()));
    if (*room >= bytes) return {};
    return fail(ErrorCode::ResourceExhausted,
                fmt::format("it has {} that this node has not, and '{}' has room for {} (beside {} "
                            "that stay free); remove what nobody needs, or take another disk "
                            "(`inputs_root` of the controller)",
                            size_text(bytes), root_.native(), size_text(*room),
                            size_text(min_free_bytes_)));
  }

  Result<void> fetch(const std::vector<store::Object>& missing, StageNews news) {
    calls_.at("fetching");
    FetchCalls calls = calls_.fetch;
    calls.progress = [&](std::uint64_t done) {
      news.done = done;
      calls_.news(news);
    };
    calls.progress(0);
    return fetch_objects(runner_, rclone_, missing, place_, cache_, calls);
  }

  Result<void> list_again(const InputListing& before) {
    calls_.at("listing again");
    const auto after = list_input(runner_, rclone_, url_, selection_, calls_.fetch);
    if (!after) return fail(Error(after.error()));
    const std::string change = store::change_between(before.manifest, after->manifest);
    if (change.empty()) return {};
    return fail(ErrorCode::Conflict, fmt::format("it was changed while it was fetched: {}; start "
                                                 "again when nobody writes there",
                                                 change));
  }

  const v1::StagedInput& input_;
  const std::string job_;
  const UserEntry* owner_;
  const std::uint64_t min_free_bytes_;
  const StageCalls& calls_;
  const std::filesystem::path root_;
  const store::Url url_;
  const store::Selection selection_;
  const RcloneRun rclone_;
  process::ToolRunner runner_;
  InputCache cache_;
  FetchPlace place_;
};

}  // namespace

Result<void> stage_input(const v1::StagedInput& input, const std::string& job,
                         const std::string& key, const UserEntry* owner,
                         std::uint64_t min_free_bytes, const StageCalls& calls) {
  const std::string doing = fmt::format("inputs.{}: '{}'", input.name(), input.url());
  auto url = store::parse_url(input.url());
  if (!url) return fail(std::move(url.error()).in(doing));
  auto selection = store::Selection::make(
      std::vector<std::string>(input.include().begin(), input.include().end()));
  if (!selection) return fail(std::move(selection.error()).in(doing));
  auto rclone = RcloneRun::make(input.profile(), *url, key);
  if (!rclone) return fail(std::move(rclone.error()).in(doing));
  auto cache = InputCache::open(input.root());
  if (!cache) return fail(std::move(cache.error()).in(doing));
  auto staged = Staging(input, job, owner, min_free_bytes, calls, *std::move(url),
                        *std::move(selection), *std::move(rclone), *std::move(cache))
                    .run();
  if (!staged) return fail(std::move(staged.error()).in(doing));
  return {};
}

}  // namespace muster::agent
