#include "agent/outputs/log_segments.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <iterator>
#include <memory>
#include <system_error>
#include <utility>

#include "common/io/file.h"
#include "common/io/gzip.h"
#include "common/io/unique_fd.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kChunk = 1 << 20;
constexpr std::size_t kTableMost = std::size_t{64} << 20;
constexpr std::string_view kUnfinished = ".unfinished";

bool take_number(std::string_view& text, char end, std::uint64_t& number) {
  const auto [at, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (wrong != std::errc() || at == text.data() + text.size() || *at != end) return false;
  text.remove_prefix(static_cast<std::size_t>(at - text.data()) + 1);
  return true;
}

Result<void> sync_dir(const fs::path& dir) {
  const io::UniqueFd fd(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0)
    return fail_errno(fmt::format("syncing '{}'", dir.string()), errno);
  return {};
}

// A gzip file that gets its name when it is whole and synced.
class SegmentFile {
 public:
  explicit SegmentFile(fs::path dir) : dir_(std::move(dir)), path_(dir_ / kUnfinished) {}
  ~SegmentFile() {
    if (fd_ && !is_finished_) ::unlink(path_.c_str());
  }
  SegmentFile(const SegmentFile&) = delete;
  SegmentFile& operator=(const SegmentFile&) = delete;
  Result<void> write(std::string_view bytes) {
    if (!fd_) {
      if (auto made = io::make_dirs(dir_, 0700); !made) return made;
      fd_.reset(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
      if (!fd_) return fail_errno(fmt::format("making '{}'", path_.string()), errno);
      gzip_ = std::make_unique<io::GzipWriter>(fd_.get());
    }
    return in_context(gzip_->write(bytes));
  }
  Result<void> finish(const std::string& name) {
    if (auto done = in_context(gzip_->finish()); !done) return done;
    if (::fsync(fd_.get()) != 0)
      return fail_errno(fmt::format("syncing '{}'", path_.string()), errno);
    if (::rename(path_.c_str(), (dir_ / name).c_str()) != 0)
      return fail_errno(fmt::format("naming '{}'", (dir_ / name).string()), errno);
    is_finished_ = true;
    return sync_dir(dir_);
  }

 private:
  [[nodiscard]] Result<void> in_context(Result<void> result) const {
    if (result) return result;
    return fail(
        std::move(result.error()).in(fmt::format("cutting a log into '{}'", path_.string())));
  }
  const fs::path dir_, path_;
  io::UniqueFd fd_;
  bool is_finished_ = false;
  std::unique_ptr<io::GzipWriter> gzip_;
};

}  // namespace

std::uint64_t LogSegments::Log::last_sequence() const {
  return waiting.empty() ? sent : std::max(sent, waiting.rbegin()->first);
}

std::uint64_t LogSegments::Log::last_end() const {
  return waiting.empty() ? end : std::max(end, waiting.rbegin()->second.to);
}

Result<LogSegments> LogSegments::open(fs::path dir) {
  LogSegments segments(std::move(dir));
  if (auto done = io::make_dirs(segments.dir_, 0700); !done) return fail(std::move(done.error()));
  if (auto done = segments.load(); !done) return fail(std::move(done.error()));
  if (auto done = segments.find_waiting(); !done) return fail(std::move(done.error()));
  return segments;
}

// SENT END SEGMENTS BYTES FILE BASE LOG, a line for each log.
Result<void> LogSegments::load() {
  const auto text = io::read_regular_file(dir_ / "sent", kTableMost, io::Links::Own);
  if (!text && text.error().code == ErrorCode::NotFound) return {};
  if (!text) return fail(Error(text.error()));
  std::string_view rest = *text;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    Log log;
    std::string_view line = rest.substr(0, end);
    if (end == std::string_view::npos || !take_number(line, ' ', log.sent) ||
        !take_number(line, ' ', log.end) || !take_number(line, ' ', log.segments) ||
        !take_number(line, ' ', log.bytes) || !take_number(line, ' ', log.place.file) ||
        !take_number(line, ' ', log.place.base) || line.empty())
      return fail(ErrorCode::DataLoss,
                  fmt::format("'{}' is damaged: it is not known which logs were uploaded",
                              (dir_ / "sent").string()));
    logs_.emplace(line, log);
    rest.remove_prefix(end + 1);
  }
  return {};
}

Result<void> LogSegments::store() const {
  std::string text;
  for (const auto& [name, log] : logs_)
    fmt::format_to(std::back_inserter(text), "{} {} {} {} {} {} {}\n", log.sent, log.end,
                   log.segments, log.bytes, log.place.file, log.place.base, name);
  return io::replace_file(dir_ / "sent", text, io::Durable::Yes);
}

// An earlier agent was killed: what it had cut, or had sent and not removed yet.
Result<void> LogSegments::find_waiting() {
  std::error_code wrong;
  fs::recursive_directory_iterator at(segments_dir(), wrong), end;
  std::vector<fs::path> rest;
  for (; !wrong && at != end; at.increment(wrong)) {
    std::error_code ignored;
    if (at->symlink_status(ignored).type() == fs::file_type::directory) continue;
    const std::string log = at->path().parent_path().lexically_relative(segments_dir()).string();
    const auto name = store::parse_log_segment(at->path().filename().string());
    if (name && name->sequence > logs_[log].sent)
      logs_[log].waiting.emplace(name->sequence, *name);
    else
      rest.push_back(at->path());
  }
  if (wrong && wrong != std::errc::no_such_file_or_directory)
    return fail_errno(fmt::format("reading '{}'", segments_dir().string()), wrong.value());
  for (const fs::path& path : rest) fs::remove(path, wrong);
  return {};
}

Result<LogSegments::Place> LogSegments::place(const std::string& log, std::uint64_t file,
                                              std::uint64_t bytes) {
  Log& known = logs_[log];
  const std::uint64_t cut = known.last_end();
  if (known.place.file == file && bytes >= cut - std::min(cut, known.place.base))
    return known.place;
  // Stored before anything of it is cut: a later agent must not take it for the file before.
  known.place = {.file = file, .base = cut};
  if (auto done = store(); !done) return fail(std::move(done.error()));
  return known.place;
}

Result<LogSegments::Cut> LogSegments::cut(const std::string& log, const Read& read) {
  Log& known = logs_[log];
  auto piece = read(known.last_end(), kChunk);
  if (!piece) return fail(std::move(piece.error()));
  if (piece->data.empty()) return Cut{.bytes = 0, .is_full = false, .at_end = piece->final};
  store::LogSegment name{
      .sequence = known.last_sequence() + 1, .from = piece->offset, .to = piece->offset};
  // The last piece is kept back, because the segment may end inside it.
  std::string last = std::move(piece->data);
  bool at_end = piece->final, has_gap = false;
  SegmentFile file(segments_dir() / log);
  while (!at_end && name.to + last.size() - name.from < kSegmentMost) {
    const std::uint64_t end = name.to + last.size();
    auto next = read(end, std::min<std::uint64_t>(kChunk, kSegmentMost - (end - name.from)));
    if (!next) return fail(std::move(next.error()));
    has_gap = !next->data.empty() && next->offset != end;
    at_end = !has_gap && next->final;
    if (has_gap || next->data.empty()) break;
    if (auto done = file.write(last); !done) return fail(std::move(done.error()));
    name.to = end;
    last = std::move(next->data);
  }
  const bool is_full = !at_end && name.to + last.size() - name.from >= kSegmentMost;
  const bool may_grow = !at_end && !has_gap;
  if (may_grow && name.to + last.size() - name.from < kSegmentLeast) return Cut{};
  if (const std::size_t line = last.rfind('\n'); may_grow && line != std::string::npos)
    last.resize(line + 1);
  name.to += last.size();
  if (auto done = file.write(last); !done) return fail(std::move(done.error()));
  if (auto done = file.finish(store::text_of(name)); !done) return fail(std::move(done.error()));
  known.waiting.emplace(name.sequence, name);
  return Cut{.bytes = name.to - name.from, .is_full = is_full || has_gap, .at_end = at_end};
}

Result<SentFiles> LogSegments::waiting() const {
  SentFiles files;
  for (const auto& [log, known] : logs_) {
    for (const auto& [sequence, name] : known.waiting) {
      const std::string below = fmt::format("{}/{}", log, store::text_of(name));
      struct stat status{};
      if (::lstat((segments_dir() / below).c_str(), &status) != 0)
        return fail_errno(fmt::format("reading '{}'", (segments_dir() / below).string()), errno);
      files.emplace(below, state_of(status));
    }
  }
  return files;
}

Result<void> LogSegments::all_sent() {
  std::vector<fs::path> sent;
  for (auto& [log, known] : logs_) {
    for (const auto& [sequence, name] : known.waiting) {
      known.sent = sequence;
      known.end = name.to;
      ++known.segments;
      known.bytes += name.to - name.from;
      sent.push_back(segments_dir() / log / store::text_of(name));
    }
    known.waiting.clear();
  }
  if (auto done = store(); !done) return done;
  std::error_code ignored;
  for (const fs::path& path : sent) fs::remove(path, ignored);
  return {};
}

std::uint64_t LogSegments::segments_sent() const {
  std::uint64_t count = 0;
  for (const auto& [log, known] : logs_) count += known.segments;
  return count;
}

std::uint64_t LogSegments::bytes_sent() const {
  std::uint64_t count = 0;
  for (const auto& [log, known] : logs_) count += known.bytes;
  return count;
}

}  // namespace muster::agent
