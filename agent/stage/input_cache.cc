#include "agent/stage/input_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <span>
#include <system_error>
#include <utility>

#include "common/digest/file_digests.h"
#include "common/digest/sha256.h"
#include "common/io/file.h"
#include "common/io/unique_fd.h"

namespace muster::agent {
namespace {

constexpr const char* kIndexText = "index of inputs";
constexpr std::chrono::milliseconds kIndexPatience = std::chrono::minutes(1);
// A transaction over more files would keep other starts waiting.
constexpr std::size_t kNotesMost = 1000;
constexpr std::size_t kSyncedAloneMost = 16;
constexpr const char* kTables = R"(
PRAGMA journal_mode=WAL;
PRAGMA synchronous=NORMAL;
CREATE TABLE IF NOT EXISTS objects(
  sha256 TEXT PRIMARY KEY, size INTEGER, inode INTEGER, mtime INTEGER, ctime INTEGER, used INTEGER
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS keys(key TEXT PRIMARY KEY, sha256 TEXT) WITHOUT ROWID;
)";
// Prepared only: tables of another version do not fit them.
constexpr const char* kTablesFit[] = {
    "SELECT sha256, size, inode, mtime, ctime, used FROM objects",
    "INSERT INTO objects VALUES(?, ?, ?, ?, ?, ?)",
    "SELECT key, sha256 FROM keys",
    "INSERT INTO keys VALUES(?, ?)",
};
constexpr const char* kIndexes = R"(
CREATE INDEX IF NOT EXISTS keys_of ON keys(sha256);
CREATE INDEX IF NOT EXISTS objects_used ON objects(used);
CREATE INDEX IF NOT EXISTS objects_inode ON objects(inode);
)";

std::int64_t ns_of(const timespec& time) {
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}
std::int64_t seconds_of(WallTime now) {
  return std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count();
}

std::string keeping(const InputCache::Fetched& one) {
  return fmt::format("keeping '{}'", one.file.native());
}

// Below the directory of objects.
std::filesystem::path name_of(const std::string& sha256) {
  return std::filesystem::path(sha256.substr(0, 2)) / sha256;
}

Result<std::unique_ptr<sqlite::Database>> open_index(const std::filesystem::path& file) {
  auto index =
      sqlite::Database::open(file, sqlite::Database::Mode::Write, kIndexText, kIndexPatience);
  if (!index) return index;
  if (auto made = (*index)->execute(kTables); !made) return fail(std::move(made.error()));
  for (const char* text : kTablesFit)
    if (auto fits = (*index)->prepare(text); !fits) return fail(std::move(fits.error()));
  if (auto made = (*index)->execute(kIndexes); !made) return fail(std::move(made.error()));
  (*index)->checkpoint_on_close();
  return index;
}

// DataLoss: some part of the index is damaged, or its parts do not fit together.
Result<void> read_all_of(sqlite::Database& index) {
  auto check = index.prepare("PRAGMA integrity_check(1)");
  if (!check) return fail(std::move(check.error()));
  const auto row = check->step();
  if (!row) return fail(Error(row.error()));
  const std::string found = *row ? std::string(check->bytes(0)) : "";
  if (found == "ok") return {};
  return fail(ErrorCode::DataLoss, fmt::format("reading the {}: {}", kIndexText, found));
}

Result<void> remove_index(const std::filesystem::path& file) {
  for (const char* end : {"", "-wal", "-shm"}) {
    const std::string one = file.native() + end;
    if (::unlink(one.c_str()) != 0 && errno != ENOENT)
      return fail_errno(fmt::format("removing '{}'", one), errno);
  }
  return {};
}

// The lock goes with the descriptor.
Result<io::UniqueFd> lock_index(const std::filesystem::path& cache) {
  const std::string file = cache / "index.lock", doing = fmt::format("locking '{}'", file);
  io::UniqueFd lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock) return fail_errno(doing, errno);
  while (::flock(lock.get(), LOCK_EX) != 0)
    if (errno != EINTR) return fail_errno(doing, errno);
  return lock;
}

// Others could put what they like into a directory that is not this user's alone.
Result<void> check_ours(const std::filesystem::path& dir) {
  struct stat status{};
  const std::string doing = fmt::format("using '{}' for inputs", dir.native());
  if (::lstat(dir.c_str(), &status) != 0) return fail_errno(doing, errno);
  const std::string wrong = S_ISLNK(status.st_mode)    ? "it is a link"
                            : !S_ISDIR(status.st_mode) ? "it is no directory"
                                                       : io::not_own(status);
  if (wrong.empty()) return {};
  return fail(ErrorCode::NotAllowed, fmt::format("{}: {}", doing, wrong));
}

}  // namespace

// What is known of an object's file.
struct InputCache::Kept {
  std::int64_t size = 0, inode = 0, mtime = 0, ctime = 0;
  friend bool operator==(const Kept&, const Kept&) = default;
  static Kept of(const struct stat& status) {
    return {.size = status.st_size,
            .inode = static_cast<std::int64_t>(status.st_ino),
            .mtime = ns_of(status.st_mtim),
            .ctime = ns_of(status.st_ctim)};
  }
};

// What make_room() may remove.
struct InputCache::Unused {
  std::string sha256;
  bool has_row = false;
};

Result<InputCache> InputCache::open(const std::filesystem::path& root) {
  return open_checked(root, Check::Tables);
}
Result<InputCache> InputCache::remake(const std::filesystem::path& root) {
  return open_checked(root, Check::Everything);
}

Result<InputCache> InputCache::open_checked(const std::filesystem::path& root, Check check) {
  // Jobs' trees are below it, so every user may go through it.
  if (auto made = io::make_dirs(root, 0755); !made) return fail(std::move(made.error()));
  if (auto ours = check_ours(root); !ours) return fail(std::move(ours.error()));
  const std::filesystem::path cache = root / "cache", jobs = root / "jobs";
  if (auto made = io::make_dirs(cache, 0700); !made) return fail(std::move(made.error()));
  if (auto ours = check_ours(cache); !ours) return fail(std::move(ours.error()));
  struct stat status{};
  if (::lstat(jobs.c_str(), &status) == 0 || errno != ENOENT)
    if (auto ours = check_ours(jobs); !ours) return fail(std::move(ours.error()));
  if (auto made = io::make_dirs(cache / "objects", 0700); !made)
    return fail(std::move(made.error()));
  auto objects = io::Beneath::open(cache / "objects");
  if (!objects) return fail(std::move(objects.error()));

  const auto lock = lock_index(cache);
  if (!lock) return fail(Error(lock.error()));
  const std::filesystem::path file = cache / "index.db";
  // A kill may have left the WAL of an index that was being removed.
  if (::lstat(file.c_str(), &status) != 0)
    if (auto gone = remove_index(file); !gone) return fail(std::move(gone.error()));
  auto index = open_index(file);
  if (index && check == Check::Everything)
    if (auto sound = read_all_of(**index); !sound) index = fail(std::move(sound.error()));
  if (!index && index.error().code == ErrorCode::DataLoss) {
    if (auto gone = remove_index(file); !gone) return fail(std::move(gone.error()));
    index = open_index(file);
  }
  if (!index) return fail(std::move(index.error()));
  return InputCache(root, *std::move(objects), *std::move(index));
}

Result<std::optional<std::string>> InputCache::find(const std::string& key, WallTime now,
                                                    const std::function<bool()>& stop) {
  const std::string digest = sha256_hex(key);
  auto query = index_->prepare(
      "SELECT o.sha256, o.size, o.inode, o.mtime, o.ctime FROM keys k JOIN objects o "
      "ON o.sha256 = k.sha256 WHERE k.key = ?");
  if (!query) return fail(std::move(query.error()));
  auto row = query->with({std::string_view(digest)}).step();
  if (!row) return fail(std::move(row.error()));
  if (!*row) return std::optional<std::string>();
  const std::string sha256(query->bytes(0));
  const Kept kept{.size = query->number(1),
                  .inode = query->number(2),
                  .mtime = query->number(3),
                  .ctime = query->number(4)};
  query->reset();
  const auto usable = use(sha256, kept, now, stop);
  if (!usable) return fail(Error(usable.error()));
  return *usable ? std::optional(sha256) : std::nullopt;
}

Result<bool> InputCache::has(const std::string& sha256, WallTime now,
                             const std::function<bool()>& stop) {
  auto query = index_->prepare("SELECT size, inode, mtime, ctime FROM objects WHERE sha256 = ?");
  if (!query) return fail(std::move(query.error()));
  auto row = query->with({std::string_view(sha256)}).step();
  if (!row) return fail(std::move(row.error()));
  if (!*row) {
    query->reset();
    if (inode_of(sha256) == 0) return false;
    auto added = index_->prepare("INSERT OR IGNORE INTO objects VALUES(?, 0, 0, 0, 0, ?)");
    if (!added) return fail(std::move(added.error()));
    if (auto done = added->with({std::string_view(sha256), seconds_of(now)}).run(); !done)
      return fail(std::move(done.error()));
    return use(sha256, {}, now, stop);  // it is read
  }
  const Kept kept{.size = query->number(0),
                  .inode = query->number(1),
                  .mtime = query->number(2),
                  .ctime = query->number(3)};
  query->reset();
  return use(sha256, kept, now, stop);
}

Result<void> InputCache::forget(const std::string& key) {
  auto row = index_->prepare("DELETE FROM keys WHERE key = ?");
  if (!row) return fail(std::move(row.error()));
  return row->with({std::string_view(sha256_hex(key))}).run();
}

// False: it is not sound, and removed.
Result<bool> InputCache::use(const std::string& sha256, const Kept& kept, WallTime now,
                             const std::function<bool()>& stop) {
  const auto sound = is_sound(sha256, kept, stop);
  if (!sound) return fail(Error(sound.error()));
  if (!*sound) {
    if (auto dropped = drop(sha256); !dropped) return fail(std::move(dropped.error()));
    return false;
  }
  auto used = index_->prepare("UPDATE objects SET used = ? WHERE sha256 = ?");
  if (!used) return fail(std::move(used.error()));
  if (auto done = used->with({seconds_of(now), std::string_view(sha256)}).run(); !done)
    return fail(std::move(done.error()));
  return true;
}

Result<bool> InputCache::is_sound(const std::string& sha256, const Kept& kept,
                                  const std::function<bool()>& stop) {
  const io::UniqueFd file = objects_.open(name_of(sha256), O_RDONLY);
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  const Kept now = Kept::of(status);
  if (now == kept) return true;
  // Perhaps its ctime alone is another one: an agent was killed between a link and its note.
  const auto digests = digests_of(file.get(), Digests::Sha256, stop);
  if (!digests)
    return fail(Error(digests.error()).in(fmt::format("'{}'", (root_ / "cache").native())));
  if (digests->sha256 != sha256) return false;
  // The status before it was read: a write since then shows.
  if (auto kept_now = keep_status(sha256, now); !kept_now) return fail(std::move(kept_now.error()));
  return true;
}

Result<void> InputCache::keep_status(const std::string& sha256, const Kept& now) {
  auto update = index_->prepare(
      "UPDATE objects SET size = ?, inode = ?, mtime = ?, ctime = ? WHERE sha256 = ?");
  if (!update) return fail(std::move(update.error()));
  return update->with({now.size, now.inode, now.mtime, now.ctime, std::string_view(sha256)}).run();
}

std::optional<InputCache::Kept> InputCache::status_of(const std::string& sha256) const {
  const io::UniqueFd file = objects_.open(name_of(sha256), O_PATH);
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0) return std::nullopt;
  return Kept::of(status);
}

Result<void> InputCache::put(std::span<const Fetched> files, WallTime now) {
  for (const Fetched& one : files) {
    if (auto made = objects_.make_dir(one.sha256.substr(0, 2), 0700); !made) return made;
    const io::UniqueFd fd(::open(one.file.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd || ::fchmod(fd.get(), 0444) != 0) return fail_errno(keeping(one), errno);
    // Of many small files one sync of the whole disk is quicker. It is a help only: before Linux
    // 5.8 it says nothing of writes that failed.
    if (files.size() >= kSyncedAloneMost && &one == &files.front()) (void)::syncfs(fd.get());
    if (::fsync(fd.get()) != 0) return fail_errno(keeping(one), errno);
  }
  return index_->transaction([&]() -> Result<void> {
    for (const Fetched& one : files)
      if (auto done = put_one(one, now); !done) return done;
    return {};
  });
}

// In a transaction. What is there already stays: jobs' trees have links to it. find() reads it if
// the index does not know its status, and removes it if it is not sound.
Result<void> InputCache::put_one(const Fetched& one, WallTime now) {
  const std::string_view sha256 = one.sha256;
  const std::string digest = sha256_hex(one.key);
  const bool moved = ::renameat2(AT_FDCWD, one.file.c_str(), objects_.fd(),
                                 name_of(one.sha256).c_str(), RENAME_NOREPLACE) == 0;
  if (!moved && errno != EEXIST) return fail_errno(keeping(one), errno);
  if (!moved) ::unlink(one.file.c_str());
  auto object = index_->prepare(
      "INSERT INTO objects VALUES(?, 0, 0, 0, 0, ?) "
      "ON CONFLICT(sha256) DO UPDATE SET used = excluded.used");
  if (!object) return fail(std::move(object.error()));
  if (auto done = object->with({sha256, seconds_of(now)}).run(); !done) return done;
  auto named = index_->prepare("INSERT OR REPLACE INTO keys VALUES(?, ?)");
  if (!named) return fail(std::move(named.error()));
  if (auto done = named->with({std::string_view(digest), sha256}).run(); !done) return done;
  if (!moved) return {};
  const auto status = status_of(one.sha256);
  if (!status) return fail_errno(keeping(one), errno);
  return keep_status(one.sha256, *status);
}

ino_t InputCache::inode_of(const std::string& sha256) const {
  struct stat status{};
  return ::fstatat(objects_.fd(), name_of(sha256).c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0
             ? status.st_ino
             : 0;
}

Result<std::string> InputCache::text_of(const std::string& sha256, std::size_t most) const {
  const std::string name = name_of(sha256);
  return io::read_regular_file({objects_.fd(), name, root_ / "cache/objects" / name}, most,
                               io::Links::Refuse);
}

Result<void> InputCache::link(const std::string& sha256, const io::Beneath& dir,
                              const std::string& name) {
  if (::linkat(objects_.fd(), name_of(sha256).c_str(), dir.fd(), name.c_str(), 0) == 0) return {};
  if (errno == ENOENT)
    return fail(ErrorCode::NotFound, fmt::format("object '{}' of the inputs is gone", sha256));
  if (errno == EMLINK) return copy(sha256, dir, name);
  return fail_errno(fmt::format("linking '{}'", name), errno);
}

// A file system bounds the names of one file (ext4: 65,000), as of one that is empty.
Result<void> InputCache::copy(const std::string& sha256, const io::Beneath& dir,
                              const std::string& name) {
  const std::string doing = fmt::format("copying '{}'", name);
  const io::UniqueFd from = objects_.open(name_of(sha256), O_RDONLY);
  const io::UniqueFd to = dir.open(name, O_WRONLY | O_CREAT | O_EXCL, 0444);
  if (!from || !to) return fail_errno(doing, errno);
  for (;;) {
    const ssize_t sent = ::sendfile(to.get(), from.get(), nullptr, 1 << 30);
    if (sent < 0 && errno != EINTR) return fail_errno(doing, errno);
    if (sent == 0) return {};
  }
}

namespace {

// More than one: a row may be of an object that is gone, and whose inode another one has now.
Result<std::vector<std::string>> objects_of(sqlite::Statement& of_inode, ino_t inode) {
  std::vector<std::string> objects;
  of_inode.with({static_cast<std::int64_t>(inode)});
  for (;;) {
    auto row = of_inode.step();
    if (!row) return fail(std::move(row.error()));
    if (!*row) return objects;
    objects.emplace_back(of_inode.bytes(0));
  }
}
constexpr const char* kOfInode = "SELECT sha256 FROM objects WHERE inode = ?";

}  // namespace

Result<std::vector<ino_t>> InputCache::unchanged(const std::vector<ino_t>& inodes) {
  auto of_inode = index_->prepare(kOfInode);
  if (!of_inode) return fail(std::move(of_inode.error()));
  auto same = index_->prepare(
      "SELECT 1 FROM objects WHERE sha256 = ? AND size = ? AND inode = ? AND mtime = ? "
      "AND ctime = ?");
  if (!same) return fail(std::move(same.error()));
  std::vector<ino_t> unchanged;
  for (const ino_t inode : inodes) {
    auto objects = objects_of(*of_inode, inode);
    if (!objects) return fail(std::move(objects.error()));
    for (const std::string& one : *objects) {
      const auto now = status_of(one);
      if (!now) continue;
      same->with({std::string_view(one), now->size, now->inode, now->mtime, now->ctime});
      const auto row = same->step();
      if (!row) return fail(Error(row.error()));
      if (*row) unchanged.push_back(inode);
      same->reset();
    }
  }
  return unchanged;
}

Result<void> InputCache::note_link(const std::string& sha256) {
  const auto now = status_of(sha256);
  if (!now) return {};
  auto update = index_->prepare(
      "UPDATE objects SET ctime = ? WHERE sha256 = ? AND size = ? AND inode = ? AND mtime = ?");
  if (!update) return fail(std::move(update.error()));
  return update->with({now->ctime, std::string_view(sha256), now->size, now->inode, now->mtime})
      .run();
}

Result<void> InputCache::note_inodes(const std::vector<ino_t>& inodes) {
  for (std::span rest(inodes); !rest.empty();) {
    const auto some = rest.first(std::min(rest.size(), kNotesMost));
    rest = rest.subspan(some.size());
    auto noted = index_->transaction([&]() -> Result<void> {
      auto of_inode = index_->prepare(kOfInode);
      if (!of_inode) return fail(std::move(of_inode.error()));
      for (const ino_t inode : some) {
        auto objects = objects_of(*of_inode, inode);  // none: the job's own file
        if (!objects) return fail(std::move(objects.error()));
        for (const std::string& one : *objects)
          if (auto link = note_link(one); !link) return link;
      }
      return {};
    });
    if (!noted) return noted;
  }
  return {};
}

Result<void> InputCache::drop(const std::string& sha256) {
  return index_->transaction([&] { return remove(sha256); });
}

// In a transaction.
Result<void> InputCache::remove(const std::string& sha256) {
  for (const char* text :
       {"DELETE FROM keys WHERE sha256 = ?", "DELETE FROM objects WHERE sha256 = ?"}) {
    auto row = index_->prepare(text);
    if (!row) return fail(std::move(row.error()));
    if (auto done = row->with({std::string_view(sha256)}).run(); !done) return done;
  }
  if (::unlinkat(objects_.fd(), name_of(sha256).c_str(), 0) != 0 && errno != ENOENT)
    return fail_errno(fmt::format("removing object '{}' of the inputs", sha256), errno);
  return {};
}

// --- room ----------------------------------------------------------------------------------------
Result<std::uint64_t> InputCache::make_room(std::uint64_t bytes,
                                            const std::set<std::string>& keep) {
  auto without_row = names_without_row();
  if (!without_row) return fail(std::move(without_row.error()));
  auto by_use = names_by_use();
  if (!by_use) return fail(std::move(by_use.error()));
  std::vector<Unused> unused;
  std::uint64_t most = 0;
  for (std::vector<std::string>* names : {&*without_row, &*by_use})
    for (std::string& one : *names) {
      const auto size = keep.contains(one) ? std::nullopt : bytes_if_unused(one);
      if (!size) continue;
      most += *size;
      unused.push_back({.sha256 = std::move(one), .has_row = names == &*by_use});
    }
  std::uint64_t freed = 0;
  if (most < bytes) return freed;
  for (const Unused& one : unused) {
    if (freed >= bytes) break;
    auto removed = remove_unused(one);
    if (!removed) return removed;
    freed += *removed;
  }
  return freed;
}

Result<std::vector<std::string>> InputCache::names_without_row() {
  auto known = index_->prepare("SELECT 1 FROM objects WHERE sha256 = ?");
  if (!known) return fail(std::move(known.error()));
  const std::filesystem::path dir = root_ / "cache" / "objects";
  std::vector<std::string> names;
  std::error_code wrong;
  std::filesystem::recursive_directory_iterator at(dir, wrong), end;
  for (; !wrong && at != end; at.increment(wrong)) {
    std::string name = at->path().filename().native();
    if (at.depth() != 1 || at->path() != dir / name_of(name)) continue;
    const auto row = known->with({std::string_view(name)}).step();
    if (!row) return fail(Error(row.error()));
    if (!*row) names.push_back(std::move(name));
    known->reset();
  }
  if (wrong) return fail_errno(fmt::format("reading '{}'", dir.native()), wrong.value());
  return names;
}

Result<std::vector<std::string>> InputCache::names_by_use() {
  auto query = index_->prepare("SELECT sha256 FROM objects ORDER BY used");
  if (!query) return fail(std::move(query.error()));
  std::vector<std::string> names;
  for (;;) {
    auto row = query->step();
    if (!row) return fail(std::move(row.error()));
    if (!*row) return names;
    names.emplace_back(query->bytes(0));
  }
}

// On the disk; 0 of a file that is gone. None: a tree uses it, or it is no object.
std::optional<std::uint64_t> InputCache::bytes_if_unused(const std::string& sha256) const {
  const io::UniqueFd file = objects_.open(name_of(sha256), O_PATH);
  if (!file && errno == ENOENT) return 0;
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink > 1)
    return std::nullopt;
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

// Looks once more: another start may have linked it meanwhile, or put what had no row.
Result<std::uint64_t> InputCache::remove_unused(const Unused& object) {
  std::uint64_t freed = 0;
  auto done = index_->transaction([&]() -> Result<void> {
    if (!object.has_row) {
      auto known = index_->prepare("SELECT 1 FROM objects WHERE sha256 = ?");
      if (!known) return fail(std::move(known.error()));
      const auto row = known->with({std::string_view(object.sha256)}).step();
      if (!row) return fail(Error(row.error()));
      if (*row) return {};
    }
    const auto size = bytes_if_unused(object.sha256);
    if (!size) return {};
    freed = *size;
    return remove(object.sha256);
  });
  if (!done) return fail(std::move(done.error()));
  return freed;
}

}  // namespace muster::agent
