// InputCache keeps the objects that inputs consist of on the node's disk, by their SHA-256, so that
// a job that needs them again fetches nothing. Several agents of one machine may use one cache.
// One thread at a time uses an InputCache; each start opens its own. Blocking.
//
//   ROOT/cache/objects/ab/abcd...   the objects, 0444
//   ROOT/cache/index.db             which key has which object, and what its file was like (SQLite)
//   ROOT/cache/index.lock           flock of who opens the index or makes it anew
//   ROOT/cache/partial/             what is being fetched (input_fetch.h)
//   ROOT/cache/contents/            what jobs have had (kept_contents.h)
//   ROOT/jobs/JOB/NAME/             a job's own tree of hard links (input_tree.h)
//
// A key says what an object was in its store: where, its version, its size. An object with a link
// in a job's tree is in use, so it is not removed for room: its file has more than one name.
//
// A job with the agent's own user could write to an object. So the file's inode, size, mtime and
// ctime are kept, and a file that has changed is read again before it is used: then it is as good
// as before, or it is removed. A link more or less also changes the ctime; those are muster's own
// and noted.
//
// An object is moved here, and removed, in the transaction that writes its row. A file without a
// row is what a kill or a loss of power has left, or it is older than the index. It is the first to
// go.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/base/time.h"
#include "common/io/beneath.h"
#include "common/sqlite/database.h"

namespace muster::agent {

class InputCache {
 public:
  // Makes what is missing below `root`. An index that cannot be opened is made anew, and the
  // objects are fetched again when they are needed. NotAllowed: `root`, its cache or its jobs
  // belong to somebody else, or others may write there, or they are links.
  static Result<InputCache> open(const std::filesystem::path& root);
  // As open(), but reads the whole index first, and makes it anew if any part of it is damaged.
  // Several starts may see the same damage: only the first makes a new one. Those that still use
  // the old one come to no harm; what they put is forgotten.
  static Result<InputCache> remake(const std::filesystem::path& root);

  // A function has failed because the index is damaged: remake() helps.
  [[nodiscard]] bool is_damaged() const { return index_->is_damaged(); }

  // SHA-256 of the object, which is sound at this moment. None: it has to be fetched.
  // `stop` is asked while a file is read again; true: any result will do, soon.
  Result<std::optional<std::string>> find(const std::string& key, WallTime now,
                                          const std::function<bool()>& stop);
  // The object with this SHA-256 is here, and sound: also one that a damaged index has forgotten.
  Result<bool> has(const std::string& sha256, WallTime now, const std::function<bool()>& stop);
  // What was found or put under the key is not believed any more. The object stays.
  Result<void> forget(const std::string& key);
  // A file that has been read: `sha256` is its own.
  struct Fetched {
    std::string key, sha256;
    std::filesystem::path file;
  };
  // Moves them here, when what they contain is on the disk. Of an object that is here already, that
  // one counts. If one cannot be moved, none of them counts.
  Result<void> put(std::span<const Fetched> files, WallTime now);
  // The bytes of a small object. NotFound: it was removed meanwhile. ResourceExhausted: it has more
  // than `most`.
  [[nodiscard]] Result<std::string> text_of(const std::string& sha256, std::size_t most) const;
  // Of the object's file; 0: there is none.
  [[nodiscard]] ino_t inode_of(const std::string& sha256) const;
  // Gives the object another name, `name` below `dir`. NotFound: it was removed meanwhile.
  Result<void> link(const std::string& sha256, const io::Beneath& dir, const std::string& name);
  // Those of these files that are objects, and of which the index knows the newest status. Ask
  // before links to them are removed, while nobody else changes trees; then note them.
  Result<std::vector<ino_t>> unchanged(const std::vector<ino_t>& inodes);
  // After links to these files were made or removed, which changed their ctime. A file whose size
  // or mtime is another one is not believed: find() reads it.
  Result<void> note_inodes(const std::vector<ino_t>& inodes);
  // Removes objects that no tree uses until so many bytes of the disk are freed: first those that
  // the index does not know, then the one that was used least recently. Never one of `keep`
  // (SHA-256). Removes nothing if all of them would not do. Returns how many bytes it has freed.
  Result<std::uint64_t> make_room(std::uint64_t bytes, const std::set<std::string>& keep);

 private:
  InputCache(std::filesystem::path root, io::Beneath objects,
             std::unique_ptr<sqlite::Database> index)
      : root_(std::move(root)), objects_(std::move(objects)), index_(std::move(index)) {}
  enum class Check : std::uint8_t { Tables, Everything };
  struct Kept;
  struct Unused;
  static Result<InputCache> open_checked(const std::filesystem::path& root, Check check);
  Result<bool> use(const std::string& sha256, const Kept& kept, WallTime now,
                   const std::function<bool()>& stop);
  Result<bool> is_sound(const std::string& sha256, const Kept& kept,
                        const std::function<bool()>& stop);
  Result<void> put_one(const Fetched& one, WallTime now);
  Result<void> keep_status(const std::string& sha256, const Kept& now);
  [[nodiscard]] std::optional<Kept> status_of(const std::string& sha256) const;
  Result<void> note_link(const std::string& sha256);
  Result<void> drop(const std::string& sha256);
  Result<void> remove(const std::string& sha256);
  Result<void> copy(const std::string& sha256, const io::Beneath& dir, const std::string& name);
  Result<std::vector<std::string>> names_without_row();
  Result<std::vector<std::string>> names_by_use();
  [[nodiscard]] std::optional<std::uint64_t> bytes_if_unused(const std::string& sha256) const;
  Result<std::uint64_t> remove_unused(const Unused& object);

  std::filesystem::path root_;
  io::Beneath objects_;
  std::unique_ptr<sqlite::Database> index_;
};

}  // namespace muster::agent
