#include "agent/store/memory_file.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "common/io/file.h"

namespace muster::agent {

Result<MemoryFile> MemoryFile::make(std::string_view bytes) {
  constexpr const char* kDoing = "writing a file in memory";
  io::UniqueFd fd(::memfd_create("muster", MFD_CLOEXEC));
  if (!fd) return fail_errno(kDoing, errno);
  std::size_t written = 0;
  if (const int error = io::write_all(fd.get(), bytes, written); error != 0)
    return fail_errno(kDoing, error);
  if (::fchmod(fd.get(), 0400) != 0) return fail_errno(kDoing, errno);
  return MemoryFile(std::move(fd));
}

std::string MemoryFile::path() const {
  return fmt::format("/proc/{}/fd/{}", ::getpid(), fd_.get());
}

}  // namespace muster::agent
