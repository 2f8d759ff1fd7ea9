// logs/rank-N.cursor and its like: what must outlive the agent about one log
// (muster/logs/v1/logs.proto, docs/logs.md). Appended frames, the last of a kind counts; rewritten
// with these alone (by rename) when it has grown. One writer; no lock of its own: its owner
// (LogFile) locks.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "common/base/error.h"
#include "common/io/frames.h"
#include "muster/logs/v1/logs.pb.h"

namespace muster::agent {

class CursorFile {
 public:
  static constexpr std::uint64_t kRewriteAt = 64 << 10;
  // A file that is not there is empty. A damaged one (power cut) is renamed to *.damaged and counts
  // as empty: the most likely truth is that the program never truncated its log.
  static Result<CursorFile> load(std::filesystem::path path);

  // On return the record survives the death of this process. On an error the file is as before.
  Result<void> append(const logs::v1::CursorRecord& record);

  void close() { writer_.reset(); }  // the next append opens it again

  [[nodiscard]] const std::optional<logs::v1::Segment>& segment() const { return segment_; }
  // of that segment only
  [[nodiscard]] const std::optional<logs::v1::Floor>& floor() const { return floor_; }
  // of any segment: what was said stays said
  [[nodiscard]] const std::optional<logs::v1::Parsed>& parsed() const { return parsed_; }

 private:
  explicit CursorFile(std::filesystem::path path) : path_(std::move(path)) {}
  Result<bool> replay();
  void take(const logs::v1::CursorRecord& record);
  Result<void> rewrite();

  std::filesystem::path path_;
  std::optional<logs::v1::Segment> segment_;
  std::optional<logs::v1::Floor> floor_;
  std::optional<logs::v1::Parsed> parsed_;
  std::optional<io::FrameWriter> writer_;
};

}  // namespace muster::agent
