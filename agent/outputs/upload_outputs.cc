#include "agent/outputs/upload_outputs.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "agent/launch/with_rights.h"
#include "agent/outputs/frozen_checkpoint.h"
#include "agent/outputs/send_texts.h"
#include "common/base/controls.h"
#include "common/engine/model/layout.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

// Below ${out}: what each node has made of the code.
constexpr std::string_view kCode = "code";
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
  const auto skips = [&](const std::string& name) {
    return name == kCode || name == kFrozenDir || (skip && skip(name));
  };
  list_below(dir, "", skips, wanted, files, unread);
  return files;
}

Uploaded upload_outputs(const UploadWork& work, const std::string& layout) {
  const auto wanted = wanted_of(work.upload);
  if (!wanted) return Uploaded::failed(wanted.error());
  const std::string row = layout.empty() ? "none" : layout;
  const auto marks = engine::make_layout(row);
  if (!marks) return Uploaded::failed(marks.error());
  const auto is_mark = [&](const std::string& name) {
    return (*marks)->is_mark(fs::path(name).filename().native());
  };
  std::string unread;
  const auto list = [&]() -> Result<SentFiles> {
    auto files = list_outputs(work.upload.dir(), *wanted, work.owner, unread);
    if (files && work.upload.has_others())
      std::erase_if(*files, [&](const auto& file) { return is_mark(file.first); });
    return files;
  };
  Uploaded uploaded =
      send_files(work, {.dir = work.upload.dir(), .list = list, .is_last = is_mark});
  if (uploaded.problem.empty()) uploaded.problem = unread;
  if (uploaded.problem.empty() && !uploaded.sums.empty())
    uploaded.problem = send_texts(work, {{store::job_sums_name(work.job, work.upload.node()),
                                          store::sums_text(std::exchange(uploaded.sums, {}))}})
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
