// Keeps libcrypto and libssl from the configuration of the host. A function of the process.
#pragma once

namespace muster::pki {

// main() calls it before anything else uses libcrypto or libssl. A host's openssl.cnf may name
// providers and engines, which are libraries of the host, and a static program cannot load them
// (docs/decisions/0017-no-library-of-the-host.md).
void ignore_host_config();

}  // namespace muster::pki
