// How libcrypto and libssl behave in a program of muster. A function of the process.
#pragma once

namespace muster::pki {

// main() calls it before anything else uses libcrypto or libssl.
//
// The configuration of the host is not read: its openssl.cnf may name providers and engines, which
// are libraries of the host, and a static program cannot load them
// (docs/decisions/0017-no-library-of-the-host.md).
//
// Nothing is cleaned up at the exit: gRPC ends its connections on threads of its own, which may
// still use both libraries when main() has returned.
void prepare_openssl();

}  // namespace muster::pki
