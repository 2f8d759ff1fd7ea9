#include "common/rundir/run_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "common/io/beneath.h"

namespace muster::rundir {
namespace {

constexpr const char* kLogs = "logs";

struct Place {
  std::filesystem::path run;
  std::filesystem::path below;
};

// No run directory is named like this.
Place place_of(const std::filesystem::path& file) {
  const auto dir = file.parent_path();
  if (dir.filename() == kLogs)
    return {.run = dir.parent_path(), .below = std::filesystem::path(kLogs) / file.filename()};
  return {.run = dir, .below = file.filename()};
}

}  // namespace

io::UniqueFd open_file(const std::filesystem::path& file, int flags, unsigned mode) {
  const Place place = place_of(file);
  const io::UniqueFd run(::open(place.run.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  io::UniqueFd fd = run ? io::open_beneath(run.get(), place.below, flags, mode) : io::UniqueFd();
  struct stat info{};
  if (!fd || ::fstat(fd.get(), &info) != 0) return {};
  if (S_ISREG(info.st_mode)) return fd;
  fd.reset();
  errno = ELOOP;
  return fd;
}

Result<std::string> read_file(const std::filesystem::path& file, std::size_t most) {
  const Place place = place_of(file);
  auto dir = io::Beneath::open(place.run);
  if (dir && place.below.has_parent_path()) dir = dir->below(place.below.parent_path());
  if (!dir) return fail(std::move(dir.error()));
  return io::read_regular_file(dir->at(file.filename().string()), most, io::Links::Refuse);
}

}  // namespace muster::rundir
