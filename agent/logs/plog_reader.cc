#include "agent/logs/plog_reader.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/engine/evidence.h"

namespace muster::agent {
namespace {

WallTime changed_at(const PlogFile& file) {
  return WallTime(std::chrono::seconds(file.changed.tv_sec) +
                  std::chrono::nanoseconds(file.changed.tv_nsec));
}

}  // namespace

void PlogReader::read(std::span<char> buffer, const Now& now, bool ended) {
  std::vector<PlogFile> files = tree_.logs();
  if (files.size() > kFilesRead) files.resize(kFilesRead);
  std::erase_if(places_, [&](const auto& place) {
    return std::ranges::find(files, place.first, &PlogFile::path) == files.end();
  });
  take_places(files, now, ended);
  std::ranges::reverse(files);  // of equally good lines the last one counts
  for (const PlogFile& file : files) read_file(file, places_[file.path], buffer, now.boot, ended);
}

// Decides where reading continues in each file. This thread reads the logs of every job. It
// therefore skips the beginning of a file that was not read for a long time, as after a restart of
// the agent.
void PlogReader::take_places(const std::vector<PlogFile>& files, const Now& now, bool ended) {
  const std::uint64_t most = ended ? kBehindAtEnd : kBehindMost;
  std::uint64_t room = kFilesBehind * most;
  for (const PlogFile& file : files) {
    Place& place = places_[file.path];
    if (place.inode != file.inode || file.size < place.read) place = {.inode = file.inode};
    const bool old = now.wall - changed_at(file) > kLineLives;  // older than the lines that count
    const std::uint64_t behind = old ? 0 : std::min({file.size - place.read, most, room});
    room -= behind;
    place.cut = place.cut || (behind > 0 && file.size - place.read > behind);
    place.read = file.size - behind;
  }
}

void PlogReader::read_file(const PlogFile& file, Place& place, std::span<char> buffer, BootTime now,
                           bool ended) {
  if (place.read >= file.size) return;
  const io::UniqueFd fd = tree_.open(file);
  if (!fd) return;
  while (place.read < file.size) {
    const auto most =
        static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), file.size - place.read));
    const ssize_t got = ::pread(fd.get(), buffer.data(), most, static_cast<off_t>(place.read));
    if (got <= 0) return;
    std::string_view text(buffer.data(), static_cast<std::size_t>(got));
    const std::size_t end = text.rfind('\n');
    const bool whole = (ended && place.read + text.size() == file.size) ||
                       (end == std::string_view::npos && text.size() == buffer.size());
    if (!whole && end == std::string_view::npos) return;
    if (!whole) text = text.substr(0, end + 1);
    place.read += text.size();
    while (!text.empty()) {
      const std::size_t line_end = std::min(text.find('\n'), text.size());
      if (!std::exchange(place.cut, false)) examine(text.substr(0, line_end), file, now);
      text.remove_prefix(std::min(line_end + 1, text.size()));
    }
  }
}

void PlogReader::examine(std::string_view line, const PlogFile& file, BootTime now) {
  const engine::Evidence evidence = engine::evidence_in(line);
  if (evidence.rank == 0 || (evidence.rank < best_.rank && now - best_at_ <= kLineLives)) return;
  best_ = as_reported(
      fmt::format("{}: {}", std::filesystem::path(file.path).filename().string(), line), evidence);
  // CANN writes [ERROR] for many errors that it survives: such a line alone does not show whether
  // it is the cause.
  if (evidence.trouble == engine::Trouble::Complaint) best_.kind = v1::EVIDENCE_KIND_UNSPECIFIED;
  best_at_ = now;
}

FoundEvidence PlogReader::evidence(BootTime now) const {
  return now - best_at_ <= kLineLives ? best_ : FoundEvidence();
}

}  // namespace muster::agent
