#include "agent/logs/log_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "agent/logs/log_file_use.h"
#include "agent/logs/read_at.h"

namespace muster::agent {

Result<std::unique_ptr<LogFile>> LogFile::open(std::filesystem::path log,
                                               const std::filesystem::path& cursor,
                                               std::shared_ptr<io::DescriptorBudget> budget,
                                               std::shared_ptr<LogsDir> dir) {
  auto state = CursorFile::load(cursor, dir);
  if (!state)
    return fail(
        std::move(state.error()).in(fmt::format("reading where log '{}' was left", log.string())));
  if (!dir) dir = std::make_shared<LogsDir>(log.parent_path());
  return std::unique_ptr<LogFile>(
      new LogFile(std::move(log), std::move(dir), std::move(*state), std::move(budget)));
}

LogFile::~LogFile() {
  if (kept_ && budget_) budget_->give_back();
}

LogFile::LogFile(std::filesystem::path log, std::shared_ptr<LogsDir> dir, CursorFile cursor,
                 std::shared_ptr<io::DescriptorBudget> budget)
    : log_(std::move(log)),
      name_(log_.filename().string()),
      dir_(std::move(dir)),
      budget_(std::move(budget)),
      cursor_(std::move(cursor)),
      renamed_(budget_),
      restored_(cursor_.parsed()) {
  if (cursor_.segment()) {
    segment_ = *cursor_.segment();
    head_persisted_ = segment_.head().size();
    segment_persisted_ = true;
    // The files before it were open in the agent before, and the controller may not have them.
    if (!segment_.base_known() && segment_.begin() == logs::v1::SEGMENT_BEGIN_CONTINUED)
      segment_.set_begin(logs::v1::SEGMENT_BEGIN_REPLACED);
  } else {
    segment_.set_base_known(true);
  }
  if (cursor_.floor()) floor_ = *cursor_.floor();
  if (restored_ && restored_->segment() == segment_.number()) {
    parsed_ = restored_->position();
    anchor_ = restored_->anchor();
    // not written by this program
    if (anchor_.size() > std::min<std::uint64_t>(kAnchorMost, parsed_)) anchor_.clear();
  }
  if (parsed_ < floor_.position()) {
    parsed_ = floor_.position();
    anchor_.clear();
  }
}

Result<std::size_t> LogFile::pread_some(char* to, std::size_t most, std::uint64_t at) const {
  int error = 0;
  const std::size_t got = read_at(fd_.get(), to, most, at, error);
  if (error != 0) return fail_errno(fmt::format("reading log '{}'", log_.string()), error);
  return got;
}

void LogFile::take_parsed(std::string_view data) {
  parsed_ += data.size();
  size_ = std::max(size_, parsed_);
  if (data.size() >= kAnchorMost) {
    anchor_ = data.substr(data.size() - kAnchorMost);
  } else if (!data.empty()) {
    anchor_ += data;
    if (anchor_.size() > kAnchorMost) anchor_.erase(0, anchor_.size() - kAnchorMost);
  }
}

Result<LogFile::Parsing> LogFile::parse_next(std::span<char> buffer) {
  const Use use(*this);
  // Set: this file continues the log. The open one is read once more after nobody writes it any
  // more, so all of it has been read.
  io::UniqueFd next;
  bool begun = false;  // the next file is the open one now
  std::optional<Error> trouble;
  for (;;) {
    auto there = check();
    if (!there) return fail(std::move(there.error()));
    if (!*there) return Parsing{.new_file = std::exchange(new_file_, false), .at_end = true};
    if (parsed_ < floor_.position()) {
      parsed_ = floor_.position();
      anchor_.clear();
      cut_ = true;
    }
    const std::uint32_t number = segment_.number();
    auto got = pread_some(buffer.data(), buffer.size(), parsed_);
    if (!got) return fail(std::move(got.error()));
    there = check();
    if (!there) return fail(std::move(there.error()));
    // A program that truncates in a loop is seen again in the next pass. One more try here only
    // saves time.
    if (segment_.number() != number) continue;
    if (*got == 0 && next) {
      next_file(std::exchange(next, io::UniqueFd()));
      begun = true;
      continue;
    }
    const std::string_view data(buffer.data(), *got);
    take_parsed(data);
    const bool at_end = *got < buffer.size();
    if (at_end && !next && !begun) {
      auto found = successor();
      if (found) {
        next = std::move(*found);
      } else {
        trouble = std::move(found.error());
      }
    }
    if (*got == 0 && next) continue;
    return Parsing{.data = data,
                   .cut = std::exchange(cut_, false),
                   .new_file = std::exchange(new_file_, false),
                   .replaced = begun,
                   .at_end = at_end && !next && !begun,
                   .trouble = std::move(trouble)};
  }
}

// Returns the bytes before the bytes that will be parsed again. If another segment has replaced the
// file meanwhile, there is no anchor.
std::string LogFile::anchor_before(std::uint64_t buffered) {
  if (buffered == 0) return anchor_;
  if (!fd_) {
    if (const auto there = check(); !there || !*there) return {};
  }
  if (buffered > parsed_) return {};
  const std::uint32_t number = segment_.number();
  const std::uint64_t position = parsed_ - buffered;
  const std::uint64_t from =
      std::max(floor_.position(), position > kAnchorMost ? position - kAnchorMost : 0);
  if (from >= position) return {};
  std::string anchor(static_cast<std::size_t>(position - from), '\0');
  const auto got = pread_some(anchor.data(), anchor.size(), from);
  if (!got || *got != anchor.size()) return {};
  const auto there = check();  // an error occurs again at the next read, and is reported there
  return there && *there && segment_.number() == number ? anchor : std::string();
}

Result<void> LogFile::remember(logs::v1::Parsed parsed, std::uint64_t buffered) {
  const Use use(*this);
  const std::string anchor = anchor_before(buffered);
  if (auto done = persist_segment(); !done) return done;
  parsed.set_segment(segment_.number());
  parsed.set_position(buffered <= parsed_ ? parsed_ - buffered : 0);
  parsed.set_anchor(anchor);
  logs::v1::CursorRecord record;
  *record.mutable_parsed() = std::move(parsed);
  return cursor_.append(record);
}

Result<std::string> LogFile::tail(std::size_t most) {
  const Use use(*this);
  if (!fd_) {
    auto there = check();
    if (!there) return fail(std::move(there.error()));
    if (!*there) return std::string();
  }
  const std::uint64_t from = std::max(floor_.position(), parsed_ > most ? parsed_ - most : 0);
  std::string text(static_cast<std::size_t>(parsed_ - from), '\0');
  auto got = pread_some(text.data(), text.size(), from);
  if (!got) return fail(std::move(got.error()));
  text.resize(*got);
  if (from > 0 || segment_.begin() != logs::v1::SEGMENT_BEGIN_CONTINUED) return text;
  std::string before = renamed_.tail(most - text.size());
  if (!before.empty() && !before.ends_with('\n')) before += '\n';
  return before + text;
}

void LogFile::writers_gone() {
  const Use use(*this);
  writers_gone_ = true;
}

Result<LogPiece> LogFile::read(std::uint64_t from, std::size_t most, bool ended) {
  const Use use(*this);
  if (segment_.base_known()) {
    if (auto renamed = renamed_.read(from, most)) {
      if (auto done = persist_segment(); !done) return fail(std::move(done.error()));
      return std::move(*renamed);
    }
  }
  for (;;) {
    auto there = check();
    if (!there) return fail(std::move(there.error()));
    if (!segment_.base_known()) return LogPiece{.offset = from};
    LogPiece piece = piece_from(segment_, floor_, from);
    const std::uint64_t at = piece.offset - segment_.base();
    if (at < parsed_) {
      const std::uint32_t number = segment_.number();
      piece.data.resize(static_cast<std::size_t>(std::min<std::uint64_t>(most, parsed_ - at)));
      auto got = pread_some(piece.data.data(), piece.data.size(), at);
      if (!got) return fail(std::move(got.error()));
      piece.data.resize(*got);
      there = check();
      if (!there) return fail(std::move(there.error()));
      if (segment_.number() != number) continue;
    }
    piece.final = ended && at + piece.data.size() >= parsed_;
    if (piece.data.empty() && piece.loss && !ended) return LogPiece{.offset = from};
    // Stored before any byte of a segment is shipped: what distinguishes it from the next segment
    // must survive this agent.
    if (!piece.data.empty() || piece.loss) {
      if (auto done = persist_segment(); !done) return fail(std::move(done.error()));
    }
    return piece;
  }
}

LogFile::Extent LogFile::extent() {
  const Use use(*this);
  return {segment_.base() + parsed_, segment_.number(), segment_.base_known()};
}

Duration LogFile::since_written(WallTime now) const {
  struct stat about{};
  if (dir_->stat(name_, about) != 0) return Duration::zero();
  const WallTime at(std::chrono::seconds(about.st_mtim.tv_sec) +
                    std::chrono::nanoseconds(about.st_mtim.tv_nsec));
  return std::max(Duration::zero(), now - at);
}

}  // namespace muster::agent
