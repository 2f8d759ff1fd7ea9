#include "agent/outputs/upload_outputs.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "agent/launch/disk_view.h"
#include "agent/launch/with_rights.h"
#include "agent/outputs/frozen_checkpoint.h"
#include "agent/outputs/send_texts.h"
#include "agent/outputs/stored_checkpoint.h"
#include "agent/saves/files_out.h"
#include "common/base/controls.h"
#include "common/engine/model/layout.h"
#include "common/log/log.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

// Below ${out}: what each node has made of the code.
constexpr std::string_view kCode = "code";
constexpr std::size_t kCheckpointsMost = 1'000'000;  // of one attempt
constexpr std::uint64_t kLarge = std::uint64_t{64} << 20;
constexpr std::int64_t kMayGrow = 60'000'000'000;

}  // namespace

Result<store::Selection> wanted_of(const v1::OutputUpload& upload) {
  return store::Selection::make(
      std::vector<std::string>(upload.include().begin(), upload.include().end()));
}

namespace {

// Directories that disappear meanwhile are none; one that cannot be read is named in `unread`.
void list_below(const std::string& dir, const std::string& below, const SkipDir& skip,
                const store::Selection& wanted, SentFiles& files, std::string& unread) {
  std::error_code wrong;
  fs::directory_iterator at(below.empty() ? dir : fmt::format("{}/{}", dir, below), wrong), end;
  for (; !wrong && at != end; at.increment(wrong)) {
    const std::string leaf = at->path().filename().native();
    const std::string name = below.empty() ? leaf : fmt::format("{}/{}", below, leaf);
    struct stat status{};
    if (::lstat(at->path().c_str(), &status) != 0) continue;  // it is gone
    if (S_ISDIR(status.st_mode) && !skip(name)) list_below(dir, name, skip, wanted, files, unread);
    if (S_ISREG(status.st_mode) && wanted.has(name)) files.emplace(name, state_of(status));
  }
  if (wrong && wrong != std::errc::no_such_file_or_directory && unread.empty())
    unread = fmt::format("reading '{}': {}", without_controls(fmt::format("{}/{}", dir, below)),
                         wrong.message());
}

}  // namespace

Result<SentFiles> list_outputs(const std::string& dir, const store::Selection& wanted,
                               const UserEntry* owner, std::string& unread, const SkipDir& skip) {
  const WithRightsOf rights(owner);
  if (auto sound = rights.check(); !sound) return fail(std::move(sound.error()));
  SentFiles files;
  unread.clear();
  // A job may have a copy of such a store: its lists would go over those of this one.
  const auto skips = [&](const std::string& name) {
    return name == kCode || name == kFrozenDir || fs::path(name).filename() == store::kSumsDir ||
           (skip && skip(name));
  };
  list_below(dir, "", skips, wanted, files, unread);
  return files;
}

namespace {

// The files of the checkpoints on this node's disk that are not to be uploaded, and the marks: what
// they say may be one of these, and the seals have written them there.
std::set<std::string> files_of_others(const std::string& out, const OutputSaves& saves,
                                      const engine::CheckpointLayout& layout) {
  std::set<std::string> files;
  if (saves.kept.empty()) return files;
  const DiskView disk;
  for (const engine::FileView::Entry& entry : disk.list(saves.dir)) {
    const std::string dir = fmt::format("{}/{}", saves.dir, entry.name);
    for (const engine::FileView::Entry& file : disk.list(dir))
      if (layout.is_mark(file.name))
        files.insert(fs::path(dir).lexically_relative(out) / file.name);
    for (const engine::FoundCheckpoint& found : layout.scan(disk, dir, kCheckpointsMost)) {
      if (saves.kept.contains({entry.name, found.step})) continue;
      v1::Fetch what;
      what.set_path(dir);
      what.set_layout(saves.layout);
      what.set_step(found.step);
      for (const std::string& name : files_wanted(what).value_or(std::vector<std::string>()))
        files.insert(fs::path(dir).lexically_relative(out) / name);
    }
  }
  return files;
}

// Checkpoints in the store of which files are written now.
void unseal_written(const UploadWork& work, const OutputSaves& saves,
                    const std::vector<std::string>& written) {
  const std::string top = fs::path(saves.dir).lexically_relative(work.upload.dir()).native() + "/";
  std::map<std::string, std::vector<std::string>> names;  // below each save directory
  for (const std::string& name : written) {
    const std::size_t slash = name.starts_with(top) ? name.find('/', top.size()) : name.npos;
    if (slash != name.npos) names[name.substr(0, slash)].push_back(name.substr(slash + 1));
  }
  for (const auto& [dir, below] : names) unseal_all(work, dir, below);
}

}  // namespace

Uploaded upload_outputs(const UploadWork& work, const OutputSaves& saves) {
  const auto wanted = wanted_of(work.upload);
  if (!wanted) return Uploaded::failed(wanted.error());
  const auto layout = engine::make_layout(saves.layout.empty() ? "none" : saves.layout);
  if (!layout) return Uploaded::failed(layout.error());
  const auto is_mark = [&](const std::string& name) {
    return (*layout)->is_mark(fs::path(name).filename().native());
  };
  const std::set<std::string> skipped = files_of_others(work.upload.dir(), saves, **layout);
  std::string unread;
  const auto list = [&]() -> Result<SentFiles> {
    auto files = list_outputs(work.upload.dir(), *wanted, work.owner, unread);
    if (files)
      std::erase_if(*files, [&](const auto& file) {
        return skipped.contains(file.first) || (work.upload.has_others() && is_mark(file.first));
      });
    return files;
  };
  Uploaded uploaded = send_files(work, {.dir = work.upload.dir(),
                                        .list = list,
                                        .is_last = is_mark,
                                        .before_fresh = [&](const std::vector<std::string>& names) {
                                          unseal_written(work, saves, names);
                                        }});
  const store::Sums sums = std::exchange(uploaded.sums, {});
  if (uploaded.problem.empty()) uploaded.problem = unread;
  if (!uploaded.problem.empty() || sums.empty()) return uploaded;
  if (sums.size() < uploaded.files) {
    log::warn("there is no list of the outputs: not all could be read after they were uploaded",
              {{"job", work.job}});
    return uploaded;
  }
  uploaded.problem =
      send_texts(work,
                 {{store::job_sums_name(work.job, work.upload.node()), store::sums_text(sums)}})
          .problem;
  return uploaded;
}

Uploaded upload_others(const UploadWork& work, const std::string& save_dir) {
  const auto wanted = wanted_of(work.upload);
  if (!wanted) return Uploaded::failed(wanted.error());
  // Each attempt has its own beside it.
  const std::string saves =
      fs::path(save_dir).parent_path().lexically_relative(work.upload.dir()).native();
  std::string unread;
  const auto list = [&]() -> Result<SentFiles> {
    auto files = list_outputs(work.upload.dir(), *wanted, work.owner, unread,
                              [&](const std::string& name) { return name == saves; });
    if (!files) return files;
    const std::int64_t recent = now_ns() - kMayGrow;
    std::erase_if(*files, [&](const auto& file) {
      return file.second.bytes >= kLarge && file.second.modified_ns > recent;
    });
    return files;
  };
  return send_files(work,
                    {.dir = work.upload.dir(), .checks = false, .list = list, .is_last = nullptr});
}

}  // namespace muster::agent
