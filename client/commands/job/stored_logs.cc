#include "client/commands/job/stored_logs.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include "client/render/style.h"
#include "client/render/text.h"
#include "common/io/file.h"
#include "common/io/gzip.h"
#include "common/store/log_segment.h"

namespace muster::client {
namespace {

namespace fs = std::filesystem;

// An agent's segments have 64 MiB of text at most. Somebody else may write there, too.
constexpr std::size_t kFileMost = 128 << 20, kTextMost = 128 << 20;

std::optional<std::uint32_t> number_behind(std::string_view text, std::string_view begin) {
  if (!text.starts_with(begin)) return std::nullopt;
  text.remove_prefix(begin.size());
  std::uint32_t number = 0;
  const auto [at, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || wrong != std::errc() || at != text.data() + text.size()) return std::nullopt;
  return number;
}

std::vector<std::string> names_in(const fs::path& dir, std::error_code& wrong) {
  std::vector<std::string> names;
  for (fs::directory_iterator at(dir, wrong), end; !wrong && at != end; at.increment(wrong))
    names.push_back(at->path().filename().string());
  return names;
}

std::optional<LogLabel> label_of_dir(std::uint32_t attempt, const std::string& name) {
  if (const auto rank = number_behind(name, "rank-"))
    return LogLabel{.attempt = attempt, .rank = *rank};
  const std::size_t at = name.find('@');
  if (at == std::string::npos || at == 0 || at + 1 == name.size()) return std::nullopt;
  return LogLabel{
      .attempt = attempt, .rank = 0, .auxiliary = name.substr(0, at), .node = name.substr(at + 1)};
}

// Whoever may write to the store has chosen the names.
std::string shown(const fs::path& path) { return render::printable(path.string()); }

std::string sized(std::uint64_t bytes) { return fmt::format("{} bytes", bytes); }

v1::ReadLogsResponse chunk_of(const LogLabel& label) {
  v1::ReadLogsResponse chunk;
  chunk.set_attempt(label.attempt);
  if (label.auxiliary.empty())
    chunk.set_rank(label.rank);
  else
    chunk.set_node_log(label.auxiliary);
  chunk.set_node(label.node);
  return chunk;
}

Result<std::string> text_of_segment(const fs::path& path) {
  const auto file = io::read_regular_file(path, kFileMost);
  if (!file) return fail(Error(file.error()));
  std::string text;
  auto done = io::read_gzip(*file, [&](std::string_view piece) {
    text += piece;
    return text.size() <= kTextMost;
  });
  if (done && text.size() > kTextMost)
    return fail(ErrorCode::DataLoss,
                fmt::format("reading '{}': it has more text than a segment", shown(path)));
  if (!done) return fail(std::move(done.error()).in(fmt::format("reading '{}'", shown(path))));
  return text;
}

// By their numbers. A power cut of the node can leave two with one number; both are there.
using Segments = std::vector<std::pair<store::LogSegment, fs::path>>;

Result<Segments> segments_in(const fs::path& dir) {
  std::error_code wrong;
  Segments segments;
  for (const std::string& name : names_in(dir, wrong))
    if (const auto segment = store::parse_log_segment(name))
      segments.emplace_back(*segment, dir / name);
  if (wrong) return fail_errno(fmt::format("reading '{}'", shown(dir)), wrong.value());
  std::ranges::sort(segments, {}, [](const auto& one) {
    return std::tuple(one.first.sequence, one.first.from, one.first.to);
  });
  return segments;
}

// The first that has a line of the last `lines`, and where that begins in its text.
Result<std::pair<std::size_t, std::size_t>> begin_of_tail(const Segments& segments,
                                                          std::uint64_t lines) {
  std::uint64_t left = lines;
  bool is_last = true;
  for (std::size_t i = segments.size(); i-- > 0; is_last = false) {
    const auto text = text_of_segment(segments[i].second);
    if (!text) return fail(Error(text.error()));
    std::size_t end = text->size();
    // The end of the last line begins no other.
    if (is_last && text->ends_with('\n')) --end;
    while (end > 0) {
      const std::size_t at = text->rfind('\n', end - 1);
      if (at == std::string::npos) break;
      if (--left == 0) return std::pair(i, at + 1);
      end = at;
    }
  }
  return std::pair<std::size_t, std::size_t>(0, 0);
}

}  // namespace

namespace {

Result<std::vector<StoredLog>> in_order(std::vector<StoredLog> logs, const std::string& where) {
  if (logs.empty())
    return fail(ErrorCode::NotFound,
                fmt::format("{} has no logs of a job: name the directory with attempt-1 in it, "
                            "which is the job's id below outputs.logs_to",
                            where));
  std::ranges::sort(logs, {}, [](const StoredLog& log) {
    return std::tuple(log.label.attempt, !log.label.auxiliary.empty(), log.label.rank,
                      log.label.auxiliary, log.label.node);
  });
  return logs;
}

}  // namespace

Result<std::vector<StoredLog>> find_stored_logs(const fs::path& dir) {
  std::error_code wrong;
  std::vector<StoredLog> logs;
  for (const std::string& attempt_name : names_in(dir, wrong)) {
    const auto attempt = number_behind(attempt_name, "attempt-");
    std::error_code ignored;
    if (!attempt) continue;
    for (const std::string& name : names_in(dir / attempt_name, ignored))
      if (auto label = label_of_dir(*attempt, name))
        logs.push_back({.label = *std::move(label), .dir = dir / attempt_name / name});
  }
  if (wrong == std::errc::no_such_file_or_directory)
    return fail(ErrorCode::NotFound,
                fmt::format("reading logs in '{}': there is no such directory", shown(dir)));
  if (wrong) return fail_errno(fmt::format("reading logs in '{}'", shown(dir)), wrong.value());
  return in_order(std::move(logs), fmt::format("'{}'", shown(dir)));
}

Result<std::vector<StoredLog>> stored_logs_of(const std::vector<std::string>& names) {
  std::map<fs::path, LogLabel> labels;
  for (const std::string& name : names) {
    const fs::path path(name), dir = path.parent_path();
    const auto attempt = number_behind(dir.parent_path().native(), "attempt-");
    if (!attempt || !store::parse_log_segment(path.filename().native())) continue;
    if (auto label = label_of_dir(*attempt, dir.filename())) labels.emplace(dir, *std::move(label));
  }
  std::vector<StoredLog> logs;
  for (auto& [dir, label] : labels) logs.push_back({.label = std::move(label), .dir = dir});
  return in_order(std::move(logs), "the place in the store");
}

Result<void> read_stored_log(const StoredLog& log, std::uint64_t tail, const TakeLog& take) {
  const auto segments = segments_in(log.dir);
  if (!segments) return fail(Error(segments.error()));
  std::pair<std::size_t, std::size_t> begin(0, 0);
  if (tail > 0) {
    const auto found = begin_of_tail(*segments, tail);
    if (!found) return fail(Error(found.error()));
    begin = *found;
  }
  std::uint64_t sequence = 0, end = 0;
  for (std::size_t i = begin.first; i < segments->size(); ++i) {
    const auto& [segment, path] = (*segments)[i];
    if (i > begin.first && segment.to <= end) {
      sequence = std::max(sequence, segment.sequence);
      continue;
    }
    auto text = text_of_segment(path);
    if (!text) return fail(Error(text.error()));
    if (text->size() != segment.to - segment.from)
      return fail(ErrorCode::DataLoss,
                  fmt::format("reading '{}': it has {} bytes, and its name says {}", shown(path),
                              text->size(), segment.to - segment.from));
    v1::ReadLogsResponse chunk = chunk_of(log.label);
    std::size_t from = i == begin.first ? begin.second : 0;
    if (i > begin.first || begin == std::pair<std::size_t, std::size_t>(0, 0)) {
      if (segment.sequence > sequence + 1)
        chunk.set_gap(fmt::format(
            "{} is not in the store",
            segment.sequence == sequence + 2
                ? fmt::format("segment {}", sequence + 1)
                : fmt::format("what segments {} to {} had", sequence + 1, segment.sequence - 1)));
      else if (segment.from > end)
        chunk.set_gap(
            fmt::format("{} were lost before they were uploaded", sized(segment.from - end)));
      else
        from = static_cast<std::size_t>(end - segment.from);
    }
    sequence = segment.sequence;
    end = segment.to;
    chunk.set_offset(segment.from + from);
    text->erase(0, std::min(from, text->size()));
    *chunk.mutable_data() = *std::move(text);
    take(chunk);
  }
  return {};
}

}  // namespace muster::client
