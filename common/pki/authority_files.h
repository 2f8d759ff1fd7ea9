// The files of the CAs while the CA of a cluster is changed, beside those of authority_dir.h.
// Stateless functions, any thread; blocking. One process and one caller at a time.
//
//   DIR/ca.key, ca.pem   the CA that signs, as ever
//   DIR/next.pem         mode 0600: key and certificate of the one that is published
//   DIR/old.pem          mode 0600: key and certificate of the one that signed before. The key
//                        makes the controller's own certificate until nobody needs this CA.
//
// What each CA is used for is decided elsewhere (the ledger), and the files follow: a step of a
// change that was decided is repeated here until the files are so. That is why next.pem is on the
// disk before its step is decided, and why a crash at any moment leaves every key in some file that
// counts.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/base/time.h"
#include "common/pki/authority.h"

namespace muster::pki {

// The CAs by the digests of their certificates. `signing` empty: the CA was never changed. The
// others empty: there is none.
struct AuthorityPlan {
  std::string signing;
  std::string next;
  std::string old;
  std::set<std::string> dropped;
};

struct AuthoritySet {
  Authority signing;
  // Nothing: there is none, or its file is lost.
  std::optional<Authority> next;
  std::optional<Authority> old;
};

// Makes the files as `plan` wants them, and reads them. Files of a CA that was dropped, and a next
// one that no plan knows, are removed with their keys.
//
// Where no file has anything of the CA that signs, the CA of ca.key and ca.pem takes its place, a
// new one if they are not there: `signing` is another one than the plan's then, and nothing of
// before counts. So it is when a journal has lost the end of a finished change: the plan's next one
// is there alone. Errors: DataLoss when a file has its certificate and none has its key, or when
// the files are of a CA that does not sign; those of open_authority().
Result<AuthoritySet> settle_authorities(const std::filesystem::path& dir, std::string_view cluster,
                                        const AuthorityPlan& plan, WallTime now);

// Writes next.pem, durably. Errors: Io, ResourceExhausted.
Result<void> keep_next(const std::filesystem::path& dir, const Authority& next);

// A certificate of each kind that it issues passes the checks of TLS by its certificate alone, and
// it lives for 30 days at least. The PEM of its certificate has at most 4 KiB: an answer to a join
// or to a login has those of two CAs (common/enrol/frame.h). InvalidArgument: what is in the way, a
// constraint of its names perhaps.
Result<void> check_usable(const Authority& authority, WallTime now);

}  // namespace muster::pki
