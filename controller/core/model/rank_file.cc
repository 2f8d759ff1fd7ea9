#include "controller/core/model/rank_file.h"

#include <string_view>

namespace muster::core {

std::string rank_file_of(const JobRecord& job, RankNo rank) {
  constexpr std::string_view kRank = "${rank}";
  std::string file = job.spec.success().rank_file();
  for (std::size_t at = file.find(kRank); at != std::string::npos; at = file.find(kRank))
    file.replace(at, kRank.size(), std::to_string(rank.value));
  return file;
}

}  // namespace muster::core
