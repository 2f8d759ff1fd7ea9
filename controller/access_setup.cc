#include "controller/access_setup.h"

#include <unistd.h>

#include <csignal>
#include <utility>

#include "common/base/names.h"
#include "common/log/log.h"
#include "common/name_service/users.h"

namespace muster::controller {

Result<AccessPolicy> first_policy(const std::filesystem::path& file) {
  return file.empty() ? AccessPolicy() : read_access_file(file);
}

std::string own_user() {
  const auto found = name_service::find_user(static_cast<std::uint32_t>(::geteuid()));
  if (found && is_node_name(found->name)) return found->name;
  return "uid-" + std::to_string(::geteuid());
}

AccessReload::AccessReload(async::Loop& loop, const std::filesystem::path& file, Access& access,
                           std::function<void()> changed) {
  signals_ = std::make_unique<async::Signals>(
      loop, std::initializer_list<int>{SIGHUP}, [&access, file, changed = std::move(changed)](int) {
        if (file.empty()) {
          log::info("nothing is read again: there is no access file (--access)");
          return;
        }
        auto policy = read_access_file(file);
        if (!policy) {
          log::error("the access file is not taken, the one of before counts on",
                     {{"why", policy.error().message}});
          return;
        }
        access.replace(*std::move(policy));
        changed();
        log::info("the access file was read again", {{"file", file.string()}});
      });
}

}  // namespace muster::controller
