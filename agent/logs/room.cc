#include "agent/logs/room.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/io/room.h"

namespace muster::agent {

Result<std::uint64_t> make_room(const std::vector<std::shared_ptr<LogFile>>& files,
                                std::uint64_t soft_cap, std::uint64_t missing) {
  std::uint64_t freed = 0;
  for (const auto& file : files) {
    auto went = file->trim(missing > 0 ? std::min(soft_cap, kKeepNewest) : soft_cap);
    if (!went) return fail(std::move(went.error()));
    freed += *went;
  }
  if (freed >= missing) return 0;
  missing -= freed;

  std::vector<std::pair<std::uint64_t, LogFile*>> largest;
  for (const auto& file : files) largest.emplace_back(file->stored_bytes(), file.get());
  std::ranges::sort(largest, std::greater<>{});
  std::uint64_t given_up = 0;
  for (const auto& [stored, file] : largest) {
    if (given_up >= missing || stored <= kKeepNewest) break;
    auto went = file->give_up(missing - given_up, kKeepNewest);
    if (!went) return fail(std::move(went.error()));
    given_up += *went;
  }
  return given_up;
}

std::optional<std::uint64_t> free_bytes(const WatchOptions& options,
                                        const std::filesystem::path& logs_dir) {
  const std::filesystem::path runs = logs_dir.parent_path().parent_path();
  if (options.free_bytes) return options.free_bytes(runs);
  const auto room = io::room_at(runs);
  return room ? std::optional(room->bytes) : std::nullopt;
}

void RoomKeeper::keep(BootTime now, const std::vector<std::shared_ptr<LogFile>>& files,
                      const std::filesystem::path& dir, const std::function<void()>& disk_is_full) {
  next_ = now + options_.blind_scan;
  std::uint64_t missing = 0;
  if (const auto free = free_bytes(options_, dir))
    missing = *free < options_.disk_mark ? options_.disk_mark - *free : 0;
  if (missing > 0) disk_is_full();
  const auto given_up = make_room(files, options_.soft_cap, missing);
  if ((!given_up || *given_up > 0) && trouble_.first()) {
    reports_.trouble(
        given_up
            ? fmt::format("keeping room on the disk of '{}': {} unshipped bytes of the oldest log "
                          "lines were given up; free some space",
                          dir.string(), *given_up)
            : given_up.error().message);
  }
  if (missing == 0) trouble_.over();
}

}  // namespace muster::agent
