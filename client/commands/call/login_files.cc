#include "client/commands/call/login_files.h"

#include <cstdlib>

namespace muster::client {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

}  // namespace

std::optional<LoginFiles> login_files(const std::string& dir) {
  if (!dir.empty()) return LoginFiles{.dir = dir};
  if (const std::string named = variable("MUSTER_LOGIN_DIR"); !named.empty())
    return LoginFiles{.dir = named};
  // The specification of these directories says that a relative path is none.
  if (const std::string config = variable("XDG_CONFIG_HOME"); config.starts_with('/'))
    return LoginFiles{.dir = std::filesystem::path(config) / "muster"};
  if (const std::string home = variable("HOME"); home.starts_with('/'))
    return LoginFiles{.dir = std::filesystem::path(home) / ".config/muster"};
  return std::nullopt;
}

std::optional<LoginFiles> present_login() {
  auto files = login_files();
  std::error_code ignored;
  if (files && std::filesystem::exists(files->endpoint(), ignored) &&
      std::filesystem::exists(files->credentials(), ignored))
    return files;
  return std::nullopt;
}

}  // namespace muster::client
