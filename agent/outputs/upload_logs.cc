#include "agent/outputs/upload_logs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "agent/logs/plog_tree.h"
#include "agent/logs/read_at.h"
#include "agent/outputs/log_segments.h"
#include "common/rundir/layout.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// Segments wait on the node's disk until they are sent: so much text at a time, and so many.
constexpr std::uint64_t kRoundBytes = std::uint64_t{256} << 20;
constexpr std::size_t kRoundSegments = 1'000;
constexpr std::chrono::milliseconds kReadAgain{100}, kTryAgain{5'000};

std::string directory_of(const LogName& log, const std::string& node) {
  if (log.auxiliary.empty()) return fmt::format("rank-{}", log.rank.value);
  return fmt::format("{}@{}", log.auxiliary, node);
}

// CANN's own names. Others would need an encoding in a store.
bool is_plain_name(std::string_view path) {
  return std::ranges::all_of(path, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '.' ||
           c == '_' || c == '-' || c == '/';
  });
}

// Reads what the file has from a logical offset on. The program writes text: zero bytes are of a
// hole, which PlogTree::trim() has made.
Result<LogPiece> read_plog(const PlogTree& tree, const PlogFile& file, std::uint64_t base,
                           bool has_ended, std::uint64_t from, std::size_t most) {
  LogPiece piece{.offset = from, .data = {}, .loss = {}, .final = false};
  const io::UniqueFd fd = tree.open(file);
  if (!fd) {
    piece.final = has_ended;  // it was removed, to make room
    return piece;
  }
  struct stat now{};
  if (::fstat(fd.get(), &now) != 0)
    return fail_errno(fmt::format("reading process log '{}'", file.path), errno);
  const auto size = static_cast<std::uint64_t>(now.st_size);
  std::uint64_t at = from - std::min(from, base);
  while (at < size && piece.data.empty()) {
    const off_t data = ::lseek(fd.get(), static_cast<off_t>(at), SEEK_DATA);
    at = data < 0 && errno == ENXIO
             ? size
             : std::max(at, static_cast<std::uint64_t>(std::max<off_t>(data, 0)));
    piece.data.resize(static_cast<std::size_t>(std::min<std::uint64_t>(most, size - at)));
    int error = 0;
    piece.data.resize(read_at(fd.get(), piece.data.data(), piece.data.size(), at, error));
    if (error != 0) return fail_errno(fmt::format("reading process log '{}'", file.path), error);
    if (piece.data.empty()) break;
    const std::size_t zeros = std::min(piece.data.find_first_not_of('\0'), piece.data.size());
    piece.data.erase(0, zeros);
    at += zeros;
  }
  piece.offset = base + at;
  piece.final = has_ended && at + piece.data.size() >= size;
  return piece;
}

class LogsUpload {
 public:
  LogsUpload(const LogUploadWork& work, const RunLogs& run, LogSegments segments)
      : work_(work), run_(run), segments_(std::move(segments)) {
    upload_.set_url(fmt::format("{}/attempt-{}", work.upload.url(), run.run.second.value));
    *upload_.mutable_profile() = work.upload.profile();
  }

  Uploaded upload() {
    auto until = Clock::now() + work_.away_most;
    for (bool is_done = false; !work_.abandoned.is_set();) {
      // First what an earlier agent has cut, too: there is never more than a round of it.
      if (std::string why = send_waiting(); !why.empty()) return result(std::move(why));
      if (work_.abandoned.is_set()) break;
      if (is_done) return result(wrong_);
      cut_round();
      if (count_ > 0) until = Clock::now() + work_.away_most;
      if (!is_pass_over_) continue;
      // A log that grows is not followed: its next bytes are for the next time.
      is_done = !run_.has_ended || (unended_.empty() && wrong_.empty());
      if (count_ > 0 || is_done) continue;
      // In the end nobody comes after this: a full disk may get room.
      if (Clock::now() > until)
        return result(wrong_.empty() ? fmt::format("the end of {} is not to be had", unended_)
                                     : wrong_);
      work_.abandoned.wait(wrong_.empty() ? kReadAgain : std::min(kTryAgain, work_.away_most));
    }
    return {};
  }

 private:
  [[nodiscard]] Uploaded result(std::string problem) const {
    return {.files = segments_.segments_sent(),
            .bytes = segments_.bytes_sent(),
            .problem = std::move(problem)};
  }

  // Why it is not done; empty: it is.
  std::string send_waiting() {
    const auto waiting = segments_.waiting();
    if (!waiting) return waiting.error().message;
    if (waiting->empty()) return {};
    const fs::path sent = run_.dir / "files";
    const Uploaded uploaded = send_files({.upload = upload_,
                                          .key = work_.key,
                                          .owner = nullptr,
                                          .sent = sent,
                                          .rate_limit = work_.rate_limit,
                                          .abandoned = work_.abandoned,
                                          .away_most = work_.away_most},
                                         {.dir = segments_.segments_dir(),
                                          .list = [this] { return segments_.waiting(); },
                                          .is_last = nullptr});
    if (!uploaded.problem.empty()) return uploaded.problem;
    if (work_.abandoned.is_set()) return {};
    if (auto done = segments_.all_sent(); !done) return done.error().message;
    // Of segments that are gone.
    std::error_code ignored;
    fs::remove(sent, ignored);
    return {};
  }

  // What one log is cut by.
  struct Source {
    std::string log;
    std::optional<LogName> process;  // not set: `rank`'s file of the process log
    std::uint32_t rank = 0;
    PlogFile file = {};
  };

  // Goes on where the last round ended: a pass goes through all logs, each once.
  void cut_round() {
    room_ = kRoundBytes;
    count_ = 0;
    if (is_pass_over_) begin_pass();
    while (next_ < sources_.size()) {
      if (auto done = cut(sources_[next_]); !done && wrong_.empty()) wrong_ = done.error().message;
      if (room_ == 0 || count_ >= kRoundSegments) return;
      ++next_;
    }
    is_pass_over_ = true;
  }

  void begin_pass() {
    is_pass_over_ = false;
    sources_.clear();
    next_ = 0;
    unended_.clear();
    wrong_.clear();
    const std::vector<LogName> logs = run_.logs.logs_of(run_.run);
    if (logs.empty()) unended_ = "all logs";
    for (const LogName& log : logs)
      sources_.push_back({.log = directory_of(log, work_.upload.node()), .process = log});
    const rundir::RunLayout layout(run_.run_dir);
    for (const LogName& log : logs) {
      if (!log.auxiliary.empty()) continue;
      for (const PlogFile& file : PlogTree(layout.plog_dir(log.rank.value)).files())
        if (is_plain_name(file.path))
          sources_.push_back({.log = fmt::format("plog/rank-{}/{}", log.rank.value, file.path),
                              .process = {},
                              .rank = log.rank.value,
                              .file = file});
    }
  }

  Result<void> cut(const Source& source) {
    if (source.process)
      return cut(source.log, [&](std::uint64_t from, std::size_t most) {
        return run_.logs.read(*source.process, from, most);
      });
    const PlogTree tree(rundir::RunLayout(run_.run_dir).plog_dir(source.rank));
    const auto place = segments_.place(source.log, source.file.inode, source.file.size);
    if (!place) return fail(Error(place.error()));
    // When the ranks' logs have ended, nobody writes process logs.
    const bool has_ended = run_.has_ended && unended_.empty();
    return cut(source.log, [&](std::uint64_t from, std::size_t most) {
      return read_plog(tree, source.file, place->base, has_ended, from, most);
    });
  }

  // As much as there is room for in this round.
  Result<void> cut(const std::string& log, const LogSegments::Read& read) {
    while (room_ > 0 && count_ < kRoundSegments) {
      auto done = segments_.cut(log, read);
      if (!done) return fail(std::move(done.error()));
      if (done->bytes > 0) ++count_;
      room_ -= std::min(room_, done->bytes);
      if (done->at_end) return {};
      if (done->bytes == 0 || (!run_.has_ended && !done->is_full)) {
        unended_ = fmt::format("log '{}'", log);
        return {};
      }
    }
    return {};
  }

  const LogUploadWork& work_;
  const RunLogs& run_;
  LogSegments segments_;
  v1::OutputUpload upload_;
  std::vector<Source> sources_;  // of one pass
  std::size_t next_ = 0;
  bool is_pass_over_ = true;
  std::string unended_;  // a log that is not cut to its end; empty: none
  std::string wrong_;    // why the first one could not be cut; empty: all could
  // Of one round.
  std::uint64_t room_ = 0;
  std::size_t count_ = 0;
};

}  // namespace

Uploaded upload_logs(const LogUploadWork& work, const RunLogs& run) {
  auto segments = LogSegments::open(run.dir);
  if (!segments) return Uploaded::failed(segments.error());
  return LogsUpload(work, run, *std::move(segments)).upload();
}

}  // namespace muster::agent
