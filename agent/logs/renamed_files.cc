#include "agent/logs/renamed_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <string_view>
#include <utility>

#include "agent/logs/log_segment.h"
#include "agent/logs/read_at.h"

namespace muster::agent {
bool RenamedFiles::File::unchanged() const {
  struct stat now{};
  if (::fstat(fd.get(), &now) != 0 || static_cast<std::uint64_t>(now.st_size) < size) return false;
  const auto has = [&](std::string_view known, std::uint64_t at) {
    std::array<char, kHeadMost> bytes;
    static_assert(kHeadMost >= kAnchorMost);
    return read_at(fd.get(), bytes.data(), std::min(known.size(), bytes.size()), at) ==
               known.size() &&
           std::string_view(bytes.data(), known.size()) == known;
  };
  // A hole may have replaced the anchor.
  return has(segment.head(), 0) &&
         (size - anchor.size() < floor.position() || has(anchor, size - anchor.size()));
}

std::uint64_t RenamedFiles::File::deleted_bytes() const {
  struct stat now{};
  if (::fstat(fd.get(), &now) != 0 || now.st_nlink > 0) return 0;
  return static_cast<std::uint64_t>(now.st_blocks) * 512;
}

RenamedFiles::~RenamedFiles() {
  for (File& file : files_) close(file);
}

void RenamedFiles::close(File& file) {
  if (!file.fd) return;
  file.fd.reset();
  if (budget_) budget_->give_back();
}

std::deque<RenamedFiles::File>::iterator RenamedFiles::give_up(std::deque<File>::iterator file) {
  close(*file);
  if (file->segment.base_known()) return files_.erase(file);
  if (file == files_.begin() || std::prev(file)->fd || std::prev(file)->segment.base_known())
    return std::next(file);
  std::prev(file)->size = file->end() - std::prev(file)->segment.base();
  return files_.erase(file);
}

void RenamedFiles::keep(File file) {
  const auto open = [](const File& one) { return one.fd.get() >= 0; };
  if (std::ranges::count_if(files_, open) >= static_cast<std::ptrdiff_t>(kMost))
    give_up(std::ranges::find_if(files_, open));
  if (budget_ && !budget_->take()) file.fd.reset();
  files_.push_back(std::move(file));
  if (!files_.back().fd) give_up(std::prev(files_.end()));
}

std::string RenamedFiles::tail(std::size_t most) const {
  if (files_.empty() || !files_.back().fd) return {};
  const File& file = files_.back();
  const std::uint64_t from =
      std::max(file.floor.position(), file.size - std::min<std::uint64_t>(file.size, most));
  std::string text(static_cast<std::size_t>(file.size - from), '\0');
  text.resize(read_at(file.fd.get(), text.data(), text.size(), from));
  return file.unchanged() ? text : std::string();
}

std::optional<LogPiece> RenamedFiles::read(std::uint64_t from, std::size_t most) {
  for (auto file = files_.begin(); file != files_.end();) {
    if (from >= file->end()) {
      ++file;
      continue;
    }
    LogPiece piece = piece_from(file->segment, file->floor, from);
    const std::uint64_t at = piece.offset - file->segment.base();
    piece.data.resize(static_cast<std::size_t>(std::min<std::uint64_t>(most, file->size - at)));
    piece.data.resize(read_at(file->fd.get(), piece.data.data(), piece.data.size(), at));
    // Checked after the read, so that no byte of another content passes for one of the log.
    if (!piece.data.empty() && file->unchanged()) return piece;
    file = give_up(file);
  }
  return std::nullopt;
}

void RenamedFiles::synced(std::uint64_t offset) {
  for (auto file = files_.begin(); file != files_.end();)
    file = file->segment.base_known() && file->end() <= offset ? give_up(file) : std::next(file);
}

std::optional<std::uint64_t> RenamedFiles::unknown_base() const {
  const auto file =
      std::ranges::find_if(files_, [](const File& one) { return !one.segment.base_known(); });
  return file == files_.end() ? std::nullopt : std::optional(file->segment.base());
}

void RenamedFiles::set_bases(std::uint64_t more) {
  for (File& file : files_) {
    if (file.segment.base_known()) continue;
    file.segment.set_base(file.segment.base() + more);
    file.segment.set_base_known(true);
  }
}

std::uint64_t RenamedFiles::deleted_bytes() const {
  std::uint64_t bytes = 0;
  for (const File& file : files_) bytes += file.deleted_bytes();
  return bytes;
}

std::uint64_t RenamedFiles::give_up_deleted() {
  std::uint64_t bytes = 0;
  for (auto file = files_.begin(); file != files_.end();) {
    const std::uint64_t its = file->deleted_bytes();
    bytes += its;
    file = its > 0 ? give_up(file) : std::next(file);
  }
  return bytes;
}

}  // namespace muster::agent
