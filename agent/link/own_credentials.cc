#include "agent/link/own_credentials.h"

#include "common/proto/proto_time.h"

namespace muster::agent {

void report_credentials(const pki::Credentials& own, v1::HostReading& host) {
  *host.mutable_certificate_ends() = to_proto(own.not_after);
  if (const auto digests = own.ca_digests())
    host.mutable_trusted_authorities()->Assign(digests->begin(), digests->end());
  if (auto signer = own.signer()) host.set_certificate_authority(std::move(*signer));
}

}  // namespace muster::agent
