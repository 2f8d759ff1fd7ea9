// The files of a login: how a person calls a controller, as 'muster login' has found out. All verbs
// read them, and the verbs in commands/login write them. Blocking; one thread.
//
//   <dir>/                 ${XDG_CONFIG_HOME:-~/.config}/muster, or $MUSTER_LOGIN_DIR
//     login.json           where the controller is (common/rpc/endpoint_file.h)
//     login.pem            key, certificate and CA (common/pki/credentials.h), mode 0600
//     login.key            the key of a login that has had no answer yet, mode 0600
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace muster::client {

struct LoginFiles {
  std::filesystem::path dir;
  [[nodiscard]] std::filesystem::path endpoint() const { return dir / "login.json"; }
  [[nodiscard]] std::filesystem::path credentials() const { return dir / "login.pem"; }
  [[nodiscard]] std::filesystem::path pending_key() const { return dir / "login.key"; }
};

// `dir`: --dir, if it is not empty. Nothing: there is no home directory to have them.
std::optional<LoginFiles> login_files(const std::string& dir = {});
// Those of the default place, if both are there.
std::optional<LoginFiles> present_login();

}  // namespace muster::client
