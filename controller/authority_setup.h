// What the controller does about its CA when it starts: it puts the files of STATE_DIR/pki into the
// state that the ledger knows, and tells the ledger if somebody has put another CA there. run() in
// main.cc uses it, on the main thread; who owns the CA from then on is access/authorities.h.
#pragma once

#include <filesystem>
#include <string>

#include "common/base/error.h"
#include "common/base/time.h"
#include "controller/access/authorities.h"
#include "controller/config.h"
#include "controller/core/model/ledger.h"
#include "controller/shell/shell.h"

namespace muster::controller {

// Of the CA's files.
[[nodiscard]] std::filesystem::path pki_dir(const Config& config);

// `ledger`: as it was when the shell started. Errors: those of pki::settle_authorities and of
// authorities_now.
Result<AuthoritiesNow> open_authorities(const Config& config, const ClusterId& cluster,
                                        const core::Ledger& ledger, const Clock& clock);

// The ledger has another CA than the one that signs. `known`: the digest of that one; empty: there
// is none, at the first start. Otherwise somebody has put this one into its place, which is logged.
// Submitted to the shell, which must be open. `actor`: the name of the controller's user.
void record_authority(Shell& shell, const Authorities& authorities, const std::string& known,
                      std::string actor, const Clock& clock);

}  // namespace muster::controller
