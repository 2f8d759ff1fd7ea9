// The head file: the journal's newest index and chain value, beside the database, so that a
// database that lost its newest rows is known for what it is.
//
// Two slots of 512 bytes, written in turn, in place, with a checksum each; the newest sound one
// counts. Written after each commit without a sync of its own, hence:
//   - what it names was durable before it was written: a database behind its head has lost rows;
//   - a head behind its database is ordinary after a power cut (the kernel had not written it yet),
//     and up to date after the death of a process;
//   - a torn write hurts one slot, the other is one batch older.
// In place, not temp and rename: on ext4 a rename over a file flushes the new one's data, a second
// sync on the path of every batch.
//
// A journal that turned out to be older than it must be, whole directory and all, gets a mark in
// place of its head: one line of text that says how that was known. Nobody can tell then how far
// the journal had gone: read() is DataLoss with that sentence, of an older release with one of its
// own. One thread at a time.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/io/unique_fd.h"
#include "controller/journal/chain.h"

namespace muster::journal {

struct Head {
  std::string journal_id;  // 32 hexadecimal digits, made with the journal
  JournalIndex index;
  Digest chain;
  ClusterId cluster;  // for people; "-" in the file before the first ControllerStarted
  friend bool operator==(const Head&, const Head&) = default;
};

class HeadFile {
 public:
  // Nothing: the file is not there. DataLoss: it is there and neither slot is sound, or it is a
  // mark.
  static Result<std::optional<Head>> read(const std::filesystem::path& file);
  // Both slots from `head`, durably, by temp and rename; open for write() then.
  static Result<HeadFile> create(const std::filesystem::path& file, const Head& head);
  // The sentence of a mark that stands in the head's place; nothing: there is none.
  static std::optional<std::string> behind(const std::filesystem::path& file);
  // The mark, durably, by temp and rename. `why`: one line, cut where it is longer than a head. The
  // head that was there stays beside it as `head.before-mark`.
  static Result<void> mark_behind(const std::filesystem::path& file, std::string_view why);
  // The same over the head's own blocks, which a full disk has: nothing of the head stays.
  static Result<void> mark_behind_in_place(const std::filesystem::path& file, std::string_view why);

  Result<void> write(const Head& head);
  Result<void> sync();

 private:
  HeadFile(io::UniqueFd descriptor, std::filesystem::path file)
      : descriptor_(std::move(descriptor)), file_(std::move(file)) {}
  io::UniqueFd descriptor_;
  int next_slot_ = 0;
  std::filesystem::path file_;
};

}  // namespace muster::journal
