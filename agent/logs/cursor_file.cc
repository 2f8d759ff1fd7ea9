#include "agent/logs/cursor_file.h"

#include <system_error>

#include "common/io/file.h"

namespace muster::agent {
Result<CursorFile> CursorFile::load(const std::filesystem::path& path,
                                    std::shared_ptr<LogsDir> dir) {
  if (!dir) dir = std::make_shared<LogsDir>(path.parent_path());
  CursorFile file(path.filename().string(), dir);
  const auto at = dir->path_of(file.name_);
  if (!at && at.error().code == ErrorCode::NotFound) return file;
  if (!at) return fail(Error(at.error()));
  struct stat there{};
  const bool is_file = dir->stat(file.name_, there) != 0 || S_ISREG(there.st_mode);
  auto sound = is_file ? file.replay(*at) : Result<bool>(false);
  if (!sound) return fail(dir->named(std::move(sound.error())));
  if (!*sound) {
    std::error_code ignored;
    std::filesystem::rename(*at, at->string() + ".damaged", ignored);
    file = CursorFile(file.name_, dir);
  }
  return file;
}

Result<bool> CursorFile::replay(const std::filesystem::path& path) {
  std::uint64_t offset = 0;
  for (bool more = true; more;) {
    auto read = io::read_frames(path, offset, io::kReadMost, io::Links::Own);
    if (!read) return fail(std::move(read.error()));
    for (const std::string& frame : read->frames) {
      logs::v1::CursorRecord record;
      if (!record.ParseFromString(frame)) return false;
      take(record);
    }
    // A torn tail is a record whose writer died before it acted on the record.
    if (read->tail == io::Tail::Damaged) return false;
    offset = read->next;
    more = read->more;
  }
  return true;
}

void CursorFile::take(const logs::v1::CursorRecord& record) {
  if (record.has_segment()) {
    if (!segment_ || segment_->number() != record.segment().number()) floor_.reset();
    segment_ = record.segment();
  }
  if (record.has_floor() && segment_ && segment_->number() == record.floor().segment())
    floor_ = record.floor();
  if (record.has_parsed()) parsed_ = record.parsed();
}

Result<void> CursorFile::append(const logs::v1::CursorRecord& record) {
  if (!writer_) {
    auto at = dir_->path_of(name_);
    if (!at) return fail(std::move(at.error()));
    auto writer = io::FrameWriter::open(*at, io::Links::Own);
    if (!writer) return fail(dir_->named(std::move(writer.error())));
    writer_ = std::move(*writer);
  }
  if (auto done = writer_->append(record.SerializeAsString()); !done)
    return fail(dir_->named(std::move(done.error())));
  take(record);
  if (writer_->size() >= kRewriteAt) return rewrite();
  return {};
}

Result<void> CursorFile::rewrite() {
  std::string bytes;
  const auto add = [&bytes](const logs::v1::CursorRecord& record) {
    bytes += io::encode_frame(record.SerializeAsString());
  };
  logs::v1::CursorRecord record;
  if (segment_) add((*record.mutable_segment() = *segment_, record));
  if (floor_) add((*record.mutable_floor() = *floor_, record));
  if (parsed_) add((*record.mutable_parsed() = *parsed_, record));
  auto at = dir_->path_of(name_);
  if (!at) return fail(std::move(at.error()));
  if (auto done = io::replace_file(*at, bytes, io::Durable::No); !done)
    return fail(dir_->named(std::move(done.error())));
  writer_.reset();  // it has the old file open
  return {};
}

}  // namespace muster::agent
