#include "agent/stage/input_tree.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>
#include <vector>

#include "agent/stage/kept_contents.h"
#include "common/io/beneath.h"
#include "common/io/file.h"
#include "common/io/remove_tree.h"

namespace muster::agent {
namespace {

// Behind an input's name: the tree that is being made, and what the one that is there was made of.
constexpr const char *kNew = ".new", *kOf = ".of";
constexpr const char* kRuns = ".runs";
constexpr std::chrono::milliseconds kLockInterval{20};

// Only one thread of this machine changes trees at a time. The lock goes with the descriptor.
// Without `abandoned` it is waited for however long that takes.
Result<io::UniqueFd> lock_trees(const std::filesystem::path& jobs, const Abandoned* abandoned) {
  io::UniqueFd lock(::open(jobs.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::string doing = fmt::format("locking '{}'", jobs.native());
  if (!lock) return fail_errno(doing, errno);
  const int how = abandoned != nullptr ? LOCK_EX | LOCK_NB : LOCK_EX;
  while (::flock(lock.get(), how) != 0) {
    if (errno != EINTR && errno != EWOULDBLOCK) return fail_errno(doing, errno);
    if (abandoned != nullptr && abandoned->wait(kLockInterval))
      return fail(ErrorCode::Unreachable, doing + ": nobody waits for it any more");
  }
  return lock;
}

// Makes the directories above a file that is not there yet, and remembers which there are.
class Directories {
 public:
  explicit Directories(const io::Beneath& top) : top_(top) {}

  // The directory with this path below the top; "" is the top itself.
  Result<const io::Beneath*> at(const std::string& path) {
    if (path.empty()) return &top_;
    if (const auto known = made_.find(path); known != made_.end()) return &known->second;
    const std::size_t slash = path.rfind('/');
    auto above = at(slash == std::string::npos ? "" : path.substr(0, slash));
    if (!above) return above;
    const std::string name = path.substr(slash == std::string::npos ? 0 : slash + 1);
    if (auto dir = (*above)->make_dir(name, 0755); !dir) return fail(std::move(dir.error()));
    auto opened = (*above)->below(name);
    if (!opened) return fail(std::move(opened.error()));
    if (made_.size() >= kOpenMost) made_.clear();  // they are descriptors
    return &made_.emplace(path, *std::move(opened)).first->second;
  }

 private:
  static constexpr std::size_t kOpenMost = 64;
  const io::Beneath& top_;
  std::map<std::string, io::Beneath> made_;
};

Result<void> fill(const io::Beneath& top, const TreePlace& place, const store::Contents& contents,
                  InputCache& cache) {
  Directories directories(top);
  const std::string root = contents.is_file ? "" : place.name;
  if (!contents.is_file)
    if (auto made = directories.at(root); !made) return fail(std::move(made.error()));
  const auto below = [&](const std::string& name) {
    return root.empty() ? name : root + "/" + name;
  };
  for (const std::string& dir : contents.empty)
    if (auto made = directories.at(below(store::local_name(dir))); !made)
      return fail(std::move(made.error()));
  for (const store::Content& one : contents.objects) {
    const std::string path = below(store::local_name(one.name));
    const std::size_t slash = path.rfind('/');
    auto dir = directories.at(slash == std::string::npos ? "" : path.substr(0, slash));
    if (!dir) return fail(std::move(dir.error()));
    const std::string name = path.substr(slash == std::string::npos ? 0 : slash + 1);
    if (auto linked = cache.link(one.sha256, **dir, name); !linked) return linked;
  }
  return {};
}

// The inodes of all files in the tree, which the job may have changed: a hint.
std::vector<ino_t> inodes_in(const std::filesystem::path& tree) {
  std::vector<ino_t> inodes;
  std::error_code wrong;
  std::filesystem::recursive_directory_iterator at(tree, wrong), end;
  for (; !wrong && at != end; at.increment(wrong)) {
    struct stat status{};
    if (::lstat(at->path().c_str(), &status) == 0 && S_ISREG(status.st_mode))
      inodes.push_back(status.st_ino);
  }
  return inodes;
}

// A link less changes a file's ctime, and else the cache would read it again.
Result<void> remove_noted(const io::Beneath& above, const std::filesystem::path& dir,
                          const std::string& name, InputCache& cache) {
  const auto inodes = cache.unchanged(inodes_in(dir / name));
  if (auto gone = io::remove_tree(above, name); !gone) return gone;
  if (!inodes) return fail(Error(inodes.error()));
  return cache.note_inodes(*inodes);
}

// Whether runs besides this one use the trees of the job: its processes may be reading.
bool has_other_runs(const std::filesystem::path& above) {
  std::error_code wrong;
  std::size_t count = 0;
  for (std::filesystem::directory_iterator at(above / kRuns, wrong), end; !wrong && at != end;
       at.increment(wrong))
    ++count;
  return count > 1;
}

// Whether each file is still the link that was made.
bool is_whole(const std::filesystem::path& tree, const TreePlace& place,
              const store::Contents& contents, const InputCache& cache) {
  const std::filesystem::path top = contents.is_file ? tree : tree / place.name;
  return std::ranges::all_of(contents.objects, [&](const store::Content& one) {
    struct stat status{};
    return ::lstat((top / store::local_name(one.name)).c_str(), &status) == 0 &&
           status.st_ino == cache.inode_of(one.sha256);
  });
}

bool is_made_of(const std::filesystem::path& of, const std::string& what) {
  constexpr std::size_t kMost = 8192;
  const auto text = io::read_regular_file(of, kMost, io::Links::Own);
  return text && *text == what;
}

// A process that uses the tree that is there finds the old or the new one at each moment.
Result<void> put_in_place(const io::Beneath& job, const std::filesystem::path& above,
                          const std::string& fresh, const std::string& name, InputCache& cache) {
  const auto rename = [&](unsigned flags) {
    return ::renameat2(job.fd(), fresh.c_str(), job.fd(), name.c_str(), flags) == 0 ? 0 : errno;
  };
  int error = rename(RENAME_EXCHANGE);
  if (error == 0) return remove_noted(job, above, fresh, cache);
  if (error != ENOENT) {  // some file systems cannot exchange
    if (auto gone = remove_noted(job, above, name, cache); !gone) return gone;
  }
  error = rename(0);
  if (error != 0) return fail_errno(fmt::format("making '{}'", (above / name).native()), error);
  return {};
}

}  // namespace

std::string trees_run_name(const NodeName& node, const RunKey& run) {
  return fmt::format("{}.{}.{}", node.str(), run.first.str(), run.second.value);
}

Result<void> use_trees(const std::filesystem::path& jobs, const std::string& job,
                       const std::string& run, const std::filesystem::path& run_file,
                       const Abandoned& abandoned) {
  const std::filesystem::path above = jobs / job;
  if (auto made = io::make_dirs(jobs, 0711); !made) return made;
  const auto lock = lock_trees(jobs, &abandoned);
  if (!lock) return fail(Error(lock.error()));
  if (auto made = io::make_dirs(above, 0711); !made) return made;
  // First what leave_trees() looks for.
  if (auto written = io::replace_file(run_file, above.native(), io::Durable::No); !written)
    return written;
  if (auto made = io::make_dirs(above / kRuns, 0700); !made) return made;
  return io::replace_file(above / kRuns / run, "", io::Durable::No);
}

Result<void> make_tree(const TreePlace& place, const store::Contents& contents,
                       const UserEntry* owner, InputCache& cache, const Abandoned& abandoned) {
  const std::filesystem::path above = place.jobs / place.job;
  const auto lock = lock_trees(place.jobs, &abandoned);
  if (!lock) return fail(Error(lock.error()));
  auto job = io::Beneath::open(above);
  if (!job) return fail(std::move(job.error()));
  // Without them a later attempt lists anew.
  (void)keep_contents(place.jobs.parent_path(), contents, above, place.input);
  const std::string what = fmt::format("{} {}\n", contents.sha256(), place.name);
  const std::filesystem::path of = above / (place.input + kOf);
  if (has_other_runs(above) && is_made_of(of, what) &&
      is_whole(above / place.input, place, contents, cache))
    return {};
  const std::string fresh = place.input + kNew;
  if (auto gone = remove_noted(*job, above, fresh, cache); !gone) return gone;
  if (auto made = job->make_dir(fresh, 0700); !made) return made;
  auto top = job->below(fresh);
  if (!top) return fail(std::move(top.error()));
  if (auto filled = fill(*top, place, contents, cache); !filled) return filled;
  if (owner != nullptr &&
      ::fchownat(job->fd(), fresh.c_str(), owner->uid, owner->gid, AT_SYMLINK_NOFOLLOW) != 0)
    return fail_errno(fmt::format("making '{}'", (above / place.input).native()), errno);
  if (::unlink(of.c_str()) != 0 && errno != ENOENT)
    return fail_errno(fmt::format("removing '{}'", of.native()), errno);
  if (auto put = put_in_place(*job, above, fresh, place.input, cache); !put) return put;
  if (auto written = io::replace_file(of, what, io::Durable::No); !written) return written;
  return cache.note_inodes(inodes_in(above / place.input));
}

Result<void> leave_trees(const std::filesystem::path& run_file, const std::string& run) {
  constexpr std::size_t kPathMost = 4096;
  const auto text = io::read_regular_file(run_file, kPathMost, io::Links::Own);
  if (!text && text.error().code == ErrorCode::NotFound) return {};
  if (!text) return fail(Error(text.error()));
  const std::filesystem::path above = *text, jobs = above.parent_path();
  std::error_code wrong;
  if (!std::filesystem::exists(above, wrong) && !wrong) return {};
  const auto lock = lock_trees(jobs, nullptr);
  if (!lock) return fail(Error(lock.error()));
  ::unlink((above / kRuns / run).c_str());
  if (::rmdir((above / kRuns).c_str()) != 0) {
    if (errno == ENOTEMPTY || errno == EEXIST) return {};
    if (errno != ENOENT)
      return fail_errno(fmt::format("removing '{}'", (above / kRuns).native()), errno);
  }
  touch_contents(above);
  const auto dir = io::Beneath::open(jobs);
  if (!dir) return fail(Error(dir.error()));
  // Without the cache's index the tree goes as well, and the cache will read the objects again.
  if (auto cache = InputCache::open(jobs.parent_path()))
    return remove_noted(*dir, jobs, above.filename().native(), *cache);
  return io::remove_tree(*dir, above.filename().native());
}

}  // namespace muster::agent
