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

// Somebody has put another CA into the place of the one that signed. `known`: the digest of that
// one in the ledger; empty: there was none. Logged and submitted to the shell, which must be open.
// `actor`: the name of the controller's user.
void record_replaced(Shell& shell, const Authorities& authorities, const std::string& known,
                     std::string actor, const Clock& clock);

}  // namespace muster::controller
