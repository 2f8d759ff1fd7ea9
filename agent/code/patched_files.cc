#include "agent/code/patched_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <vector>

#include "agent/code/config_checks.h"
#include "agent/container/container_command.h"
#include "agent/launch/spec_keys.h"
#include "common/compat/patch/patch.h"
#include "common/compat/patch/shell_vars.h"
#include "common/io/unique_fd.h"

namespace muster::agent {
namespace {

std::string_view key_of(const v1::PatchedFile& file) {
  if (file.path().empty())
    return file.items().empty() ? std::string_view() : std::string_view(file.items(0).at());
  return file.vars().empty() ? "launch.patch" : "launch.vars";
}

std::string doing(const v1::PatchedFile& file) {
  const std::string_view key = key_of(file);
  return fmt::format("{}{}'{}'", key, key.empty() ? "" : ": ", patch::shown_path(file.source()));
}

std::unexpected<Error> failed(const v1::NodeLaunch& order, const v1::PatchedFile& file, int error) {
  if (error == ENOENT || error == ENOTDIR) {
    const bool images = order.has_container() && !is_nodes_own(order, file.source());
    return fail(ErrorCode::NotFound,
                fmt::format("{}{}", missing_file(order, key_of(file), file.source()),
                            images ? "; what only an image has cannot be changed" : ""));
  }
  auto result = fail_errno(fmt::format("reading {}", doing(file)), error);
  if (error == EACCES || error == EPERM) result.error().code = ErrorCode::NotAllowed;
  if (error == ELOOP || error == ENAMETOOLONG) result.error().code = ErrorCode::InvalidArgument;
  return result;
}

struct Read {
  std::string text;
  std::uint32_t mode = 0;
};

Result<Read> read_source(const v1::NodeLaunch& order, const v1::PatchedFile& file) {
  // open(2) of a pipe would otherwise wait for its writer
  const io::UniqueFd fd(
      ::open(file.source().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!fd) return failed(order, file, errno);
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return failed(order, file, errno);
  if (!S_ISREG(info.st_mode))
    return fail(ErrorCode::InvalidArgument,
                fmt::format("reading {}: it is not a file", doing(file)));
  Read read{.text = {}, .mode = info.st_mode & 0777U};
  constexpr std::size_t kPiece = 64 << 10;
  while (true) {
    const std::size_t had = read.text.size();
    if (had > patch::kFileBytesMax)
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("reading {}: it has more than {} MiB", doing(file),
                              patch::kFileBytesMax >> 20U));
    read.text.resize(had + kPiece);
    const ssize_t got = ::read(fd.get(), read.text.data() + had, kPiece);
    if (got < 0 && errno == EINTR) {
      read.text.resize(had);
      continue;
    }
    if (got < 0) return failed(order, file, errno);
    read.text.resize(had + static_cast<std::size_t>(got));
    if (got == 0) return read;
  }
}

}  // namespace

Result<std::optional<v1::LaunchFile>> patched_file(const v1::NodeLaunch& order,
                                                   const v1::PatchedFile& file) {
  if (!file.source().starts_with('/') || file.source().find('\0') != std::string::npos)
    return fail(ErrorCode::InvalidArgument, fmt::format("reading '{}': it is not an absolute path",
                                                        patch::shown_path(file.source())));
  if (file.path().empty()) {
    if (order.has_container() && !is_nodes_own(order, file.source()))
      return std::optional<v1::LaunchFile>();
    struct stat info{};
    const int error = ::stat(file.source().c_str(), &info) == 0 ? 0 : errno;
    const bool may_come = order.has_setup() && (error == ENOENT || error == ENOTDIR);
    if (error != 0 && !may_come) return failed(order, file, error);
    if (auto refusal = error == 0 ? config_refusal(file) : std::nullopt)
      return fail(ErrorCode::InvalidArgument, *std::move(refusal));
    return std::optional<v1::LaunchFile>();
  }
  auto read = read_source(order, file);
  if (!read) return fail(std::move(read.error()));
  Result<std::string> text = std::move(read->text);
  if (!file.items().empty()) {
    std::vector<patch::Change> changes;
    for (const v1::PatchItem& item : file.items())
      changes.push_back({.at = item.at(), .value = item.value()});
    text = patch::changed_file(file.source(), *text, changes);
  }
  if (text && !file.vars().empty())
    text =
        patch::replaced_assignments(file.source(), *text, {file.vars().begin(), file.vars().end()});
  if (!text) return fail(std::move(text.error()));
  v1::LaunchFile out;
  out.set_path(file.path());
  out.set_mode(read->mode | 0400U);
  out.set_content(std::move(*text));
  return std::optional(std::move(out));
}

}  // namespace muster::agent
