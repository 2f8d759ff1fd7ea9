#include "agent/start/files_in.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "agent/launch/with_rights.h"
#include "agent/start/run_dirs.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPathMost = 4096;

Result<void> make_dir(const fs::path& dir, const UserEntry* owner) {
  v1::NodeLaunch dirs;
  dirs.add_make_dirs(dir.string());
  return make_output_dirs(dirs, owner);
}

bool stays_below(std::string_view path) {
  if (path.empty() || path.size() > kPathMost || path.find('\0') != std::string_view::npos)
    return false;
  for (std::size_t from = 0; from <= path.size();) {
    const std::size_t end = std::min(path.find('/', from), path.size());
    const std::string_view part = path.substr(from, end - from);
    if (part.empty() || part == "." || part == "..") return false;
    from = end + 1;
  }
  return true;
}

std::unexpected<Error> failed(const std::string& doing, int error) {
  auto result = fail_errno(doing, error);
  if (error == ENOSPC || error == EDQUOT) {
    result.error().code = ErrorCode::ResourceExhausted;
    result.error().message += "; make room on that disk";
  }
  return result;
}

}  // namespace

FilesIn::FilesIn(fs::path path, fs::path staging, const UserEntry* owner)
    : path_(std::move(path)), staging_(std::move(staging)), owner_(owner) {}

FilesIn::~FilesIn() {
  std::error_code ignored;
  if (staging_.empty()) return;
  const WithRightsOf rights(owner_);
  if (rights.have()) fs::remove_all(staging_, ignored);
}

std::unexpected<Error> FilesIn::wrong(const std::string& what) const {
  return fail(ErrorCode::InvalidArgument, fmt::format("fetching '{}': {}", path_.string(), what));
}

Result<FilesIn> FilesIn::begin(const std::string& path, const std::string& mark,
                               std::uint32_t attempt, const UserEntry* owner) {
  const fs::path place = fs::path(path).lexically_normal();
  if (!place.is_absolute() || !place.has_relative_path())
    return fail(ErrorCode::InvalidArgument,
                fmt::format("fetching '{}': it is not an absolute path", path));
  fs::path staging = place.has_filename() ? place : place.parent_path();
  const std::string all = fmt::format("{}.fetch-{}.", staging.filename().string(), mark);
  staging += fmt::format(".fetch-{}.{}", mark, attempt);
  if (auto made = make_dir(staging.parent_path(), owner); !made)
    return fail(std::move(made.error()));
  const WithRightsOf rights(owner);
  if (auto have = rights.check(); !have) return fail(std::move(have.error()));
  std::error_code ignored;
  for (fs::directory_iterator at(staging.parent_path(), ignored), end; !ignored && at != end;
       at.increment(ignored)) {
    std::error_code stays;
    if (at->path().filename().string().starts_with(all)) fs::remove_all(at->path(), stays);
  }
  FilesIn files(place, staging, owner);
  if (auto made = make_dir(staging, owner); !made) return fail(std::move(made.error()));
  return files;
}

Result<void> FilesIn::take(const v1::FilePart& part) {
  const WithRightsOf rights(owner_);
  if (auto have = rights.check(); !have) return have;
  if (whole_) return wrong("something came behind its end");
  switch (part.what_case()) {
    case v1::FilePart::kBegin: {
      if (auto ended = end_file(); !ended) return ended;
      return begin_file(part.begin());
    }
    case v1::FilePart::kData: {
      if (file_.get() < 0 || part.data().size() > left_)
        return wrong("more bytes came than the file has");
      for (std::string_view rest = part.data(); !rest.empty();) {
        const ssize_t wrote = ::write(file_.get(), rest.data(), rest.size());
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0)
          return failed(fmt::format("fetching '{}': writing '{}'", path_.string(), files_.back()),
                        errno);
        rest.remove_prefix(static_cast<std::size_t>(wrote));
      }
      left_ -= part.data().size();
      bytes_ += part.data().size();
      return {};
    }
    case v1::FilePart::kEnd: {
      if (auto ended = end_file(); !ended) return ended;
      if (part.end().files() != files_.size() || part.end().bytes() != bytes_)
        return wrong(fmt::format("{} files and {} bytes came of {} and {}", files_.size(), bytes_,
                                 part.end().files(), part.end().bytes()));
      whole_ = true;
      return {};
    }
    case v1::FilePart::kFailed: return fail(ErrorCode::Io, part.failed().text());
    case v1::FilePart::WHAT_NOT_SET: break;
  }
  return wrong("a message of a kind came that this agent does not know");
}

Result<void> FilesIn::begin_file(const v1::FileBegin& file) {
  if (!stays_below(file.path()))
    return wrong(fmt::format("a file came whose name ('{}') does not stay below it",
                             file.path().substr(0, 200)));
  const fs::path place = staging_ / file.path();
  if (auto made = make_dir(place.parent_path(), owner_); !made) return made;
  file_ = io::UniqueFd(
      ::open(place.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file_.get() < 0)
    return failed(fmt::format("fetching '{}': making '{}'", path_.string(), file.path()), errno);
  files_.push_back(file.path());
  left_ = file.size();
  mode_ = file.mode() & 0777;
  return {};
}

Result<void> FilesIn::end_file() {
  if (file_.get() < 0) return {};
  if (left_ != 0) return wrong(fmt::format("'{}' is {} bytes short", files_.back(), left_));
  const auto doing = [&](const char* what) {
    return fmt::format("fetching '{}': {} '{}'", path_.string(), what, files_.back());
  };
  if (::fchmod(file_.get(), mode_) != 0) return failed(doing("setting the mode of"), errno);
  // A later start takes a file at its final path as complete (lies_here). So a power loss must not
  // keep the name and lose the bytes.
  if (::fsync(file_.get()) != 0) return failed(doing("writing to the disk"), errno);
  file_ = io::UniqueFd();
  return {};
}

Result<void> FilesIn::put() {
  if (!whole_) return wrong("it was cut off");
  const WithRightsOf rights(owner_);
  if (auto have = rights.check(); !have) return have;
  for (const std::string& file : files_) {
    const fs::path place = path_ / file;
    if (auto made = make_dir(place.parent_path(), owner_); !made) return made;
    if (::rename((staging_ / file).c_str(), place.c_str()) != 0)
      return failed(fmt::format("fetching '{}': putting '{}' in place", path_.string(), file),
                    errno);
  }
  return {};
}

}  // namespace muster::agent
