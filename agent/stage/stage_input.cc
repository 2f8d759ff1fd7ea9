#include "agent/stage/stage_input.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/stage/input_tree.h"
#include "agent/stage/kept_contents.h"
#include "agent/stage/step_sums.h"
#include "common/base/controls.h"
#include "common/digest/sha256.h"
#include "common/io/file.h"
#include "common/io/remove_tree.h"
#include "common/io/room.h"
#include "common/store/selection.h"
#include "common/store/sums.h"
#include "common/text/sizes.h"

namespace muster::agent {
namespace {

// An object may be removed for the room of another start before it is linked.
constexpr int kTriesMost = 3;
constexpr std::size_t kListBytesMost = 128 << 20;
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

  Result<v1::InputState> run() {
    auto turn = take_turn();
    if (!turn) return fail(std::move(turn.error()));
    remove_leftovers();
    for (int tries = 1;; ++tries) {
      if (calls_.fetch.abandoned.is_set()) return v1::InputState();
      bool is_gone = false;
      auto done = once(is_gone);
      // What is damaged is the node's index, and not what the store has sent.
      if (!done && cache_.is_damaged()) done.error().code = ErrorCode::Io;
      if (done) return state_;
      if (tries == kTriesMost) return fail(std::move(done.error()));
      if (cache_.is_damaged()) {
        auto anew = InputCache::remake(root_);
        if (!anew) return fail(std::move(anew.error()));
        cache_ = *std::move(anew);
      } else if (!is_gone) {
        return fail(std::move(done.error()));
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
    state_.Clear();
    const auto began_with = kept_contents(root_, input_.contents_sha256());
    auto contents = began_with ? fetch_missing(*began_with, is_gone) : fetch_listed(is_gone);
    if (!contents) return fail(std::move(contents.error()));
    if (calls_.fetch.abandoned.is_set()) return {};
    calls_.at("linking");
    auto made = make_tree({.jobs = root_ / "jobs",
                           .job = job_,
                           .input = input_.name(),
                           .name = std::filesystem::path(input_.path()).filename().native()},
                          *contents, owner_, cache_, calls_.fetch.abandoned);
    is_gone = !made && made.error().code == ErrorCode::NotFound;
    if (is_gone) made.error().code = ErrorCode::ResourceExhausted;
    if (!made) return made;
    state_.set_name(input_.name());
    state_.set_contents_sha256(contents->sha256());
    state_.set_objects(contents->objects.size());
    state_.set_bytes(contents->bytes());
    return {};
  }

  // What the store has now.
  Result<store::Contents> fetch_listed(bool& is_gone) {
    auto manifest = list("listing");
    if (!manifest) return fail(std::move(manifest.error()));
    if (manifest->objects.empty() && manifest->empty.empty())
      return fail(ErrorCode::NotAllowed,
                  input_.include().empty()
                      ? "there is nothing at this URL"
                      : fmt::format("there is nothing at this URL of such a name (include: {})",
                                    fmt::join(input_.include(), ", ")));
    auto sums = step_sums(*manifest, is_gone);
    if (!sums) return fail(std::move(sums.error()));
    if (calls_.fetch.abandoned.is_set()) return store::Contents();
    if (*sums)
      if (auto kept = keep_step(*manifest, **sums); !kept) return fail(std::move(kept.error()));
    calls_.at("looking for what the node has already");
    auto known = find_all(manifest->objects);
    if (!known) return fail(std::move(known.error()));
    if (calls_.fetch.abandoned.is_set()) return store::Contents();
    if (!known->missing.empty()) {
      if (auto fetched = fetch(known->missing, *known, *manifest); !fetched)
        return fail(std::move(fetched.error()));
      if (calls_.fetch.abandoned.is_set()) return store::Contents();
      if (auto same = list_again(*manifest, *sums); !same) {
        // Something of this may be what has come under the name of something else.
        if (same.error().code == ErrorCode::Conflict)
          for (const store::Object& one : known->missing) forget(one);
        return fail(std::move(same.error()));
      }
      known = find_all(manifest->objects);
      if (!known) return fail(std::move(known.error()));
      if (calls_.fetch.abandoned.is_set()) return store::Contents();
      if (!known->missing.empty()) return gone(is_gone);
    }
    store::Contents contents{
        .is_file = manifest->is_file, .objects = {}, .empty = std::move(manifest->empty)};
    for (const store::Object& one : manifest->objects)
      contents.objects.push_back(
          {.name = one.name, .size = one.size, .sha256 = known->objects.at(one.name)});
    if (!*sums) return contents;
    if (const std::string name = first_damaged(contents, **sums); !name.empty()) {
      forget(*find_object(*manifest, name));
      return fail(ErrorCode::DataLoss,
                  fmt::format("'{}' is not what its job has uploaded: it has another SHA-256 than "
                              "in the list of its checkpoint; take another step, or upload it "
                              "again",
                              without_controls(name)));
    }
    if (auto added = add_marks(contents); !added) return fail(std::move(added.error()));
    return contents;
  }

  // What the lists of the checkpoint say that alone is wanted. None: there are none, or everything
  // is wanted, or what the spec names.
  Result<std::optional<StepSums>> step_sums(const store::Manifest& manifest, bool& is_gone) {
    const std::string name = store::step_sums_name(input_.step());
    if (!input_.has_step() || !input_.include().empty() || find_object(manifest, name) == nullptr)
      return std::optional<StepSums>();
    const auto lists = sums_in({{name, {}}}, manifest, is_gone);
    if (!lists) return fail(Error(lists.error()));
    if (calls_.fetch.abandoned.is_set()) return std::optional(*lists);
    auto sums = sums_in(*lists, manifest, is_gone);
    if (!sums) return fail(std::move(sums.error()));
    return std::optional(*std::move(sums));
  }

  // What is in these lists. Each is one of its SHA-256, or may be any if it has none.
  Result<StepSums> sums_in(const StepSums& lists, const store::Manifest& manifest, bool& is_gone) {
    std::vector<store::Object> objects;
    std::uint64_t bytes = 0;
    for (const auto& [name, expected] : lists) {
      const store::Object* object = find_object(manifest, name);
      if (object == nullptr)
        return fail(ErrorCode::Conflict,
                    fmt::format("the list '{}' is not there", without_controls(name)));
      bytes = store::sum_of(bytes, object->size);
      objects.push_back(*object);
    }
    if (bytes > kListBytesMost)
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("the lists of its checkpoint have {}, more than {}", size_text(bytes),
                              size_text(kListBytesMost)));
    auto known = find_all(objects);
    if (known && !known->missing.empty() && !calls_.fetch.abandoned.is_set()) {
      if (auto fetched = fetch(known->missing, *known, manifest); !fetched)
        return fail(std::move(fetched.error()));
      known = find_all(objects);
    }
    if (!known) return fail(std::move(known.error()));
    StepSums all;
    for (const store::Object& one : objects) {
      if (calls_.fetch.abandoned.is_set()) return all;
      const auto found = known->objects.find(one.name);
      if (found == known->objects.end()) return gone(is_gone);
      const auto text = cache_.text_of(found->second, kListBytesMost);
      if (!text && text.error().code == ErrorCode::NotFound) return gone(is_gone);
      auto taken = text ? take_sums(*text, found->second, lists.at(one.name), all)
                        : Result<void>(fail(Error(text.error())));
      if (taken) continue;
      forget(one);  // perhaps it came damaged
      return fail(
          std::move(taken.error()).in(fmt::format("the list '{}'", without_controls(one.name))));
    }
    return all;
  }

  // The engine's mark of the checkpoint, as a part of what the job has.
  Result<void> add_marks(store::Contents& contents) {
    auto marks = marks_of_step(input_.layout(), input_.step());
    if (!marks) return fail(std::move(marks.error()));
    for (const auto& [name, text] : *marks) {
      const std::string sha256 = sha256_hex(text);
      const std::filesystem::path file = place_.partial / "mark";
      if (auto made = io::make_dirs(place_.partial, 0700); !made) return made;
      if (auto written = io::replace_file(file, text, io::Durable::No); !written) return written;
      const std::vector<InputCache::Fetched> one = {
          {.key = "mark\n" + sha256, .sha256 = sha256, .file = file}};
      if (auto put = cache_.put(one, calls_.fetch.now()); !put) return put;
      contents.objects.push_back({.name = name, .size = text.size(), .sha256 = sha256});
    }
    std::ranges::sort(contents.objects, {}, &store::Content::name);
    return {};
  }

  // What the job has begun with. The store is asked for what the node does not have of it, and for
  // nothing else. What comes is believed by its SHA-256 alone.
  Result<store::Contents> fetch_missing(const store::Contents& began_with, bool& is_gone) {
    calls_.at("looking for what the node has already");
    Known known;
    std::vector<store::Content> missing;
    for (const store::Content& one : began_with.objects) {
      if (calls_.fetch.abandoned.is_set()) return store::Contents();
      const auto here = cache_.has(one.sha256, calls_.fetch.now(),
                                   [&] { return calls_.fetch.abandoned.is_set(); });
      if (!here && calls_.fetch.abandoned.is_set()) return store::Contents();
      if (!here) return fail(Error(here.error()));
      if (*here)
        known.objects.emplace(one.name, one.sha256);
      else
        missing.push_back(one);
    }
    if (missing.empty()) return began_with;
    const auto manifest = list("listing");
    if (!manifest) return fail(Error(manifest.error()));
    std::vector<store::Object> wanted;
    for (const store::Content& one : missing) {
      const auto now =
          std::ranges::lower_bound(manifest->objects, one.name, {}, &store::Object::name);
      if (now == manifest->objects.end() || now->name != one.name)
        return changed(fmt::format("'{}' is not there any more", without_controls(one.name)));
      if (now->size != one.size)
        return changed(fmt::format("'{}' has another size ({}, was {})", without_controls(one.name),
                                   now->size, one.size));
      wanted.push_back(*now);
    }
    // First what the node takes for something else: it has changed, or the node is wrong.
    auto here = find_all(wanted);
    if (!here) return fail(std::move(here.error()));
    std::vector<store::Object> doubtful, others;
    for (const store::Object& one : wanted)
      (here->objects.contains(one.name) ? doubtful : others).push_back(one);
    for (const store::Object& one : doubtful) forget(one);
    for (const auto* part : {&doubtful, &others}) {
      if (calls_.fetch.abandoned.is_set()) return store::Contents();
      if (part->empty()) continue;
      if (auto fetched = fetch(*part, known, *manifest); !fetched)
        return fail(std::move(fetched.error()));
      if (calls_.fetch.abandoned.is_set()) return store::Contents();
      here = find_all(*part);
      if (!here) return fail(std::move(here.error()));
      if (calls_.fetch.abandoned.is_set()) return store::Contents();
      if (!here->missing.empty()) return gone(is_gone);
      for (const store::Object& one : *part) {
        const auto expected =
            std::ranges::lower_bound(missing, one.name, {}, &store::Content::name);
        const std::string& found = here->objects.at(one.name);
        known.objects.emplace(one.name, found);
        if (found == expected->sha256) continue;
        forget(one);
        return changed(fmt::format("'{}' was written again", without_controls(one.name)));
      }
    }
    return began_with;
  }
  // Whether that works or not: what it stands for is compared again.
  void forget(const store::Object& object) { (void)cache_.forget(cache_key(place_, object)); }
  static std::unexpected<Error> changed(const std::string& what) {
    return fail(ErrorCode::Conflict,
                fmt::format("it was changed since the job began: {}, and this node does not have "
                            "what the job began with; the next attempt takes what is there now",
                            what));
  }
  static std::unexpected<Error> gone(bool& is_gone) {
    is_gone = true;
    return fail(ErrorCode::ResourceExhausted,
                "what was fetched was removed for the room of another start");
  }

  Result<store::Manifest> list(const char* doing) {
    calls_.at(doing);
    auto manifest = list_input(runner_, rclone_, url_, selection_, calls_.fetch);
    if (manifest) place_.is_file = manifest->is_file;
    return manifest;
  }

  struct Known {
    std::map<std::string, std::string> objects;  // SHA-256 by name
    std::vector<store::Object> missing;
  };
  Result<Known> find_all(const std::vector<store::Object>& objects) {
    Known known;
    for (const store::Object& one : objects) {
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

  // `known`: what the node has, which stays.
  Result<void> fetch(const std::vector<store::Object>& missing, const Known& known,
                     const store::Manifest& manifest) {
    StageNews news{.objects = manifest.objects.size(), .bytes = manifest.bytes()};
    for (const store::Object& one : missing) news.missing = store::sum_of(news.missing, one.size);
    if (auto room = need_room(news.missing, known.objects); !room) return room;
    calls_.at("fetching");
    FetchCalls calls = calls_.fetch;
    calls.progress = [&](std::uint64_t done) {
      news.done = done;
      calls_.news(news);
    };
    calls.progress(0);
    auto fetched = fetch_objects(runner_, rclone_, missing, place_, cache_, calls);
    if (fetched) state_.set_fetched_bytes(state_.fetched_bytes() + news.missing);
    return fetched;
  }

  Result<void> list_again(const store::Manifest& before, const std::optional<StepSums>& sums) {
    auto after = list("listing again");
    if (!after) return fail(Error(after.error()));
    if (sums)
      if (auto kept = keep_step(*after, *sums); !kept) return kept;
    const std::string change = store::change_between(before, *after);
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
  v1::InputState state_;
};

}  // namespace

Result<v1::InputState> stage_input(const v1::StagedInput& input, const std::string& job,
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
  return staged;
}

}  // namespace muster::agent
