#include "agent/logs/log_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/falloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "common/base/assert.h"

namespace muster::agent {
namespace {

constexpr std::size_t kHead = 256;
constexpr std::size_t kAnchor = 64;
constexpr std::uint64_t kBlock = 4096;

std::uint64_t align_down(std::uint64_t value) { return value / kBlock * kBlock; }

std::int64_t wall_ns() { return system_clock().now().wall.time_since_epoch().count(); }

}  // namespace

class LogFile::Use {
 public:
  explicit Use(LogFile& file) : file_(file), lock_(file.mutex_) {}
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  ~Use() {
    if (file_.kept_) return;
    file_.fd_.reset();
    file_.cursor_.close();
  }

 private:
  LogFile& file_;
  const std::scoped_lock<std::mutex> lock_;
};

Result<std::unique_ptr<LogFile>> LogFile::open(std::filesystem::path log,
                                               std::filesystem::path cursor,
                                               std::shared_ptr<io::DescriptorBudget> budget) {
  auto state = CursorFile::load(std::move(cursor));
  if (!state)
    return fail(
        std::move(state.error()).in(fmt::format("reading where log '{}' was left", log.string())));
  return std::unique_ptr<LogFile>(
      new LogFile(std::move(log), std::move(*state), std::move(budget)));
}

LogFile::~LogFile() {
  if (kept_ && budget_) budget_->give_back();
}

LogFile::LogFile(std::filesystem::path log, CursorFile cursor,
                 std::shared_ptr<io::DescriptorBudget> budget)
    : log_(std::move(log)),
      cursor_(std::move(cursor)),
      budget_(std::move(budget)),
      restored_(cursor_.parsed()) {
  if (cursor_.segment()) {
    segment_ = *cursor_.segment();
    head_persisted_ = segment_.head().size();
    segment_persisted_ = true;
  } else {
    segment_.set_base_known(true);
  }
  if (cursor_.floor()) floor_ = *cursor_.floor();
  if (restored_ && restored_->segment() == segment_.number()) {
    parsed_ = restored_->position();
    anchor_ = restored_->anchor();
    // not written by this program
    if (anchor_.size() > std::min<std::uint64_t>(kAnchor, parsed_)) anchor_.clear();
  }
  if (parsed_ < floor_.position()) {
    parsed_ = floor_.position();
    anchor_.clear();
  }
}

Result<std::size_t> LogFile::pread_some(char* to, std::size_t most, std::uint64_t at) const {
  std::size_t done = 0;
  while (done < most) {
    const ssize_t got = ::pread(fd_.get(), to + done, most - done, static_cast<off_t>(at + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(fmt::format("reading log '{}'", log_.string()), errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

void LogFile::begin_segment(std::uint64_t size, std::uint64_t inode) {
  const std::uint64_t seen_end = segment_.base() + size_;
  segment_.set_number(segment_.number() + 1);
  // Until the controller has reported to this incarnation, an earlier incarnation may have shipped
  // more than this one has seen.
  segment_.set_base_known(controller_has_.has_value());
  segment_.set_base(std::max(seen_end, controller_has_.value_or(0)));
  segment_.set_inode(inode);
  segment_.clear_head();
  segment_.set_at_ns(wall_ns());
  segment_persisted_ = false;
  head_persisted_ = 0;
  floor_.Clear();
  size_ = size;
  parsed_ = 0;
  anchor_.clear();
  cut_ = true;
}

Result<bool> LogFile::check() {
  if (!fd_) {
    // The rank may have put anything at this path. A pipe would block this thread, which reads the
    // logs of every job, for ever.
    io::UniqueFd fd(
        ::open(log_.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW));
    if (!fd && errno != ENOENT && errno != ELOOP)
      return fail_errno(fmt::format("opening log '{}'", log_.string()), errno);
    struct stat what{};
    if (fd && ::fstat(fd.get(), &what) != 0)
      return fail_errno(fmt::format("checking log '{}'", log_.string()), errno);
    if (!fd || !S_ISREG(what.st_mode)) {
      if (size_ > 0 || parsed_ > 0) begin_segment(0, 0);  // what was read earlier is gone
      return false;
    }
    fd_ = std::move(fd);
    kept_ = kept_ || !budget_ || budget_->take();
  }
  struct stat now{};
  if (::fstat(fd_.get(), &now) != 0)
    return fail_errno(fmt::format("checking log '{}'", log_.string()), errno);
  const auto size = static_cast<std::uint64_t>(now.st_size);
  const auto inode = static_cast<std::uint64_t>(now.st_ino);
  if (segment_.inode() == 0) segment_.set_inode(inode);
  std::array<char, kHead + kAnchor> bytes;
  const std::size_t head = segment_.head().size();
  bool same =
      segment_.inode() == inode &&
      size >= std::max({size_, static_cast<std::uint64_t>(head), parsed_, floor_.position()});
  // The controller has more than the file: the log was truncated while no agent was running, and
  // begins with the same bytes.
  same = same && (!segment_.base_known() || controller_has_.value_or(0) <= segment_.base() + size);
  std::size_t got = 0;
  if (same && size > 0) {
    auto read =
        pread_some(bytes.data(), static_cast<std::size_t>(std::min<std::uint64_t>(kHead, size)), 0);
    if (!read) return fail(std::move(read.error()));
    got = *read;
    same = got >= head && std::string_view(bytes.data(), head) == segment_.head();
  }
  if (same && !anchor_.empty() && parsed_ - anchor_.size() >= floor_.position()) {
    auto read = pread_some(bytes.data() + kHead, anchor_.size(), parsed_ - anchor_.size());
    if (!read) return fail(std::move(read.error()));
    same = std::string_view(bytes.data() + kHead, *read) == anchor_;
  }
  if (!same) {
    begin_segment(size, inode);
    // The next check takes its head. Only after that are bytes of it passed on.
    return true;
  }
  if (got > head) segment_.set_head(bytes.data(), got);
  size_ = std::max(size_, size);
  return true;
}

Result<void> LogFile::persist_segment() {
  const std::size_t head = segment_.head().size();
  if (segment_persisted_ && (head == head_persisted_ ||
                             (head_persisted_ != 0 && head < 2 * head_persisted_ && head < kHead)))
    return {};
  logs::v1::CursorRecord record;
  *record.mutable_segment() = segment_;
  if (auto done = cursor_.append(record); !done) return done;
  segment_persisted_ = true;
  head_persisted_ = head;
  return {};
}

Result<LogFile::Parsing> LogFile::parse_next(std::span<char> buffer) {
  const Use use(*this);
  for (;;) {
    auto there = check();
    if (!there) return fail(std::move(there.error()));
    if (!*there) return Parsing{.at_end = true};
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
    parsed_ += *got;
    size_ = std::max(size_, parsed_);
    const std::string_view data(buffer.data(), *got);
    if (*got >= kAnchor) {
      anchor_ = data.substr(*got - kAnchor);
    } else if (*got > 0) {
      anchor_ += data;
      if (anchor_.size() > kAnchor) anchor_.erase(0, anchor_.size() - kAnchor);
    }
    return Parsing{.data = data, .cut = std::exchange(cut_, false), .at_end = *got < buffer.size()};
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
      std::max(floor_.position(), position > kAnchor ? position - kAnchor : 0);
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
  return text;
}

Result<LogPiece> LogFile::read(std::uint64_t from, std::size_t most, bool ended) {
  const Use use(*this);
  for (;;) {
    auto there = check();
    if (!there) return fail(std::move(there.error()));
    LogPiece piece{.offset = from};
    if (!segment_.base_known()) return piece;
    const std::uint64_t base = segment_.base();
    std::uint64_t at = from > base ? from - base : 0;
    if (from < base || (from == base && segment_.number() > 0)) {
      piece.loss = LogLoss{from, kTruncatedReason, WallTime(Duration(segment_.at_ns()))};
      piece.offset = base;
    }
    if (at < floor_.position()) {
      if (!piece.loss)
        piece.loss = LogLoss{from, floor_.reason(), WallTime(Duration(floor_.at_ns()))};
      at = floor_.position();
      piece.offset = base + at;
    }
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

void LogFile::controller_has(std::uint64_t offset, std::uint64_t synced) {
  const Use use(*this);
  if (!segment_.base_known()) {
    // There may be a newer segment. An error occurs again at the next read, and is reported there.
    (void)check();
    segment_.set_base(std::max(segment_.base(), offset));
    segment_.set_base_known(true);
    segment_persisted_ = false;
  }
  controller_has_ = std::max(offset, controller_has_.value_or(0));
  synced_ = std::max(synced_, synced);
}

LogFile::Extent LogFile::extent() {
  const Use use(*this);
  return {segment_.base() + parsed_, segment_.number(), segment_.base_known()};
}

Result<std::uint64_t> LogFile::punch(std::uint64_t to, const char* reason) {
  const std::uint64_t from = std::max(kBlock, floor_.position());
  if (size_ == 0 || to <= from) return 0;
  if (auto done = persist_segment(); !done) return fail(std::move(done.error()));
  floor_.set_segment(segment_.number());
  floor_.set_position(to);
  floor_.set_reason(reason);
  floor_.set_at_ns(wall_ns());
  logs::v1::CursorRecord record;
  *record.mutable_floor() = floor_;
  if (auto done = cursor_.append(record); !done) return fail(std::move(done.error()));
  // Opened only for this call: the reading descriptor must not be able to write.
  const io::UniqueFd writable(::open(log_.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
  if (!writable || ::fallocate(writable.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                               static_cast<off_t>(from), static_cast<off_t>(to - from)) != 0) {
    return fail_errno(
        fmt::format("punching bytes {} to {} out of log '{}'", from, to, log_.string()), errno);
  }
  return to - from;
}

Result<std::uint64_t> LogFile::trim(std::uint64_t cap) {
  const Use use(*this);
  if (!segment_.base_known() || synced_ <= segment_.base() ||
      size_ < cap + floor_.position() + cap / 16)
    return 0;
  const std::uint64_t limit = std::min(synced_ - segment_.base(), parsed_);
  return punch(align_down(std::min(limit, size_ - cap)), kSoftCapReason);
}

Result<std::uint64_t> LogFile::give_up(std::uint64_t want, std::uint64_t keep) {
  const Use use(*this);
  const std::uint64_t floor = std::max(kBlock, floor_.position());
  return punch(
      align_down(std::min({parsed_, size_ - std::min(size_, keep), floor + want + kBlock - 1})),
      kHardCapReason);
}

Duration LogFile::since_written(WallTime now) const {
  struct stat about{};
  if (::stat(log_.c_str(), &about) != 0) return Duration::zero();
  const WallTime at(std::chrono::seconds(about.st_mtim.tv_sec) +
                    std::chrono::nanoseconds(about.st_mtim.tv_nsec));
  return std::max(Duration::zero(), now - at);
}

std::uint64_t LogFile::stored_bytes() {
  const Use use(*this);
  return size_ - std::min(size_, floor_.position());
}

}  // namespace muster::agent
