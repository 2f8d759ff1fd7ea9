// CursorFile keeps on disk what must survive the agent about one log (logs/rank-N.cursor and
// similar files). A LogFile or a ScriptLogCopy owns it. It has no lock: the owner serializes all
// calls.
//
// The format is in muster/logs/v1/logs.proto and docs/logs.md. Records are appended as frames, and
// the last record of each kind counts. When the file has grown to kRewriteAt bytes, a rename
// replaces it by a file with only these records. There is one writer.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "agent/logs/logs_dir.h"
#include "common/base/error.h"
#include "common/io/frames.h"
#include "muster/logs/v1/logs.pb.h"

namespace muster::agent {

class CursorFile {
 public:
  static constexpr std::uint64_t kRewriteAt = 64 << 10;
  // A missing file counts as empty. A damaged file (after a power cut), or what is no file, is
  // renamed to *.damaged and counts as empty, because the program most likely never truncated its
  // log.
  // `dir` has the file. Null: it is opened for this file alone.
  static Result<CursorFile> load(const std::filesystem::path& path,
                                 std::shared_ptr<LogsDir> dir = {});

  // After a success the record survives the death of this process. After an error the file is
  // unchanged.
  Result<void> append(const logs::v1::CursorRecord& record);

  void close() { writer_.reset(); }  // the next append opens the file again

  [[nodiscard]] const std::optional<logs::v1::Segment>& segment() const { return segment_; }
  // Belongs to segment() only.
  [[nodiscard]] const std::optional<logs::v1::Floor>& floor() const { return floor_; }
  // May belong to an older segment: the steps that were parsed there still count.
  [[nodiscard]] const std::optional<logs::v1::Parsed>& parsed() const { return parsed_; }

 private:
  CursorFile(std::string name, std::shared_ptr<LogsDir> dir)
      : name_(std::move(name)), dir_(std::move(dir)) {}
  Result<bool> replay(const std::filesystem::path& path);
  void take(const logs::v1::CursorRecord& record);
  Result<void> rewrite();

  std::string name_;
  std::shared_ptr<LogsDir> dir_;
  std::optional<logs::v1::Segment> segment_;
  std::optional<logs::v1::Floor> floor_;
  std::optional<logs::v1::Parsed> parsed_;
  std::optional<io::FrameWriter> writer_;
};

}  // namespace muster::agent
