#include "agent/logs/room.h"

#include <algorithm>

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

}  // namespace muster::agent
