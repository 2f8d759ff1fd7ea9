#include "agent/enrol/pending_key.h"

#include <algorithm>

#include "common/enrol/pending_key.h"

namespace muster::agent {
Result<pki::Key> pending_key(const std::filesystem::path& path) {
  return enrol::pending_key(path, "the agent");
}

void remove_pending_key(const std::filesystem::path& path) { enrol::remove_pending_key(path); }

Result<Received> received(const enrol::Issued& issued, const pki::Key& key, const std::string& node,
                          const std::vector<std::string>& ca_digests) {
  const std::string doing =
      "reading the certificate that the controller gave to node '" + node + "'";
  const auto key_pem = key.private_pem();
  if (!key_pem) return fail(Error(key_pem.error()).in(doing));
  auto made = pki::parse_credentials(*key_pem + issued.certificate_pem + issued.ca_pem);
  if (!made) return fail(ErrorCode::InvalidArgument, doing + ": " + made.error().message);
  if (made->identity.role != pki::Role::Node || made->identity.name != node)
    return fail(ErrorCode::InvalidArgument, doing + ": it is of " + pki::text_of(made->identity));
  const auto digests = made->ca_digests();
  if (!digests) return fail(Error(digests.error()).in(doing));
  if (std::ranges::find_first_of(*digests, ca_digests) == digests->end())
    return fail(ErrorCode::InvalidArgument, doing + ": a CA that came with it is another one");
  return Received{.credentials = std::move(*made), .controller = issued.time};
}

Result<void> check_clock(const Received& received, WallTime now) {
  const pki::Credentials& made = received.credentials;
  if (made.check_time(now)) return {};
  return fail(ErrorCode::TimedOut,
              "the new certificate is valid from " + utc_text(made.not_before) + " to " +
                  utc_text(made.not_after) + ", and this machine's clock says " + utc_text(now) +
                  "; the controller's said " + utc_text(received.controller) +
                  ": set the one that is wrong");
}

}  // namespace muster::agent
