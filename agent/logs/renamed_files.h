// RenamedFiles keeps files open that were a rank's log until the program renamed or deleted them
// and opened a new file under the name. Their bytes were all parsed, but the controller may not
// have them yet. LogFile owns it and calls it under its mutex.
//
// A file stays open until the controller has synced all of it. Its bytes are given up before that,
// and the next segment then begins with a gap:
//
//   - when the budget of descriptors has none left for it, or kMost files of this log are open;
//   - when the program changes the file after it has renamed it;
//   - when the disk is full and the file is deleted, because then only this descriptor keeps it;
//   - when the agent restarts: a descriptor does not survive that.
//
// Of a file whose base is not known, only the length stays then, so that the gap has its number
// when the base is known.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "agent/logs/log_source.h"
#include "common/io/descriptor_limit.h"
#include "common/io/unique_fd.h"
#include "muster/logs/v1/logs.pb.h"

namespace muster::agent {

class RenamedFiles {
 public:
  static constexpr std::size_t kMost = 8;

  // `budget`: null: no limit.
  explicit RenamedFiles(std::shared_ptr<io::DescriptorBudget> budget)
      : budget_(std::move(budget)) {}
  ~RenamedFiles();
  RenamedFiles(const RenamedFiles&) = delete;
  RenamedFiles& operator=(const RenamedFiles&) = delete;

  struct File {
    io::UniqueFd fd;  // none: given up
    logs::v1::Segment segment;
    logs::v1::Floor floor;
    std::uint64_t size = 0;
    std::string anchor;  // the last bytes
    [[nodiscard]] std::uint64_t end() const { return segment.base() + size; }
    [[nodiscard]] bool unchanged() const;
    // 0: another name of the file is left.
    [[nodiscard]] std::uint64_t deleted_bytes() const;
  };
  // Takes over a file, which follows the others.
  void keep(File file);
  // Returns at most `most` bytes from logical offset `from` on, or from the next one that is left.
  // Returns nullopt if there are none: the present file has the next byte.
  std::optional<LogPiece> read(std::uint64_t from, std::size_t most);
  // Returns the last bytes of the newest file, at most `most`; empty if it is not open any more.
  [[nodiscard]] std::string tail(std::size_t most) const;
  // The controller has synced all bytes below `offset`.
  void synced(std::uint64_t offset);
  // Logical offset of the first file whose base is not known. Nullopt: all are known.
  [[nodiscard]] std::optional<std::uint64_t> unknown_base() const;
  // The bases that were unknown are known now: `more` is added to each.
  void set_bases(std::uint64_t more);

  // Bytes on the disk that only these descriptors keep.
  [[nodiscard]] std::uint64_t deleted_bytes() const;
  // Closes deleted files. Returns their bytes on the disk.
  std::uint64_t give_up_deleted();

 private:
  void close(File& file);
  // Closes the file and forgets it, except for its length if its base is not known. Returns the
  // next file.
  std::deque<File>::iterator give_up(std::deque<File>::iterator file);

  const std::shared_ptr<io::DescriptorBudget> budget_;
  std::deque<File> files_;  // in the order of their offsets
};

}  // namespace muster::agent
