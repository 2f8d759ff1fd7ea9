#include "agent/outputs/frozen_checkpoint.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "agent/launch/disk_view.h"
#include "agent/launch/with_rights.h"
#include "agent/saves/files_out.h"
#include "common/base/controls.h"
#include "common/engine/model/layout.h"
#include "common/io/beneath.h"
#include "common/io/file.h"
#include "common/io/remove_tree.h"
#include "common/log/log.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

// Of file systems that have no hard links, or where one directory is on two of them.
bool has_no_links(int error) {
  return error == EXDEV || error == EPERM || error == EOPNOTSUPP || error == ENOSYS ||
         error == EMLINK;
}

std::string doing(const CheckpointPlace& place) {
  return fmt::format("freezing the checkpoint of step {}", place.step);
}

// Errors: as of lstat(2).
Result<FileState> regular_file(const fs::path& file) {
  struct stat status{};
  if (::lstat(file.c_str(), &status) != 0)
    return fail_errno(fmt::format("'{}'", without_controls(file.native())), errno);
  if (S_ISREG(status.st_mode)) return state_of(status);
  return fail(ErrorCode::Io,
              fmt::format("'{}' is no regular file", without_controls(file.native())));
}

// A link in its place would lead to files of others.
Result<fs::path> own_top(const std::string& out) {
  const fs::path top = fs::path(out) / kFrozenDir;
  struct stat status{};
  if (::lstat(top.c_str(), &status) != 0) {
    if (errno != ENOENT) return fail_errno(without_controls(top.native()), errno);
    std::error_code wrong;
    fs::create_directory(top, wrong);
    if (wrong) return fail_errno(without_controls(top.native()), wrong.value());
  } else if (!S_ISDIR(status.st_mode)) {
    return fail(ErrorCode::DataLoss,
                fmt::format("'{}' is no directory", without_controls(top.native())));
  }
  return top;
}

// Removes this one, with all below it. Its record goes first: what is left is not believed.
void remove_one(const std::string& out, const fs::path& records, const std::string& name) {
  std::error_code wrong;
  fs::remove(records / name, wrong);
  if (const auto top = io::Beneath::open(fs::path(out) / kFrozenDir))
    if (auto removed = io::remove_tree(*top, name); !removed)
      log::warn("an uploaded checkpoint stays on the disk", {{"why", removed.error().message}});
}

Result<void> make_parents(const fs::path& file) {
  std::error_code wrong;
  fs::create_directories(file.parent_path(), wrong);
  if (!wrong) return {};
  return fail_errno(fmt::format("making '{}'", without_controls(file.parent_path().native())),
                    wrong.value());
}

}  // namespace

std::string CheckpointPlace::name() const {
  return fmt::format("{}.{}.{}", run.first.str(), run.second.value, step);
}

Result<std::string> below_out(const CheckpointPlace& place) {
  const std::string below = fs::path(place.save_dir).lexically_relative(place.out).native();
  if (!below.empty() && below != "." && !below.starts_with("..")) return below;
  return fail(ErrorCode::InvalidArgument,
              fmt::format("its directory '{}' is not below the job's output directory '{}'; write "
                          "checkpoint.dir below ${{out}}",
                          without_controls(place.save_dir), without_controls(place.out)));
}

Result<CheckpointFiles> freeze_checkpoint(const CheckpointPlace& place, const UserEntry* owner) {
  const auto below = below_out(place);
  if (!below) return fail(below.error());
  const WithRightsOf rights(owner);
  if (auto have = rights.check(); !have) return fail(std::move(have.error()));
  const auto top = own_top(place.out);
  if (!top) return fail(Error(top.error()).in(doing(place)));
  const fs::path frozen = *top / place.name();
  if (auto known = read_sent(place.records / place.name(), frozen.native()); !known.empty())
    return CheckpointFiles{.dir = frozen, .files = std::move(known)};
  remove_one(place.out, place.records, place.name());

  v1::Fetch what;
  what.set_path(place.save_dir);
  what.set_layout(place.layout);
  what.set_step(place.step);
  const auto files = files_wanted(what);
  if (!files) return fail(ErrorCode::NotFound, doing(place) + ": it is not there any more");
  CheckpointFiles made{.dir = frozen, .files = {}};
  for (const std::string& file : *files) {
    const std::string name = fmt::format("{}/{}", *below, file);
    const fs::path from = fs::path(place.out) / name, to = frozen / name;
    if (made.dir == frozen) {
      if (auto parents = make_parents(to); !parents)
        return fail(std::move(parents).error().in(doing(place)));
      if (::link(from.c_str(), to.c_str()) != 0) {
        if (!has_no_links(errno))
          return fail_errno(fmt::format("{}: '{}'", doing(place), without_controls(from.native())),
                            errno);
        made.dir = place.out;
      }
    }
    auto state = regular_file(from);
    if (!state) return fail(std::move(state).error().in(doing(place)));
    made.files.emplace(name, *state);
  }
  if (made.dir != frozen) {
    remove_one(place.out, place.records, place.name());
  } else if (auto kept = write_sent(place.records / place.name(), frozen.native(), made.files);
             !kept) {
    return fail(std::move(kept).error().in(doing(place)));
  }
  return made;
}

Result<SentFiles> unchanged(const CheckpointFiles& checkpoint, const UserEntry* owner) {
  const WithRightsOf rights(owner);
  if (auto have = rights.check(); !have) return fail(std::move(have.error()));
  for (const auto& [name, before] : checkpoint.files) {
    const auto now = regular_file(fs::path(checkpoint.dir) / name);
    if (!now || !are_same(before, *now))
      return fail(ErrorCode::DataLoss,
                  fmt::format("'{}' was {} after the checkpoint was whole", without_controls(name),
                              now ? "written" : "removed"));
  }
  return checkpoint.files;
}

Result<std::map<std::string, std::string>> marks_of(const CheckpointPlace& place,
                                                    const UserEntry* owner) {
  const auto below = below_out(place);
  if (!below) return fail(below.error());
  const auto layout = engine::make_layout(place.layout);
  if (!layout) return fail(layout.error());
  const WithRightsOf rights(owner);
  if (auto have = rights.check(); !have) return fail(std::move(have.error()));
  const auto all = own_top(place.out);
  if (!all) return fail(all.error());
  const fs::path frozen = *all / place.name();
  std::error_code wrong;
  const bool is_frozen = fs::is_directory(fs::symlink_status(frozen, wrong));
  const fs::path top = is_frozen ? frozen : fs::path(place.out);
  const engine::LinkPlan plan = (*layout)->resume_links(DiskView(), top / *below, place.step);
  std::map<std::string, std::string> marks;
  if (plan.links.empty()) return marks;
  // Beside the directory of the checkpoint.
  const std::string dir =
      fs::path(plan.links.front().second).parent_path().lexically_relative(top).native();
  for (const auto& [name, content] : plan.files)
    if ((*layout)->is_mark(name))  // a rank's own is in its directory
      marks.emplace(fmt::format("{}/{}", dir, name), content);
  return marks;
}

void thaw_one(const CheckpointPlace& place, const UserEntry* owner) {
  const WithRightsOf rights(owner);
  if (!rights.have()) return;
  remove_one(place.out, place.records, place.name());
  ::rmdir((fs::path(place.out) / kFrozenDir).c_str());  // stays if it is not empty
}

void thaw(const std::string& out, const JobId& job, const fs::path& records,
          const std::set<std::string>& kept, const UserEntry* owner) {
  const WithRightsOf rights(owner);
  if (!rights.have()) return;
  const fs::path top = fs::path(out) / kFrozenDir;
  std::error_code wrong;
  if (!fs::is_directory(fs::symlink_status(top, wrong))) return;
  std::vector<std::string> gone;
  for (fs::directory_iterator at(top, wrong), end; !wrong && at != end; at.increment(wrong)) {
    const std::string name = at->path().filename().native();
    if (name.starts_with(job.str() + ".") && !kept.contains(name)) gone.push_back(name);
  }
  for (const std::string& name : gone) remove_one(out, records, name);
  ::rmdir(top.c_str());  // stays if it is not empty
}

}  // namespace muster::agent
