// Credentials are what a process shows when it connects (its certificate and the private key) and
// what it checks others by (the CA). One file of mode 0600 has all of it. Stateless functions, any
// thread; those with a path block.
//
// The file is three kinds of PEM blocks: the private key, its certificate, and one or more CA
// certificates. No error has bytes of the key.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/base/time.h"
#include "common/pki/identity.h"

namespace muster::pki {

struct Credentials {
  std::string ca_pem;  // of each CA that counts
  std::string certificate_pem;
  std::string key_pem;
  Identity identity;  // of the certificate
  WallTime not_before;
  WallTime not_after;

  // Certificate::digest() of each CA that counts.
  [[nodiscard]] Result<std::vector<std::string>> ca_digests() const;
  // The one of them that has signed the certificate.
  [[nodiscard]] Result<std::string> signer() const;
  // NotAllowed outside of the certificate's time (pki::check_time).
  [[nodiscard]] Result<void> check_time(WallTime now) const;
  friend bool operator==(const Credentials&, const Credentials&) = default;
};

// The bytes of a credentials file. Other text between the blocks is passed over. Errors:
// InvalidArgument, also when no CA in it has signed the certificate. Whether the certificate is
// valid now, TLS and check_time() say.
Result<Credentials> parse_credentials(std::string_view text);

// At most 64 KiB. Errors: NotFound; NotAllowed when group or others may read the file, or when it
// belongs to neither this user nor root; and those of parse_credentials().
Result<Credentials> read_credentials(const std::filesystem::path& path);

// For a caller that wants to know before it asks for what it will write: `what` ("credentials") is
// for the errors. Writing finds all of it again. Errors: Conflict if anything is at the path,
// also a link; NotFound if its directory is not there; NotAllowed if this user may not write in it.
Result<void> check_creatable(const std::filesystem::path& path, std::string_view what);
// Writes a new file with mode 0600, durably. Conflict if there is one already.
Result<void> create_credentials(const std::filesystem::path& path, const Credentials& credentials);
// The same in place of what is there: readers see the old bytes or the new ones, also after a
// crash.
Result<void> replace_credentials(const std::filesystem::path& path, const Credentials& credentials);

}  // namespace muster::pki
