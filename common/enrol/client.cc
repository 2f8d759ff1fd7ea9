#include "common/enrol/client.h"

#include <algorithm>
#include <functional>

#include "common/enrol/answer.h"
#include "common/enrol/connection.h"
#include "common/enrol/frame.h"
#include "common/enrol/request.h"
#include "muster/v1/enrolment.pb.h"

namespace muster::enrol {
namespace {

using MakeRequest = std::function<Result<std::string>(std::string_view binding)>;

Result<v1::EnrolResponse> exchange(const Ask& ask, TrustedCas& trusted, const MakeRequest& make) {
  auto connection = Connection::open(
      ask.address,
      std::chrono::steady_clock::now() +
          std::chrono::duration_cast<std::chrono::steady_clock::duration>(ask.most),
      ask.cancel, trusted);
  if (!connection) return fail(std::move(connection.error()));
  const auto binding = binding_of(connection->tls());
  if (!binding) return fail(Error(binding.error()));
  const auto request = make(*binding);
  if (!request) return fail(Error(request.error()));
  if (auto written = connection->write(in_frame(*request)); !written)
    return fail(std::move(written.error()));
  const auto length_bytes = connection->read(kLengthBytes);
  if (!length_bytes) return fail(Error(length_bytes.error()));
  LengthBytes bytes{};
  std::ranges::copy(*length_bytes, bytes.begin());
  const auto length = length_in(bytes);
  if (!length) return fail(ErrorCode::InvalidArgument, "it answers with what no controller sends");
  const auto answer = connection->read(*length);
  if (!answer) return fail(Error(answer.error()));
  connection->close();
  return parse_answer(*answer);
}

Result<Issued> asked(const Ask& ask, std::vector<std::string> ca_digests, const std::string& doing,
                     const MakeRequest& make) {
  TrustedCas trusted{.digests = std::move(ca_digests), .refused = {}};
  const auto response = exchange(ask, trusted, make);
  if (!response) {
    return fail(Error(response.error()).in(doing + " at '" + ask.address + "'"));
  }
  return issued_of(*response, doing + " at '" + ask.address + "'");
}

}  // namespace

Result<Issued> join(const Ask& ask, const Token& token, const std::string& node,
                    const pki::Key& key) {
  return asked(ask, {token.ca_digest}, "joining the cluster as node '" + node + "'",
               [&](std::string_view binding) { return join_request(token, node, key, binding); });
}

Result<Issued> renew(const Ask& ask, const pki::Credentials& own, const pki::Key& key) {
  const std::string doing = "renewing the certificate of node '" + own.identity.name + "'";
  const auto registered = pki::Key::from_pem(own.key_pem);
  if (!registered) return fail(Error(registered.error()).in(doing));
  auto digests = own.ca_digests();
  if (!digests) return fail(std::move(digests.error()).in(doing));
  // The one that the controller knows this node by comes first.
  if (const auto signer = own.signer()) {
    if (const auto found = std::ranges::find(*digests, *signer); found != digests->end())
      std::iter_swap(digests->begin(), found);
  }
  return asked(ask, std::move(*digests), doing, [&](std::string_view binding) {
    return renew_request(own.identity.name, *registered, key, binding);
  });
}

Result<Issued> login(const Ask& ask, const Token& token, const pki::Key& key, Duration lifetime) {
  return asked(ask, {token.ca_digest}, "logging in", [&](std::string_view binding) {
    return login_request(token, key, lifetime, binding);
  });
}

}  // namespace muster::enrol
