#include "agent/code/patched_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <vector>

#include "agent/code/source_file.h"
#include "agent/container/container_command.h"
#include "common/compat/patch/patch.h"
#include "common/compat/patch/shell_vars.h"
#include "common/io/unique_fd.h"

namespace muster::agent {
namespace {

std::string_view key_of(const v1::PatchedFile& file) {
  return file.vars().empty() ? "launch.patch" : "launch.vars";
}

std::string doing(const v1::PatchedFile& file) { return named_source(key_of(file), file.source()); }

std::unexpected<Error> failed(const v1::NodeLaunch& order, const v1::PatchedFile& file, int error) {
  auto result = source_failed(order, key_of(file), file.source(), error);
  if (result.error().code == ErrorCode::NotFound && order.has_container() &&
      !is_nodes_own(order, file.source()))
    result.error().message += "; what only an image has cannot be changed";
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

Result<v1::LaunchFile> patched_file(const v1::NodeLaunch& order, const v1::PatchedFile& file) {
  if (auto good = check_source(file.source()); !good) return fail(std::move(good.error()));
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
  return out;
}

}  // namespace muster::agent
