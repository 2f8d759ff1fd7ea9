#include "agent/saves/files_out.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>

#include "agent/launch/disk_view.h"
#include "agent/launch/with_rights.h"
#include "common/engine/model/layout.h"
#include "common/io/beneath.h"
#include "common/io/unique_fd.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPartBytes = 512 << 10;

std::string doing(const v1::Fetch& what) {
  return fmt::format("reading '{}' for another node", what.path());
}

bool is_below(const std::string& file, const v1::Fetch& what) {
  if (what.only().empty()) return true;
  return std::ranges::any_of(fs::path(file).parent_path(), [&](const fs::path& part) {
    return std::ranges::any_of(what.only(), [&](const std::string& name) { return part == name; });
  });
}

void add_all(std::vector<std::string>& files, const std::string& root, const std::string& below) {
  std::error_code error;
  const fs::path start = below.empty() ? fs::path(root) : fs::path(root) / below;
  if (!below.empty() && fs::is_regular_file(fs::symlink_status(start, error))) {
    files.push_back(below);
    return;
  }
  for (auto at = fs::recursive_directory_iterator(
           start, fs::directory_options::skip_permission_denied, error);
       !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    std::error_code ignored;
    if (fs::is_regular_file(at->symlink_status(ignored)))
      files.push_back(at->path().lexically_relative(root).string());
  }
}

}  // namespace

Result<std::vector<std::string>> files_wanted(const v1::Fetch& what) {
  std::vector<std::string> files;
  if (what.layout().empty()) {
    add_all(files, what.path(), "");
  } else {
    auto layout = engine::make_layout(what.layout());
    if (!layout) return fail(std::move(layout).error().in(doing(what)));
    for (const auto& [name, target] :
         (*layout)->resume_links(DiskView(), what.path(), what.step()).links) {
      const std::string below = fs::path(target).lexically_relative(what.path()).string();
      if (below.empty() || below.starts_with("..") || !is_below(below, what)) continue;
      add_all(files, what.path(), below);
    }
  }
  std::ranges::sort(files);
  if (files.empty()) {
    const std::string of =
        what.layout().empty() ? "it has no files"
                              : fmt::format("there is no checkpoint of step {} in it", what.step());
    return fail(ErrorCode::NotFound,
                fmt::format("{}: {} on node '{}'; go on from another checkpoint (--from)",
                            doing(what), of, what.node()));
  }
  return files;
}

Result<void> read_files(const v1::Fetch& what, const UserEntry* user,
                        const std::function<bool(v1::FilePart)>& part) {
  const WithRightsOf rights(user);
  if (auto have = rights.check(); !have) return have;
  // Once for all files: a job that puts another directory in its place does not mix the two.
  const io::UniqueFd root(::open(what.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const int why_no_root = errno;
  const auto files = files_wanted(what);
  if (!files) return fail(files.error());
  std::uint64_t all = 0;
  for (const std::string& file : *files) {
    // The names are from a listing. What has their place now may be a link, which is not followed.
    const io::UniqueFd fd = root ? io::open_beneath(root.get(), file, O_RDONLY) : io::UniqueFd();
    const int why = root ? errno : why_no_root;
    if (!fd)
      return fail_errno(fmt::format("{} on node '{}': opening '{}/{}'", doing(what), what.node(),
                                    what.path(), file),
                        why);
    struct stat info{};
    if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode))
      return fail(ErrorCode::Io, fmt::format("{}: '{}' is no regular file on node '{}'",
                                             doing(what), file, what.node()));
    v1::FilePart begin;
    begin.mutable_begin()->set_path(file);
    begin.mutable_begin()->set_size(static_cast<std::uint64_t>(info.st_size));
    begin.mutable_begin()->set_mode(info.st_mode & 0777);
    if (!part(std::move(begin))) return {};
    auto left = static_cast<std::uint64_t>(info.st_size);
    while (left > 0) {
      v1::FilePart data;
      std::string& bytes = *data.mutable_data();
      bytes.resize(static_cast<std::size_t>(std::min<std::uint64_t>(left, kPartBytes)));
      const ssize_t got = ::read(fd.get(), bytes.data(), bytes.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0)
        return fail(
            fail_errno(fmt::format("{}: reading '{}' on node '{}'", doing(what), file, what.node()),
                       errno)
                .error());
      if (got == 0)
        return fail(ErrorCode::Io,
                    fmt::format("{}: '{}' has become shorter on node '{}' while it was read",
                                doing(what), file, what.node()));
      bytes.resize(static_cast<std::size_t>(got));
      left -= static_cast<std::uint64_t>(got);
      if (!part(std::move(data))) return {};
    }
    all += static_cast<std::uint64_t>(info.st_size);
  }
  v1::FilePart end;
  end.mutable_end()->set_files(files->size());
  end.mutable_end()->set_bytes(all);
  (void)part(std::move(end));
  return {};
}

}  // namespace muster::agent
