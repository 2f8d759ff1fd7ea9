// The one thing that peer_stub has over the stub trainer: other launchers tell a rank its number by
// names of their own.
#include <cstdlib>

namespace {

struct Names {
  const char *rank, *world;
};
constexpr Names kLaunchers[] = {{"SLURM_PROCID", "SLURM_NTASKS"},
                                {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}};

// Before main(), which reads RANK and WORLD_SIZE.
[[gnu::constructor]] void take_the_launchers_names() {
  for (const Names& names : kLaunchers) {
    const char* rank = std::getenv(names.rank);
    const char* world = std::getenv(names.world);
    if (rank == nullptr || world == nullptr) continue;
    ::setenv("RANK", rank, 1);
    ::setenv("WORLD_SIZE", world, 1);
  }
}

}  // namespace
