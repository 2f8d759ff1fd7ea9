#include "common/io/memory_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "common/io/file.h"

namespace muster::io {

Result<MemoryFile> MemoryFile::make(std::string_view bytes) {
  constexpr const char* kDoing = "writing a file in memory";
  constexpr unsigned kNoExec = 0x8;  // MFD_NOEXEC_SEAL (Linux 6.3), which some hosts demand
  UniqueFd fd(::memfd_create("muster", MFD_CLOEXEC | kNoExec));
  if (!fd && errno == EINVAL) fd.reset(::memfd_create("muster", MFD_CLOEXEC));
  std::size_t written = 0;
  int error = fd ? write_all(fd.get(), bytes, written) : errno;
  if (error == 0 && (::fchmod(fd.get(), 0400) != 0 || ::lseek(fd.get(), 0, SEEK_SET) != 0))
    error = errno;
  if (error != 0) return fail_errno(kDoing, error);
  return MemoryFile(std::move(fd));
}

std::string MemoryFile::path() const {
  return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(fd_.get());
}

}  // namespace muster::io
