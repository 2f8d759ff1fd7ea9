#include "common/pki/private_file.h"

#include <unistd.h>

#include "common/io/file.h"

namespace muster::pki {

Result<std::string> read_private_file(const std::filesystem::path& path, std::size_t most,
                                      std::string_view what, std::string_view help) {
  const std::string doing = "reading " + std::string(what);
  const auto check = [&](const struct stat& status) -> Result<void> {
    const std::string named = doing + " '" + path.string() + "': ";
    const uid_t own = ::geteuid();
    if (status.st_uid != own && status.st_uid != 0)
      return fail(ErrorCode::NotAllowed,
                  named + "it belongs to user " + std::to_string(status.st_uid) +
                      ", who may change it; it must belong to " +
                      (own == 0 ? "" : "user " + std::to_string(own) + " or ") + "root");
    if ((status.st_mode & 077) != 0)
      return fail(ErrorCode::NotAllowed, named + "others may read it; " + std::string(help));
    return {};
  };
  auto text = io::read_checked_file(path, most, check);
  if (text || text.error().code == ErrorCode::NotAllowed) return text;  // by `check` alone
  return fail(std::move(text.error()).in(doing));
}

}  // namespace muster::pki
