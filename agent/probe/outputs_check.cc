#include "agent/probe/outputs_check.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>

#include "common/base/error.h"
#include "common/base/names.h"
#include "common/base/random_hex.h"
#include "common/io/file.h"
#include "common/io/unique_fd.h"

namespace muster::agent::probe {
namespace {

constexpr std::size_t kStorageIdBytes = 16;
constexpr std::size_t kNamesRead = 16'384, kInstancesMost = 4'096;
// A mark is renewed every 30 s, and a client of NFS may see the directory as it was a minute ago.
constexpr std::int64_t kLatelyMinutes = 5, kOldMinutes = std::int64_t{24} * 60;
constexpr int kOpen = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;

struct Mark {
  std::string_view instance;
  std::int64_t minutes = 0;
};

std::string name_of(std::string_view instance, std::int64_t minutes) {
  return fmt::format("{}.{}", instance, minutes);
}

// Nothing: it is no mark.
std::optional<Mark> read_name(std::string_view name) {
  const auto dot = name.rfind('.');
  if (dot == std::string_view::npos || !is_node_name(name.substr(0, dot))) return std::nullopt;
  Mark mark{.instance = name.substr(0, dot), .minutes = 0};
  const char* const end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + dot + 1, end, mark.minutes);
  if (error != std::errc() || rest != end || mark.minutes < 0) return std::nullopt;
  return mark;
}

// Everybody may put files where the marks are: links, pipes, and other names of files elsewhere.
bool may_be_mark(const struct stat& info) { return S_ISREG(info.st_mode) && info.st_nlink == 1; }

class OutputsCheck {
 public:
  OutputsCheck(const std::string& root, const std::string& instance)
      : root_(root), instance_(instance) {}

  Result<void> run(v1::OutputsReading& reading) {
    if (auto opened = open(); !opened) return opened;
    auto id = storage_id();
    if (!id) return fail(std::move(id.error()));
    auto minutes = leave_mark();
    if (!minutes) return fail(std::move(minutes.error()));
    if (auto read = read_marks(*minutes, reading); !read) return read;
    reading.set_storage_id(*std::move(id));
    return {};
  }

 private:
  std::unexpected<Error> failed(std::string_view what, int error) const {
    return fail_errno(fmt::format("'{}{}'", root_, what), error);
  }

  Result<void> open() {
    if (auto made = io::make_dirs(root_, 0755); !made) return made;
    const io::UniqueFd root(::open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!root) return failed("", errno);
    struct statvfs about{};
    if (::fstatvfs(root.get(), &about) == 0 && (about.f_flag & ST_RDONLY) != 0)
      return failed("", EROFS);
    // Agents of other nodes may run as other users.
    own_ = open_dir(root.get(), ".muster", 0755);
    if (!own_) return failed("/.muster", errno);
    seen_ = open_dir(own_.get(), "seen", 01777);
    if (!seen_) return failed("/.muster/seen", errno);
    return {};
  }

  // Its mode is set by who makes it. Empty with errno: it cannot be opened.
  static io::UniqueFd open_dir(int parent, const char* name, mode_t mode) {
    const bool made = ::mkdirat(parent, name, 0700) == 0;
    if (!made && errno != EEXIST) return {};
    io::UniqueFd dir(::openat(parent, name, O_RDONLY | O_DIRECTORY | kOpen));
    if (dir && made && ::fchmod(dir.get(), mode) != 0) return {};
    return dir;
  }

  // Empty: there is none.
  Result<std::string> read_storage_id() const {
    const io::UniqueFd file(::openat(own_.get(), "storage", O_RDONLY | kOpen));
    if (!file) {
      if (errno == ENOENT) return std::string();
      return failed("/.muster/storage", errno);
    }
    std::array<char, 2 * kStorageIdBytes + 2> text{};
    const ssize_t bytes = ::read(file.get(), text.data(), text.size());
    if (bytes < 0) return failed("/.muster/storage", errno);
    std::string_view id(text.data(), static_cast<std::size_t>(bytes));
    if (id.ends_with('\n')) id.remove_suffix(1);
    const bool hex = id.size() == 2 * kStorageIdBytes &&
                     id.find_first_not_of("0123456789abcdef") == std::string_view::npos;
    if (hex) return std::string(id);
    return fail(ErrorCode::DataLoss,
                fmt::format("'{}/.muster/storage' does not hold an id: remove it, and the next "
                            "check makes a new one",
                            root_));
  }

  Result<std::string> storage_id() const {
    auto known = read_storage_id();
    if (!known || !known->empty()) return known;
    auto id = random_hex(kStorageIdBytes, "naming the storage of '" + root_ + "'");
    if (!id) return id;
    const std::string fresh = fmt::format("storage.{}", instance_);
    (void)::unlinkat(own_.get(), fresh.c_str(), 0);  // left over by a crash
    {
      const io::UniqueFd file(
          ::openat(own_.get(), fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | kOpen, 0600));
      if (!file) return failed("/.muster", errno);
      std::size_t written = 0;
      int error = io::write_all(file.get(), *id + "\n", written);
      if (error == 0 && ::fchmod(file.get(), 0644) != 0) error = errno;
      if (error == 0 && ::fsync(file.get()) != 0) error = errno;
      if (error != 0) {
        (void)::unlinkat(own_.get(), fresh.c_str(), 0);
        return failed("/.muster", error);
      }
    }
    // A link, so that nobody reads a part of it, and the first one stays.
    const int linked = ::linkat(own_.get(), fresh.c_str(), own_.get(), "storage", 0);
    int error = linked == 0 ? 0 : errno;
    if (error == EPERM || error == EOPNOTSUPP || error == ENOSYS)
      error = ::renameat(own_.get(), fresh.c_str(), own_.get(), "storage") == 0 ? 0 : errno;
    (void)::unlinkat(own_.get(), fresh.c_str(), 0);
    if (error != 0 && error != EEXIST) return failed("/.muster/storage", error);
    auto made = read_storage_id();
    if (made && made->empty()) return failed("/.muster/storage", ENOENT);
    return made;
  }

  // Returns the time of the mark.
  Result<std::int64_t> leave_mark() {
    const std::string was = own_mark();
    const io::UniqueFd file(::openat(seen_.get(), was.c_str(), O_WRONLY | O_CREAT | kOpen, 0600));
    struct stat info{};
    if (!file || ::fstat(file.get(), &info) != 0) return failed("/.muster/seen", errno);
    if (!may_be_mark(info)) return failed("/.muster/seen/" + was, EEXIST);
    if (::futimens(file.get(), nullptr) != 0 || ::fstat(file.get(), &info) != 0)
      return failed("/.muster/seen", errno);
    const std::int64_t minutes = std::max<std::int64_t>(info.st_mtim.tv_sec, 0) / 60;
    const std::string is = name_of(instance_, minutes);
    if (is != was && ::renameat(seen_.get(), was.c_str(), seen_.get(), is.c_str()) != 0)
      return failed("/.muster/seen", errno);
    return minutes;
  }

  // A new one, if there is none. What has the name of one and cannot be one is removed.
  std::string own_mark() const {
    std::string own = name_of(instance_, 0);
    each_mark([&](const std::string& name, const Mark& mark) {
      struct stat info{};
      if (mark.instance != instance_) return;
      if (::fstatat(seen_.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
          may_be_mark(info))
        own = name;
      else
        (void)::unlinkat(seen_.get(), name.c_str(), 0);
    });
    return own;
  }

  Result<void> read_marks(std::int64_t now, v1::OutputsReading& reading) const {
    const int error = each_mark([&](const std::string& name, const Mark& mark) {
      const std::int64_t age = std::abs(now - mark.minutes);
      const bool own = mark.instance == instance_;
      // Of another user it stays; that one removes it.
      if (own ? age > 0 : age > kOldMinutes) (void)::unlinkat(seen_.get(), name.c_str(), 0);
      if (!own && age <= kLatelyMinutes &&
          static_cast<std::size_t>(reading.instances_size()) + 1 < kInstancesMost)
        reading.add_instances(std::string(mark.instance));
    });
    if (error != 0) return failed("/.muster/seen", error);
    reading.add_instances(instance_);
    // The order of a directory changes by itself. A reading that is the same is not sent again.
    auto& instances = *reading.mutable_instances();
    std::ranges::sort(instances);
    instances.erase(std::unique(instances.begin(), instances.end()), instances.end());
    return {};
  }

  // Returns errno, or 0.
  template <class Do>
  int each_mark(const Do& act) const {
    const int again = ::openat(seen_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (again < 0) return errno;
    const std::unique_ptr<DIR, int (*)(DIR*)> dir(::fdopendir(again), &::closedir);
    if (!dir) {
      ::close(again);
      return ENOMEM;
    }
    for (std::size_t read = 0; read < kNamesRead; ++read) {
      errno = 0;
      const dirent* entry = ::readdir(dir.get());
      if (entry == nullptr) return errno;
      const std::string name = entry->d_name;
      if (const auto mark = read_name(name)) act(name, *mark);
    }
    return 0;
  }

  const std::string& root_;
  const std::string& instance_;
  io::UniqueFd own_, seen_;
};

}  // namespace

v1::OutputsReading check_outputs(const std::string& root, const std::string& instance) {
  v1::OutputsReading reading;
  if (auto checked = OutputsCheck(root, instance).run(reading); !checked) {
    reading.Clear();
    reading.set_trouble(std::move(checked.error().message));
  }
  reading.set_root(root);
  return reading;
}

}  // namespace muster::agent::probe
