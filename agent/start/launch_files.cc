#include "agent/start/launch_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <random>
#include <set>

#include "agent/code/needed_files.h"
#include "agent/code/patched_files.h"
#include "agent/launch/with_rights.h"
#include "common/io/file.h"
#include "common/io/unique_fd.h"
#include "common/rundir/records.h"
#include "common/rundir/setup_prefix.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kModeDefault = 0644;
constexpr int kNamesTried = 16;

std::string hex_sha256(const std::string& bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (::EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, ::EVP_sha256(), nullptr) != 1)
    return {};
  std::string text;
  for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", digest.at(i));
  return text;
}

std::unexpected<Error> refused(const v1::LaunchFile& file, const std::string& why) {
  return fail(ErrorCode::InvalidArgument, fmt::format("writing file '{}': {}", file.path(), why));
}

Result<void> check_place(const v1::LaunchFile& file, const std::set<fs::path>& made) {
  const fs::path path = file.path();
  if (!path.is_absolute() || path.lexically_normal() != path || !path.has_filename())
    return refused(file, "it is not an absolute path without '..'");
  if (file.path().find('\0') != std::string::npos)
    return refused(file, "it has a zero byte in its name");
  if (!made.contains(path.parent_path()))
    return refused(file, "its directory is none that the order has made");
  if ((file.mode() & ~0777U) != 0)
    return refused(file,
                   fmt::format("mode {:o} has more than the permissions of a file", file.mode()));
  return {};
}

Result<void> check_bytes(const v1::LaunchFile& file) {
  if (file.sha256().empty() || hex_sha256(file.content()) != file.sha256()) {
    return fail(ErrorCode::DataLoss,
                fmt::format("writing file '{}': its {} bytes are not those whose hash came with "
                            "them ('{}'); it was not written",
                            file.path(), file.content().size(), file.sha256()));
  }
  return {};
}

std::unexpected<Error> failed(const v1::LaunchFile& file, const char* doing, int error) {
  auto result = fail_errno(fmt::format("writing file '{}': {}", file.path(), doing), error);
  if (error == EISDIR || error == ENOTDIR) result.error().code = ErrorCode::InvalidArgument;
  return result;
}

Result<void> write(const v1::LaunchFile& file) {
  const fs::path path = file.path();
  const std::string name = path.filename().string();
  const io::UniqueFd dir(::open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir) return failed(file, "opening its directory", errno);
  struct stat there{};
  if (::fstatat(dir.get(), name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 &&
      S_ISDIR(there.st_mode))
    return refused(file, "a directory of that name is there; move it away");

  std::random_device random;
  std::string temporary;
  io::UniqueFd fd;
  for (int tries = 0; !fd && tries < kNamesTried; ++tries) {
    temporary = fmt::format(".muster-{:08x}{:08x}", random(), random());
    fd.reset(::openat(dir.get(), temporary.c_str(),
                      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!fd && errno != EEXIST) return failed(file, "making a file next to it", errno);
  }
  if (!fd) return failed(file, "making a file next to it", EEXIST);
  const auto undo = [&](const char* doing, int error) {
    ::unlinkat(dir.get(), temporary.c_str(), 0);
    return failed(file, doing, error);
  };
  std::size_t written = 0;
  if (const int error = io::write_all(fd.get(), file.content(), written); error != 0)
    return undo("writing the file next to it", error);
  if (::fchmod(fd.get(), file.mode() == 0 ? kModeDefault : file.mode()) != 0)
    return undo("setting its mode", errno);
  // NFS and quotas report a full disk only here.
  if (::close(fd.release()) != 0) return undo("writing the file next to it", errno);
  if (::renameat(dir.get(), temporary.c_str(), dir.get(), name.c_str()) != 0)
    return undo("putting it in place", errno);
  return {};
}

// Writes the commands unchanged, one per line, so that bash's "line 3" is the third command. Then a
// line writes the environment for the worker to read. It names env by its path, because a script
// may have changed PATH, and it works with noclobber. If a command ends the script earlier, the
// prefix in the first line records which one. Secrets are no part of what is written: the worker
// has them.
Result<void> write_setup_script(const v1::NodeLaunch& order, const rundir::RunLayout& run) {
  std::string script(rundir::kSetupPrefix), without;
  for (const v1::SecretVariable& one : order.secrets())
    without += fmt::format("-u {} ", one.variable());
  for (const std::string& command : order.setup().commands()) {
    if (command.find('\0') != std::string::npos)
      return fail(ErrorCode::InvalidArgument,
                  "writing the script of runtime.setup: a command has a zero byte in it");
    // a final backslash would join the next line to this one
    script += command + (command.ends_with('\\') ? "\n\n" : "\n");
  }
  script +=
      fmt::format("{} {}-0 >| \"${}\"\n", kEnvProgram, without, rundir::kSetupEnvironmentVariable);
  const auto dir = rundir::open_run(run);
  if (!dir) return fail(Error(dir.error()).in("writing the script of runtime.setup"));
  if (auto written = io::replace_file(dir->at(run.setup_script().filename().string()), script,
                                      io::Durable::No);
      !written) {
    if (written.error().code != ErrorCode::ResourceExhausted) written.error().code = ErrorCode::Io;
    return written;
  }
  return {};
}

}  // namespace

Result<void> write_launch_files(const v1::NodeLaunch& order, const rundir::RunLayout& run,
                                const UserEntry* owner) {
  if (order.has_setup()) {
    if (auto written = write_setup_script(order, run); !written) return written;
  }
  if (order.files().empty() && order.patched().empty() && order.needed().empty()) return {};
  std::set<fs::path> made;
  for (const std::string& dir : order.make_dirs()) made.insert(dir);
  std::size_t bytes = 0;
  for (const v1::LaunchFile& file : order.files()) {
    bytes += file.content().size();
    if (bytes > kLaunchFilesMost)
      return refused(file, fmt::format("the files of this launch have more than {} MiB together",
                                       kLaunchFilesMost >> 20U));
    if (auto good = check_place(file, made); !good) return good;
    if (auto good = check_bytes(file); !good) return good;
  }
  const WithRightsOf rights(owner);
  if (auto have = rights.check(); !have) return have;
  for (const v1::PatchedFile& patched : order.patched()) {
    const auto copy = patched_file(order, patched);
    if (!copy) return fail(copy.error());
    bytes += copy->content().size();
    if (bytes > kLaunchFilesMost)
      return refused(*copy, fmt::format("the files of this launch have more than {} MiB together",
                                        kLaunchFilesMost >> 20U));
    if (auto good = check_place(*copy, made); !good) return good;
    if (auto written = write(*copy); !written) return written;
  }
  // After the copies: of a file that is in both lists, errors of its copy come first.
  for (const v1::NeededFile& needed : order.needed()) {
    if (auto good = check_needed_file(order, needed); !good) return good;
  }
  for (const v1::LaunchFile& file : order.files()) {
    if (auto written = write(file); !written) return written;
  }
  return {};
}

}  // namespace muster::agent
