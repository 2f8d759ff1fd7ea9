#include "agent/start/run_dirs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <vector>

#include "agent/launch/with_rights.h"
#include "agent/saves/checkpoint_reading.h"
#include "agent/start/site_dirs.h"
#include "common/engine/model/layout.h"
#include "common/io/file.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

// NotAllowed and InvalidArgument: what the job asked for is impossible on this node or on every
// node. ResourceExhausted: no space. Io: a problem of this node.
std::unexpected<Error> failed(const std::string& doing, int error) {
  auto result = fail_errno(doing, error);
  const auto is_one_of = [error](std::initializer_list<int> numbers) {
    return std::ranges::find(numbers, error) != numbers.end();
  };
  if (is_one_of({EACCES, EPERM, EROFS})) result.error().code = ErrorCode::NotAllowed;
  if (is_one_of({ENOTDIR, ELOOP, ENAMETOOLONG})) result.error().code = ErrorCode::InvalidArgument;
  return result;
}

Result<void> make_with_parents(const fs::path& path) {
  std::vector<fs::path> missing;
  struct stat info{};
  for (fs::path at = path; ::stat(at.c_str(), &info) != 0; at = at.parent_path()) {
    if (errno != ENOENT) return failed(fmt::format("making directory '{}'", path.string()), errno);
    missing.push_back(at);
    if (!at.has_relative_path()) break;
  }
  if (missing.empty() && !S_ISDIR(info.st_mode))
    return fail(ErrorCode::InvalidArgument,
                fmt::format("making directory '{}': a file of that name is there", path.string()));
  for (auto at = missing.rbegin(); at != missing.rend(); ++at) {
    if (::mkdir(at->c_str(), 0755) != 0) {
      if (errno == EEXIST) continue;  // another node with the same file system was quicker
      return failed(fmt::format("making directory '{}'", at->string()), errno);
    }
  }
  return {};
}

// For another user, as that user: his links lead no further than he could go. Where he may not make
// it, the site may have given him the place.
Result<void> make_for(const fs::path& path, const UserEntry* owner) {
  {
    const WithRightsOf rights(owner);
    if (auto have = rights.check(); !have) return have;
    auto made = make_with_parents(path);
    if (made || owner == nullptr || made.error().code != ErrorCode::NotAllowed) return made;
  }
  return make_dirs_of_site(path, *owner);
}

// Runs with the rights of the run's user.
Result<void> fill(const fs::path& dir, const engine::LinkPlan& plan) {
  for (const auto& [name, target] : plan.links) {
    if (auto made = make_with_parents((dir / name).parent_path()); !made) return made;
    if (::symlink(target.c_str(), (dir / name).c_str()) != 0)
      return failed(fmt::format("linking '{}' to '{}'", (dir / name).string(), target), errno);
    struct stat info{};
    if (::stat((dir / name).c_str(), &info) != 0 && errno != EACCES) {
      return fail(ErrorCode::DataLoss,
                  fmt::format("linking the checkpoint to resume from: '{}' is not there on this "
                              "node; keep checkpoints on a file system that every node sees",
                              target));
    }
  }
  for (const auto& [name, content] : plan.files) {
    if (auto made = make_with_parents((dir / name).parent_path()); !made) return made;
    if (auto written = io::replace_file(dir / name, content, io::Durable::No); !written)
      return written;
    if (::chmod((dir / name).c_str(), 0644) != 0)
      return fail_errno(fmt::format("opening '{}' to its readers", (dir / name).string()), errno);
  }
  return {};
}

}  // namespace

Result<void> make_output_dirs(const v1::NodeLaunch& order, const UserEntry* owner) {
  for (const std::string& dir : order.make_dirs()) {
    if (!dir.starts_with('/'))
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("making directory '{}': it is not an absolute path", dir));
    if (auto made = make_for(dir, owner); !made) return made;
  }
  return {};
}

Result<void> make_resume_links(const v1::ResumeLinks& resume, const UserEntry* owner,
                               v1::CheckpointReading& reading, const JobReach& reach) {
  if (!resume.dir().starts_with('/'))
    return fail(ErrorCode::InvalidArgument,
                fmt::format("making the directory of links '{}': it is not an absolute path",
                            resume.dir()));
  engine::LinkPlan plan;
  // a program whose checkpoints muster does not know gets an empty directory
  if (!resume.layout().empty() && resume.layout() != "none") {
    auto planned = plan_resume_links(resume, reading, reach);
    if (!planned) return fail(std::move(planned).error());
    plan = *std::move(planned);
  }
  const fs::path target = fs::path(resume.dir()).lexically_normal();
  if (auto made = make_for(target.parent_path(), owner); !made) return made;

  // The user may replace every part of the path while it is used.
  const WithRightsOf rights(owner);
  if (auto have = rights.check(); !have) return have;
  std::string pattern =
      (target.parent_path() / fmt::format(".{}.XXXXXX", target.filename().string())).string();
  if (::mkdtemp(pattern.data()) == nullptr)
    return failed(fmt::format("making a directory next to '{}'", target.string()), errno);
  const fs::path fresh = pattern;
  std::error_code ignored;
  const auto undo = [&](Result<void> why) {
    fs::remove_all(fresh, ignored);
    return why;
  };
  if (::chmod(fresh.c_str(), 0755) != 0)
    return undo(fail_errno(fmt::format("opening '{}' to its readers", fresh.string()), errno));
  if (auto filled = fill(fresh, plan); !filled) return undo(std::move(filled));

  // rename(2) cannot replace a directory that is not empty: exchange the two, then remove the old
  // one. Another node of a shared file system may do the same at this moment. The content is the
  // same, whichever wins.
  for (int tries = 0; tries < 16; ++tries) {
    if (::rename(fresh.c_str(), target.c_str()) == 0) return {};
    if (errno != ENOTEMPTY && errno != EEXIST)
      return undo(fail_errno(
          fmt::format("putting the directory of links '{}' in place", target.string()), errno));
    if (::renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) {
      fs::remove_all(fresh, ignored);
      return {};
    }
    if (errno == ENOENT) continue;  // the other directory was removed in between
    if (errno != EINVAL && errno != ENOSYS)
      return undo(fail_errno(
          fmt::format("putting the directory of links '{}' in place", target.string()), errno));
    fs::remove_all(target, ignored);  // a file system without exchange (NFS)
  }
  return undo(
      fail(ErrorCode::Io,
           fmt::format("putting the directory of links '{}' in place: others keep replacing it",
                       target.string())));
}

}  // namespace muster::agent
