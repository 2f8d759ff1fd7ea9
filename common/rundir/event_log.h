// Writers and readers for the appended files of a run directory: `events` and `mark`. The worker
// owns the writer of `events`; the agent's host owns the writer of `mark` and readers of both. Any
// thread; blocking.
//
// Each file has one writer and any number of readers. A reader remembers its offset and gets only
// new records. No link in the run directory is followed, and a file of another user than this
// process's is never believed: it counts as damaged, and it is not written.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/base/time.h"
#include "common/io/beneath.h"
#include "common/io/frames.h"
#include "common/rundir/layout.h"
#include "muster/rundir/v1/rundir.pb.h"

namespace muster::rundir {

// The times and the boot id that each record carries.
struct Stamp {
  Now now;
  BootId boot;
};

template <class Record>
class LogWriter {
 public:
  // Creates the file if it does not exist. Cuts off a torn tail.
  static Result<LogWriter> open(const std::filesystem::path& path) {
    const auto dir = io::Beneath::open(path.parent_path());
    if (!dir) return fail(Error(dir.error()));
    auto frames = io::FrameWriter::open(dir->at(path.filename().string()), io::Links::Own);
    if (!frames) return fail(std::move(frames.error()));
    return LogWriter(std::move(*frames));
  }
  // One write appends all records. On an error none is in the file.
  Result<void> append(const std::vector<Record>& records) {
    std::vector<std::string> payloads;
    payloads.reserve(records.size());
    for (const auto& record : records) payloads.push_back(record.SerializeAsString());
    return frames_.append(payloads);
  }
  Result<void> append(const Record& record) { return frames_.append(record.SerializeAsString()); }
  // Reserves space for `bytes` more, so that a full disk does not stop later appends.
  void reserve(std::uint64_t bytes) { frames_.reserve(bytes); }
  // errno of the last append, or 0 if that append succeeded.
  [[nodiscard]] int error() const { return frames_.error(); }

 private:
  explicit LogWriter(io::FrameWriter frames) : frames_(std::move(frames)) {}
  io::FrameWriter frames_;
};

template <class Record>
class LogReader {
 public:
  explicit LogReader(std::filesystem::path path) : path_(std::move(path)) {}
  // Returns the records that are new since the last call. A file that does not exist yet has none.
  // The next call reads a torn tail again. Nothing after damage can be read any more: damaged()
  // stays true.
  Result<std::vector<Record>> read() {
    std::vector<Record> records;
    if (damaged_) return records;
    const auto dir = io::Beneath::open(path_.parent_path());
    if (!dir && dir.error().code == ErrorCode::NotFound) return records;
    if (!dir && dir.error().code == ErrorCode::DataLoss) {
      damaged_ = true;
      wrong_ = dir.error().message;
      return records;
    }
    if (!dir) return fail(Error(dir.error()));
    const io::At at = dir->at(path_.filename().string());
    for (bool more = true; more;) {
      auto read = io::read_frames(at, offset_, io::kReadMost, io::Links::Own);
      if (!read) return fail(std::move(read.error()));
      for (const auto& frame : read->frames) {
        Record record;
        if (!record.ParseFromString(frame)) {
          damaged_ = true;
          return records;
        }
        records.push_back(std::move(record));
      }
      offset_ = read->next;
      damaged_ = read->tail == io::Tail::Damaged;
      wrong_ = std::move(read->wrong);
      more = read->more && !damaged_;
    }
    return records;
  }
  [[nodiscard]] bool damaged() const { return damaged_; }
  // Why it is not believed, if its bytes are not the reason: "reading '/x/events': it is a link..."
  [[nodiscard]] const std::string& wrong() const { return wrong_; }
  [[nodiscard]] std::uint64_t offset() const { return offset_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::uint64_t offset_ = 0;
  bool damaged_ = false;
  std::string wrong_;
};

using EventWriter = LogWriter<v1::Event>;  // on RunLayout::events()
using EventReader = LogReader<v1::Event>;
using MarkWriter = LogWriter<v1::Mark>;  // on RunLayout::mark()
using MarkReader = LogReader<v1::Mark>;

// Return an empty record with the stamp in it.
v1::Event stamped_event(const Stamp& stamp);
v1::Mark stamped_mark(const Stamp& stamp);
WallTime wall_time(const v1::Event& event);
WallTime wall_time(const v1::Mark& mark);

}  // namespace muster::rundir
