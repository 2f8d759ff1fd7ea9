#include "common/process/cgroup.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <climits>
#include <string>

#include "common/io/file.h"

namespace muster::process {
namespace {

constexpr long kCgroup2Magic = 0x63677270;
// A group that its worker removes at this moment sends no more events, so the wait is short.
constexpr long kGoneCheckMs = 50;
constexpr const char* kOwnerAttribute = "user.muster.agent";

bool is_cgroup2(const std::filesystem::path& path) {
  struct statfs info{};
  return ::statfs(path.c_str(), &info) == 0 && info.f_type == kCgroup2Magic;
}

std::unexpected<Error> failed(const char* doing, const std::filesystem::path& path, int error) {
  return fail_errno(std::string(doing) + " cgroup '" + path.string() + "'", error);
}

// Returns the number after `key` and a blank at the start of a line, or 0.
std::uint64_t value_of(const std::string& text, const std::string& key) {
  for (std::size_t at = 0; at < text.size();) {
    auto end = text.find('\n', at);
    if (end == std::string::npos) end = text.size();
    if (text.compare(at, key.size(), key) == 0 && text[at + key.size()] == ' ') {
      std::uint64_t value = 0;
      std::from_chars(text.data() + at + key.size() + 1, text.data() + end, value);
      return value;
    }
    at = end + 1;
  }
  return 0;
}

Result<void> write_word(const std::filesystem::path& file, std::string_view word) {
  const io::UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd || ::write(fd.get(), word.data(), word.size()) < 0)
    return fail_errno("writing '" + file.string() + "'", errno);
  return {};
}

// Calls `visit` with each pid in `group` and below it.
template <class Visit>
void each_pid(const std::filesystem::path& group, const Visit& visit) {
  if (const auto text = io::read_file(group / "cgroup.procs", 16U << 20U)) {
    for (const char *at = text->data(), *end = at + text->size(); at < end;) {
      pid_t pid = 0;
      at = std::from_chars(at, end, pid).ptr + 1;
      if (pid > 0) visit(pid);
    }
  }
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(group, ignored)) {
    if (entry.is_directory(ignored)) each_pid(entry.path(), visit);
  }
}

}  // namespace

std::optional<std::filesystem::path> cgroup2_root() {
  for (const char* path : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
    if (is_cgroup2(path)) return path;
  }
  return std::nullopt;
}

Result<std::filesystem::path> own_cgroup() {
  const auto root = cgroup2_root();
  if (!root) return fail(ErrorCode::NotFound, "looking for cgroup v2: it is not mounted");
  const auto text = io::read_file("/proc/self/cgroup", 65536);
  if (!text) return fail(Error(text.error()));
  const auto at = text->starts_with("0::") ? 0 : text->find("\n0::");
  if (at == std::string::npos)
    return fail(ErrorCode::NotFound, "looking for cgroup v2: this process is in none");
  const auto from = text->find("0::", at) + 3;
  const auto path = text->substr(from, text->find('\n', from) - from);
  return *root / std::filesystem::path(path).relative_path();
}

Result<void> check_group_parent(const std::filesystem::path& path) {
  std::filesystem::path at = path.has_filename() ? path : path.parent_path();
  struct stat status{};
  if (::stat(at.c_str(), &status) != 0) at = at.parent_path();
  if (!is_cgroup2(at) || !std::filesystem::is_directory(at))
    return fail(ErrorCode::InvalidArgument,
                "'" + at.string() + "' is no directory of a cgroup v2 tree");
  if (::access(at.c_str(), W_OK | X_OK) != 0)
    return fail_errno("writing '" + at.string() + "'", errno);
  return {};
}

Result<Cgroup> Cgroup::make(const std::filesystem::path& path) {
  if (!is_cgroup2(path.parent_path()))
    return fail(ErrorCode::NotFound,
                "making cgroup '" + path.string() + "': its parent is no cgroup v2 directory");
  if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) return failed("making", path, errno);
  io::UniqueFd dir(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  io::UniqueFd procs(::open((path / "cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
  io::UniqueFd events(::open((path / "cgroup.events").c_str(), O_RDONLY | O_CLOEXEC));
  if (!dir || !procs || !events) return failed("opening", path, errno);
  return Cgroup(path, std::move(dir), std::move(procs), std::move(events));
}

Result<void> Cgroup::add(pid_t pid) const {
  const auto word = std::to_string(pid);
  if (::write(procs_.get(), word.data(), word.size()) < 0) return failed("joining", path_, errno);
  return {};
}

Result<void> Cgroup::kill() const {
  if (::access((path_ / "cgroup.kill").c_str(), W_OK) == 0)
    return write_word(path_ / "cgroup.kill", "1");
  // Before Linux 5.14 there is no cgroup.kill. A pid that was read could belong to a stranger by
  // now, but not while that process is in our group. So the file is read anew for each round of
  // kills, until the group is empty (the caller waits for empty()).
  each_pid(path_, [](pid_t pid) { ::kill(pid, SIGKILL); });
  return {};
}

std::uint32_t Cgroup::count() const {
  std::uint32_t count = 0;
  each_pid(path_, [&count](pid_t) { ++count; });
  return count;
}

Result<bool> Cgroup::empty() const {
  // Read through the descriptor that is polled: this read is what clears its POLLPRI.
  std::string text(4096, '\0');
  const ssize_t count = ::pread(events_.get(), text.data(), text.size(), 0);
  if (count < 0) return failed("reading the events of", path_, errno);
  text.resize(static_cast<std::size_t>(count));
  return value_of(text, "populated") == 0;
}

bool Cgroup::gone() const {
  char byte = 0;
  return ::pread(events_.get(), &byte, 1, 0) < 0 && errno == ENODEV;
}

std::uint64_t Cgroup::oom_kills() const {
  const auto text = io::read_file(path_ / "memory.events", 65536);
  return text ? value_of(*text, "oom_kill") : 0;
}

std::uint64_t container_oom_kills() {
  if (const auto own = own_cgroup()) {
    if (const auto text = io::read_file(*own / "memory.events", 65536))
      return value_of(*text, "oom_kill");
  }
  const auto text = io::read_file("/sys/fs/cgroup/memory/memory.oom_control", 65536);
  return text ? value_of(*text, "oom_kill") : 0;
}

Result<void> Cgroup::remove() const {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(path_, ignored)) {
    if (!entry.is_directory(ignored)) continue;
    auto below = Cgroup::make(entry.path());
    if (!below) return fail(std::move(below.error()));
    if (auto removed = below->remove(); !removed) return removed;
  }
  if (::rmdir(path_.c_str()) != 0 && errno != ENOENT) return failed("removing", path_, errno);
  return {};
}

void note_owner(const std::filesystem::path& base, const std::string& owner) {
  (void)!::setxattr(base.c_str(), kOwnerAttribute, owner.data(), owner.size(), 0);
}

std::optional<std::string> owner_of(const std::filesystem::path& base) {
  std::string owner(PATH_MAX + 128, '\0');
  const ssize_t size = ::getxattr(base.c_str(), kOwnerAttribute, owner.data(), owner.size());
  if (size < 0) return std::nullopt;
  owner.resize(static_cast<std::size_t>(size));
  return owner;
}

Result<void> make_run_group(const std::filesystem::path& group) {
  // Each further round means that another run's end has removed the base in between. A node has few
  // runs, so 100 rounds are enough.
  for (int round = 0; round < 100; ++round) {
    if (::mkdir(group.parent_path().c_str(), 0755) != 0 && errno != EEXIST)
      return failed("making", group.parent_path(), errno);
    if (::mkdir(group.c_str(), 0755) == 0 || errno == EEXIST) return {};
    if (errno != ENOENT) break;
  }
  return failed("making", group, errno);
}

Result<void> remove_run_group(const std::filesystem::path& group) {
  struct stat info{};
  if (::stat(group.c_str(), &info) == 0) {
    auto there = Cgroup::make(group);
    if (!there) return fail(std::move(there.error()));
    if (auto removed = there->remove(); !removed) return removed;
  }
  const auto base = group.parent_path();
  // The kernel refuses this while the base holds another run's group.
  if (base.filename().string().starts_with(kBasePrefix)) ::rmdir(base.c_str());
  return {};
}

Result<void> discard_run_group(const std::filesystem::path& group, int timeout_ms) {
  struct stat info{};
  if (::stat(group.c_str(), &info) != 0) return remove_run_group(group);
  auto there = Cgroup::make(group);
  if (!there) return fail(std::move(there.error()));
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  for (;;) {
    if (there->gone()) return remove_run_group(group);
    auto empty = there->empty();
    if (!empty) return fail(std::move(empty.error()));
    if (*empty) return remove_run_group(group);
    if (auto killed = there->kill(); !killed) return killed;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
                          end - std::chrono::steady_clock::now())
                          .count();
    if (left <= 0)
      return fail(ErrorCode::TimedOut, "emptying cgroup '" + group.string() +
                                           "': processes are still there after " +
                                           std::to_string(timeout_ms) + " ms");
    pollfd poll{.fd = there->events_fd(), .events = POLLPRI, .revents = 0};
    ::poll(&poll, 1, static_cast<int>(std::min<long>(left, kGoneCheckMs)));
  }
}

}  // namespace muster::process
