#include "tests/unit/journal/sync_points.h"

#include <utility>

namespace muster::journal {
namespace {

std::uint64_t syncs = 0;
std::function<void(bool)> seam;

}  // namespace

static int counted() {
  if (seam) seam(true);
  ++syncs;
  if (seam) seam(false);
  return 0;
}

std::uint64_t syncs_so_far() { return syncs; }
void on_sync(std::function<void(bool)> at) { seam = std::move(at); }

}  // namespace muster::journal

// These override the functions of libc, for every library of this program.
extern "C" {
int fsync(int) { return muster::journal::counted(); }
int fdatasync(int) { return muster::journal::counted(); }
}
