// What the controller knows of users before it serves: the access file (--access), and the name of
// the user who runs it. run() in main.cc uses it once, on the main thread; AccessReload works on
// the signals' loop.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "common/async/loop.h"
#include "common/base/error.h"
#include "controller/access/access.h"

namespace muster::controller {

// Without a file: every user has the role 'user'. InvalidArgument lists what is wrong in the file.
Result<AccessPolicy> first_policy(const std::filesystem::path& file);

// The owner of jobs that come over the unix socket. If the host does not know the user, or knows it
// by a name that no certificate can have: "uid-1000".
std::string own_user();

// Reads the file again at SIGHUP. A file with mistakes is logged, and the policy of before stays.
// Without a file SIGHUP is logged, and does nothing else: `systemctl reload` ends no controller.
// `access` must outlive it. `changed` is called after a new policy counts.
class AccessReload {
 public:
  AccessReload(async::Loop& loop, const std::filesystem::path& file, Access& access,
               std::function<void()> changed);

 private:
  std::unique_ptr<async::Signals> signals_;
};

}  // namespace muster::controller
