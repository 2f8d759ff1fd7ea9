#include "controller/journal/kept_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>

namespace muster::journal {

Result<void> KeptFile::check() {
  struct stat status{};
  const bool there = ::stat(file_.c_str(), &status) == 0;
  if (!there && errno != ENOENT && errno != ENOTDIR)
    return fail_errno(fmt::format("checking '{}'", file_.native()), errno);
  if (there && !id_) id_ = {status.st_dev, status.st_ino};
  if (there && id_ == std::pair(status.st_dev, status.st_ino)) return {};
  return fail(ErrorCode::DataLoss,
              fmt::format("'{}' was {} while the controller was using it; stop the controller, put "
                          "the journal's whole directory back as it was, and start it again (what "
                          "is lost then: --accept-loss)",
                          file_.native(), there ? "replaced" : "removed"));
}

}  // namespace muster::journal
