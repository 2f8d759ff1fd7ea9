// The head file: the journal's newest index and chain value, next to the database. SqliteJournal
// owns the HeadFile, and creates it when it loads. One thread at a time uses it, the thread that
// calls the journal.
//
// With the head file, a load notices that a database has lost its newest rows.
//
// The file has two slots of 512 bytes, each with a checksum. They are written in turn and in place;
// the newest sound slot counts. A slot is written after each commit, without a sync of its own.
// Three facts follow:
// - What the head names was durable before the head was written. So a database that is behind its
//   head has lost rows.
// - A head that is behind its database is ordinary after a power cut, because the kernel had not
//   written the head yet. After the death of a process the head is up to date.
// - A torn write damages one slot; the other slot is one batch older.
//
// The write is in place, and not to a temporary file with a rename. On ext4, a rename over a file
// flushes the new file's data, which would be a second sync on the path of every batch.
//
// When a journal turns out to be older than it must be, including its whole directory, a mark
// replaces its head: a line with the generation that revealed this, and a line with the sentence
// that names how it was noticed. Then nobody knows how far the journal had gone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

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
  // The highest generation of a lineage (common/base/lineage.h) that is known to have existed in
  // this journal or in its lost ends.
  std::uint64_t generation = 0;
  friend bool operator==(const Head&, const Head&) = default;
};

// What a mark contains.
struct Behind {
  std::string why;               // one line, never empty
  std::uint64_t generation = 0;  // also 0 if the number is damaged
};

struct NoHead {};  // the file does not exist
struct DamagedHead {
  std::string why;  // the file is no mark, and neither of its slots is sound
};
using HeadContent = std::variant<NoHead, Head, Behind, DamagedHead>;
// The generation in the head, or in the mark that replaced it; 0: there is none.
std::uint64_t generation_of(const HeadContent& content);

class HeadFile {
 public:
  // An error: the file cannot be read.
  static Result<HeadContent> read(const std::filesystem::path& file);
  // Writes both slots from `head`, durably, through a temporary file and a rename. The result is
  // open for write().
  static Result<HeadFile> create(const std::filesystem::path& file, const Head& head);
  // Writes the mark durably, through a temporary file and a rename. `why` is one line, cut if the
  // mark would be longer than a head. `generation` is the highest that is known to have existed.
  // The old head stays in the same directory as `head.before-mark`.
  static Result<void> mark_behind(const std::filesystem::path& file, std::string_view why,
                                  std::uint64_t generation);
  // The same, but overwrites the head's own blocks, which exist on a full disk, too. Nothing of the
  // head stays.
  static Result<void> mark_behind_in_place(const std::filesystem::path& file, std::string_view why,
                                           std::uint64_t generation);

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
