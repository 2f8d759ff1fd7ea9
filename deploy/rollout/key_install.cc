#include "deploy/rollout/key_install.h"

#include <fmt/format.h>

#include "common/base/controls.h"
#include "common/io/file.h"
#include "deploy/ssh/identity.h"

namespace muster::rollout {
namespace {

constexpr std::size_t kKeyBytesMost = std::size_t{16} << 10U;

// A key is compared by its type and its bytes: the comment may differ, and options may stand before
// it. A file whose last line has no end gets one first. The modes are those that sshd insists on.
constexpr std::string_view kAppend = R"sh(
set -eu; LC_ALL=C; export LC_ALL; umask 077
IFS= read -r line
rest=${line#* }
key="${line%% *} ${rest%% *}"
mkdir -p "$HOME/.ssh"
chmod 700 "$HOME/.ssh"
file=$HOME/.ssh/authorized_keys
[ -e "$file" ] || : >> "$file"
if grep -v '^[[:space:]]*#' "$file" | grep -qF -- "$key"; then
  chmod 600 "$file"
  echo there
  exit 0
fi
[ -z "$(tail -c 1 "$file")" ] || echo >> "$file"
printf '%s\n' "$line" >> "$file"
chmod 600 "$file"
if command -v restorecon >/dev/null 2>&1; then
  restorecon -F "$HOME/.ssh" "$file" >/dev/null 2>&1 || :
fi
echo added
)sh";

Result<std::string> read_key(const std::string& path) {
  auto text = io::read_regular_file(path, kKeyBytesMost);
  if (!text) return fail(std::move(text.error()));
  auto line = public_key_line(*text);
  if (!line) return fail(std::move(line.error()).in(fmt::format("'{}'", path)));
  return line;
}

}  // namespace

Result<std::string> public_key_line(std::string_view text) {
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  const ssh::Identity key = ssh::parse_identity(text);
  if (text.size() > kKeyBytesMost || has_controls(text) || key.has_private || key.blob.empty() ||
      key.type.find("-cert-") != std::string::npos)
    return fail(ErrorCode::InvalidArgument,
                "it is not one line with one public key; name a file as ~/.ssh/id_ed25519.pub");
  return std::string(text);
}

Result<std::string> KeyInstall::line_for(const hosts::Login& login) const {
  if (!file_.empty()) return read_key(below_home(file_));
  if (!login.identity.empty()) return read_key(below_home(login.identity) + ".pub");
  for (const char* name : {"id_ed25519", "id_ecdsa", "id_rsa"}) {
    auto line = read_key(below_home(fmt::format("~/.ssh/{}.pub", name)));
    if (line || line.error().code != ErrorCode::NotFound) return line;
  }
  return fail(ErrorCode::NotFound,
              "there is none of ~/.ssh/id_ed25519.pub, id_ecdsa.pub, id_rsa.pub; make a key with "
              "ssh-keygen, or name one: --install-key=PUBKEY");
}

Result<std::string> KeyInstall::install(Host& host, const hosts::Login& login) {
  const std::string doing = fmt::format("installing the public key on '{}'", host.name());
  const auto line = line_for(login);
  if (!line) return fail(Error(line.error()).in(doing));
  const MutexLock lock(mutex_);
  const auto done = host.need_as_login(doing, kAppend, *line + "\n");
  if (!done) return fail(Error(done.error()));
  return std::string(*done == "added\n" ? "the public key was added to ~/.ssh/authorized_keys"
                                        : "the public key is in ~/.ssh/authorized_keys already");
}

}  // namespace muster::rollout
