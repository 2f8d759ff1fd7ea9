#include "agent/code/code_copy.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <random>
#include <system_error>
#include <vector>

#include "agent/code/code_patches.h"
#include "agent/code/code_tree.h"
#include "agent/launch/now_preparing.h"
#include "common/io/file.h"
#include "common/io/unique_fd.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMade = "made";
constexpr std::size_t kMadeMost = 64U << 10U;
constexpr int kNamesTried = 16;

std::string random_name() {
  std::random_device random;
  return fmt::format("{:08x}", random());
}

class Maker {
 public:
  Maker(const v1::NodeLaunch& order, std::string path, std::chrono::steady_clock::time_point until)
      : order_(order),
        code_(order.code()),
        agent_path_(std::move(path)),
        until_(until),
        place_(code_.path()),
        node_(place_.parent_path()),
        dir_(node_.parent_path()),
        whose_(fmt::format("muster code copy 1\njob {}\nsource {}\npatches {}\n", order.job_id(),
                           code_.source(), code_.sha256())) {}

  Result<void> run() {
    if (auto good = check(); !good) return good;
    now_preparing(fmt::format("looking for the copy of the code at '{}'", place_.string()));
    if (auto cleaned = clean(); !cleaned) return cleaned;
    if (is_whole()) return {};
    const auto work = begin();
    if (!work) return fail(work.error());
    auto made = make(*work);
    std::error_code ignored;
    // the directory is gone: whatever failed, this is the cause
    if (!made && !fs::exists(*work, ignored)) return quicker();
    if (!made) fs::remove_all(*work, ignored);
    return made;
  }

 private:
  [[nodiscard]] std::string doing() const {
    return fmt::format("making the copy of the code at '{}'", place_.string());
  }

  // Another start removed the directory of this one, or has put its own copy there.
  [[nodiscard]] Result<void> quicker() const {
    return fail(ErrorCode::Conflict,
                fmt::format("{}: another start on the same directory was at it as well; the next "
                            "one finds what that has made",
                            doing()));
  }

  [[nodiscard]] Result<void> check() const {
    const auto wrong = [this](const char* why) {
      return fail(ErrorCode::InvalidArgument, fmt::format("{}: {}", doing(), why));
    };
    for (const std::string* path : {&code_.path(), &code_.source()})
      if (!path->starts_with('/') || path->find('\0') != std::string::npos)
        return wrong("it is not an absolute path");
    if (place_.lexically_normal() != place_ || !place_.has_filename())
      return wrong("it is not written plainly");
    if (std::ranges::none_of(order_.make_dirs(),
                             [this](const std::string& made) { return fs::path(made) == dir_; }))
      return wrong("its directory is none that the order has made");
    return {};
  }

  [[nodiscard]] std::string hidden(const char* kind) const {
    return fmt::format(".{}.{}-", node_.filename().string(), kind);
  }

  // Under a new name nobody else writes into it.
  Result<void> take_away(const fs::path& what) const {
    for (int tried = 0; tried < kNamesTried; ++tried) {
      const fs::path away = dir_ / (hidden("old") + random_name());
      if (::renameat2(AT_FDCWD, what.c_str(), AT_FDCWD, away.c_str(), RENAME_NOREPLACE) != 0) {
        if (errno == ENOENT) return {};
        if (errno == EEXIST) continue;
        if (errno != EINVAL && errno != ENOSYS)
          return fail_errno(fmt::format("{}: moving '{}' out of the way", doing(), what.string()),
                            errno);
        // a file system without RENAME_NOREPLACE
        if (::rename(what.c_str(), away.c_str()) != 0 && errno != ENOENT)
          return fail_errno(fmt::format("{}: moving '{}' out of the way", doing(), what.string()),
                            errno);
      }
      std::error_code ignored;
      fs::remove_all(away, ignored);  // what remains is removed at the next start
      return {};
    }
    return fail(ErrorCode::Io,
                fmt::format("{}: no name was free to move '{}' to", doing(), what.string()));
  }

  Result<void> clean() const {
    std::error_code error;
    std::vector<fs::path> left;
    for (fs::directory_iterator at(dir_, error), end; !error && at != end; at.increment(error)) {
      const std::string name = at->path().filename().string();
      if (name.starts_with(hidden("new"))) left.push_back(at->path());
      std::error_code ignored;
      if (name.starts_with(hidden("old"))) fs::remove_all(at->path(), ignored);
    }
    if (error)
      return fail_errno(fmt::format("{}: reading '{}'", doing(), dir_.string()), error.value());
    for (const fs::path& one : left)
      if (auto taken = take_away(one); !taken) return taken;
    return {};
  }

  [[nodiscard]] bool is_whole() const {
    struct stat info{};
    if (::lstat(node_.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) ||
        ::lstat(place_.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
      return false;
    const auto made = io::read_regular_file(node_ / kMade, kMadeMost);
    return made && *made == whose_;
  }

  [[nodiscard]] Result<fs::path> begin() const {
    for (int tried = 0; tried < kNamesTried; ++tried) {
      const fs::path work = dir_ / (hidden("new") + random_name());
      if (::mkdir(work.c_str(), 0777) == 0) return work;
      if (errno != EEXIST)
        return fail_errno(fmt::format("{}: making '{}'", doing(), work.string()), errno);
    }
    return fail(ErrorCode::Io, fmt::format("{}: no name was free in '{}'", doing(), dir_.string()));
  }

  Result<void> make(const fs::path& work) const {
    now_preparing(fmt::format("copying the code '{}' to '{}'", code_.source(), place_.string()));
    const TreeCopy copy{.source = code_.source(),
                        .target = work / place_.filename(),
                        .place = place_,
                        .left_out = dir_.parent_path()};
    if (auto copied = copy_tree(copy, {.until = until_}); !copied) return copied;
    if (auto applied = apply_patches(code_.patches(), {.tree = copy.target,
                                                       .scratch = work,
                                                       .path = agent_path_,
                                                       .source = code_.source(),
                                                       .until = until_});
        !applied)
      return applied;
    now_preparing(fmt::format("writing the copy of the code at '{}' to its disk", place_.string()));
    if (auto written = io::replace_file(work / kMade, whose_, io::Durable::No); !written)
      return fail(std::move(written.error()).in(doing()));
    // A complete copy must also be complete after a power loss. This happens once per job and node.
    if (const io::UniqueFd fd(::open(work.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        !fd || ::syncfs(fd.get()) != 0)
      return fail_errno(fmt::format("{}: writing it to its disk", doing()), errno);
    return put_in_place(work);
  }

  Result<void> put_in_place(const fs::path& work) const {
    if (is_whole()) {  // another start was quicker with the same copy, and its ranks may run in it
      std::error_code ignored;
      fs::remove_all(work, ignored);
      return {};
    }
    if (auto taken = take_away(node_); !taken) return taken;
    if (::rename(work.c_str(), node_.c_str()) != 0) {
      const int error = errno;
      if (error == ENOTEMPTY || error == EEXIST || error == ENOENT) return quicker();
      return fail_errno(fmt::format("{}: putting it in place", doing()), error);
    }
    if (const io::UniqueFd fd(::open(dir_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)); fd)
      ::fsync(fd.get());
    return {};
  }

  const v1::NodeLaunch& order_;
  const v1::CodeCopy& code_;
  const std::string agent_path_;
  const std::chrono::steady_clock::time_point until_;
  const fs::path place_, node_, dir_;
  const std::string whose_;
};

}  // namespace

Result<void> make_code_copy(const v1::NodeLaunch& order, const std::string& path,
                            const UserEntry* owner, std::chrono::milliseconds most) {
  if (!order.has_code()) return {};
  if (owner != nullptr)
    return fail(ErrorCode::Unsupported,
                "code.patches: a copy of the code for another user than the agent's is known but "
                "not in this release");
  return Maker(order, path, std::chrono::steady_clock::now() + most).run();
}

}  // namespace muster::agent
