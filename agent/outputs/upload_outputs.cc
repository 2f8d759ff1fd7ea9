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

Result<SentFiles> list_outputs(const std::string& dir, const store::Selection& wanted,
                               const UserEntry* owner) {
  const WithRightsOf rights(owner);
  if (auto sound = rights.check(); !sound) return fail(std::move(sound.error()));
  SentFiles files;
  std::error_code wrong;
  fs::recursive_directory_iterator at(dir, fs::directory_options::none, wrong), end;
  for (; !wrong && at != end; at.increment(wrong)) {
    std::string name = at->path().native().substr(dir.size() + 1);
    struct stat status{};
    if (::lstat(at->path().c_str(), &status) != 0) continue;  // it is gone
    if (S_ISDIR(status.st_mode) && (name == kCode || name == kFrozenDir))
      at.disable_recursion_pending();
    if (S_ISREG(status.st_mode) && wanted.has(name))
      files.emplace(std::move(name), state_of(status));
  }
  if (wrong == std::errc::no_such_file_or_directory && files.empty()) return files;
  if (wrong)
    return fail(ErrorCode::Io,
                fmt::format("reading '{}': {}", without_controls(dir), wrong.message()));
  return files;
}

Uploaded upload_outputs(const UploadWork& work, const std::string& layout) {
  const auto no = [](const Error& error) {
    return Uploaded{.files = 0, .bytes = 0, .problem = error.message};
  };
  const auto wanted = wanted_of(work.upload);
  if (!wanted) return no(wanted.error());
  const std::string row = layout.empty() ? "none" : layout;
  const auto marks = engine::make_layout(row);
  if (!marks) return no(marks.error());
  return send_files(work,
                    {.dir = work.upload.dir(),
                     .list = [&] { return list_outputs(work.upload.dir(), *wanted, work.owner); },
                     .is_last =
                         [&](const std::string& name) {
                           return (*marks)->is_mark(fs::path(name).filename().native());
                         }});
}

Uploaded upload_others(const UploadWork& work, const std::string& save_dir) {
  const auto wanted = wanted_of(work.upload);
  if (!wanted) return {.files = 0, .bytes = 0, .problem = wanted.error().message};
  // Each attempt has its own beside it.
  const std::string saves =
      fs::path(save_dir).parent_path().lexically_relative(work.upload.dir()).native() + "/";
  const auto list = [&]() -> Result<SentFiles> {
    auto files = list_outputs(work.upload.dir(), *wanted, work.owner);
    if (!files) return files;
    const std::int64_t recent = now_ns() - kMayGrow;
    std::erase_if(*files, [&](const auto& file) {
      return file.first.starts_with(saves) ||
             (file.second.bytes >= kLarge && file.second.modified_ns > recent);
    });
    return files;
  };
  return send_files(work, {.dir = work.upload.dir(), .list = list, .is_last = nullptr});
}

}  // namespace muster::agent
