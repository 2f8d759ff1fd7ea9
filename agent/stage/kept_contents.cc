#include "agent/stage/kept_contents.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <system_error>
#include <utility>
#include <vector>

#include "common/digest/hex.h"
#include "common/digest/sha256.h"
#include "common/io/file.h"

namespace muster::agent {
namespace {

constexpr const char* kOfInput = ".contents";

std::filesystem::path dir_of(const std::filesystem::path& root) {
  return root / "cache" / "contents";
}

// It was used now. False: it is not there.
bool touch(const std::filesystem::path& file) {
  return ::utimensat(AT_FDCWD, file.c_str(), nullptr, AT_SYMLINK_NOFOLLOW) == 0;
}

// Of those that no tree has. Another agent may remove the same files at this moment.
void remove_oldest(const std::filesystem::path& dir) {
  struct Kept {
    std::pair<std::int64_t, std::int64_t> used;
    std::uint64_t bytes = 0;
    std::filesystem::path file;
  };
  std::vector<Kept> all;
  std::error_code wrong;
  for (std::filesystem::directory_iterator at(dir, wrong), end; !wrong && at != end;
       at.increment(wrong)) {
    struct stat status{};
    if (::lstat(at->path().c_str(), &status) == 0 && status.st_nlink == 1)
      all.push_back({.used = {status.st_mtim.tv_sec, status.st_mtim.tv_nsec},
                     .bytes = static_cast<std::uint64_t>(status.st_size),
                     .file = at->path()});
  }
  std::ranges::sort(all, std::greater(), &Kept::used);
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    bytes += all[i].bytes;
    if (i >= kContentsMost || bytes > kContentsBytesMost)
      std::filesystem::remove(all[i].file, wrong);
  }
}

}  // namespace

Result<void> keep_contents(const std::filesystem::path& root, const store::Contents& contents,
                           const std::filesystem::path& job_dir, const std::string& input) {
  const std::filesystem::path dir = dir_of(root);
  if (auto made = io::make_dirs(dir, 0700); !made) return made;
  const std::string text = contents.text();
  const std::filesystem::path file = dir / sha256_hex(text);
  const std::filesystem::path of_input = job_dir / (input + kOfInput);
  if (::unlink(of_input.c_str()) != 0 && errno != ENOENT)
    return fail_errno(fmt::format("removing '{}'", of_input.native()), errno);
  // Its name says what it has, so one that a loss of power has cut is found out.
  const auto kept = io::read_regular_file(file, text.size(), io::Links::Own);
  if (!kept || *kept != text) {
    if (auto written = io::replace_file(file, text, io::Durable::No); !written) return written;
  }
  // Where it cannot be linked it can only be removed earlier.
  (void)::link(file.c_str(), of_input.c_str());
  (void)touch(file);
  remove_oldest(dir);
  return {};
}

std::optional<store::Contents> kept_contents(const std::filesystem::path& root,
                                             const std::string& sha256) {
  if (!is_sha256_hex(sha256)) return std::nullopt;
  const std::filesystem::path file = dir_of(root) / sha256;
  const auto text = io::read_regular_file(file, kContentsBytesMost, io::Links::Own);
  if (!text || sha256_hex(*text) != sha256) return std::nullopt;
  auto contents = store::parse_contents(*text);
  if (!contents) return std::nullopt;
  (void)touch(file);
  return *std::move(contents);
}

void touch_contents(const std::filesystem::path& job_dir) {
  std::error_code wrong;
  for (std::filesystem::directory_iterator at(job_dir, wrong), end; !wrong && at != end;
       at.increment(wrong))
    if (at->path().extension() == kOfInput) (void)touch(at->path());
}

}  // namespace muster::agent
