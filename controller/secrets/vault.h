// The values of users' secrets on the controller's disk, encrypted. main() of the controller owns
// it. Thread-safe; blocking.
//
//   STATE_DIR/secrets/     mode 0700
//     ITEM                 "muster-secret-1\n", then the sealed value (common/pki/sealed.h)
//   the key file           mode 0600: "muster-secrets-key-1:" and 64 hex digits
//
// The key file is STATE_DIR/secrets.key, unless --secrets-key names another place. A copy of the
// state directory opens no secret if the key is elsewhere.
//
// An item is written durably, under a random name, before the fact that names it; it is never
// written again. So a crash leaves at most an item that no fact names. A start removes those that
// were written more than 30 days ago (remove_unnamed): a journal that is put back from a copy may
// name the others.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "common/base/error.h"
#include "common/base/time.h"
#include "common/pki/sealed.h"

namespace muster::controller {

inline constexpr std::size_t kSecretBytesMost = 64 << 10;  // of one value

class Vault {
 public:
  // Makes the directory and the key file, if neither exists. Errors: NotAllowed when others may
  // read the key or write in the directory; DataLoss when the key is missing and items exist;
  // InvalidArgument when the key file is damaged; Io, ResourceExhausted.
  static Result<Vault> open(const std::filesystem::path& dir,
                            const std::filesystem::path& key_file);

  // Returns the name of the new item.
  [[nodiscard]] Result<std::string> put(std::string_view value) const;
  // NotFound; DataLoss when it was changed, or is of another key.
  [[nodiscard]] Result<std::string> get(const std::string& item) const;
  // One that is not there is no error.
  [[nodiscard]] Result<void> remove(const std::string& item) const;

  // Removes items that are not in `named` and were written more than 30 days ago.
  void remove_unnamed(const std::set<std::string>& named, WallTime now) const;

 private:
  Vault(std::filesystem::path dir, pki::SealingKey key)
      : dir_(std::move(dir)), key_(std::move(key)) {}
  std::filesystem::path dir_;
  pki::SealingKey key_;
};

}  // namespace muster::controller
