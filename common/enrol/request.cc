#include "common/enrol/request.h"

#include <google/protobuf/message.h>

#include "common/base/names.h"
#include "common/enrol/frame.h"
#include "common/enrol/login.h"
#include "common/pki/identity.h"
#include "common/pki/signature.h"
#include "common/proto/proto_time.h"
#include "muster/v1/enrolment.pb.h"

namespace muster::enrol {
namespace {

constexpr std::string_view kReadingRequest = "reading a request to enrol";

std::unexpected<Error> unsound(std::string_view what) {
  return fail(ErrorCode::InvalidArgument, std::string(kReadingRequest) + ": " + std::string(what));
}

// `node` is empty for a user.
Result<Request> sound_request(Purpose purpose, const std::string& node,
                              const std::string& public_key, const std::string& signature) {
  if (purpose != Purpose::Login && !is_node_name(node))
    return unsound(
        "its node has no name; letters, digits, '.', '_', '-', at most 63, the first a letter or "
        "digit");
  auto key = pki::Key::from_public_der(public_key);
  if (!key) return fail(std::move(key.error()).in(kReadingRequest));
  return Request{.purpose = purpose,
                 .node = node,
                 .public_key = public_key,
                 .key = std::move(*key),
                 .signature = signature,
                 .token_id = {},
                 .secret = {},
                 .registered_key = std::nullopt,
                 .registered_signature = {},
                 .lifetime = {}};
}

Result<Request> sound_join(const v1::EnrolRequest::Join& join) {
  auto request = sound_request(Purpose::Join, join.node(), join.public_key(), join.signature());
  if (!request) return request;
  if (!is_token_part(join.token_id()) || !is_token_part(join.secret()))
    return unsound("its token is none; 'muster token create' makes one");
  request->token_id = join.token_id();
  request->secret = join.secret();
  return request;
}

Result<Request> sound_renewal(const v1::EnrolRequest::Renew& renew) {
  auto request = sound_request(Purpose::Renew, renew.node(), renew.public_key(), renew.signature());
  if (!request) return request;
  auto registered = pki::Key::from_public_der(renew.registered_key());
  if (!registered) return fail(std::move(registered.error()).in(kReadingRequest));
  request->registered_key = std::move(*registered);
  request->registered_signature = renew.registered_signature();
  return request;
}

Result<Request> sound_login(const v1::EnrolRequest::Login& login) {
  auto request = sound_request(Purpose::Login, {}, login.public_key(), login.signature());
  if (!request) return request;
  if (!is_token_part(login.token_id()) || !is_token_part(login.secret()))
    return unsound("its token is none; 'muster token create --user NAME' makes one");
  const auto lifetime = lifetime_of(login);
  if (!lifetime) return fail(Error(lifetime.error()).in(kReadingRequest));
  request->token_id = login.token_id();
  request->secret = login.secret();
  request->lifetime = *lifetime;
  return request;
}

// A request that cannot be read would be refused by the port without a useful word.
Result<std::string> bytes_of(const v1::EnrolRequest& request) {
  std::string bytes;
  if (!request.SerializeToString(&bytes) || bytes.size() > kFrameBytesMost)
    return fail(ErrorCode::InvalidArgument, "making a request to enrol: it is too long");
  return bytes;
}

}  // namespace

Result<Request> parse_request(std::string_view bytes) {
  v1::EnrolRequest request;
  if (bytes.size() > kFrameBytesMost ||
      !request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return unsound("it does not decode");
  switch (request.ask_case()) {
    case v1::EnrolRequest::kJoin: return sound_join(request.join());
    case v1::EnrolRequest::kRenew: return sound_renewal(request.renew());
    case v1::EnrolRequest::kLogin: return sound_login(request.login());
    case v1::EnrolRequest::ASK_NOT_SET: break;
  }
  return unsound("it asks for nothing that this controller knows");
}

Result<void> check_proof(const Request& request, std::string_view binding) {
  const bool is_login = request.purpose == Purpose::Login;
  const std::string text = proof_text(request.purpose, binding, request.public_key,
                                      is_login ? request.token_id : request.node);
  const std::string doing = is_login ? "checking a user's request: "
                                     : "checking the request of node '" + request.node + "': ";
  if (!pki::is_signature(request.key, text, request.signature))
    return fail(ErrorCode::NotAllowed,
                doing + "it is not signed, for this connection, by the key that it brings");
  if (request.purpose == Purpose::Renew &&
      (!request.registered_key ||
       !pki::is_signature(*request.registered_key, text, request.registered_signature)))
    return fail(ErrorCode::NotAllowed,
                doing + "it is not signed, for this connection, by the key of its certificate");
  return {};
}

Result<std::string> join_request(const Token& token, const std::string& node, const pki::Key& key,
                                 std::string_view binding) {
  v1::EnrolRequest request;
  v1::EnrolRequest::Join& join = *request.mutable_join();
  auto public_key = key.public_der();
  if (!public_key) return public_key;
  auto signature = pki::sign(key, proof_text(Purpose::Join, binding, *public_key, node));
  if (!signature) return signature;
  join.set_token_id(token.id);
  join.set_secret(token.secret);
  join.set_node(node);
  join.set_public_key(std::move(*public_key));
  join.set_signature(std::move(*signature));
  return bytes_of(request);
}

Result<std::string> renew_request(const std::string& node, const pki::Key& registered_key,
                                  const pki::Key& key, std::string_view binding) {
  v1::EnrolRequest request;
  v1::EnrolRequest::Renew& renew = *request.mutable_renew();
  auto public_key = key.public_der(), registered = registered_key.public_der();
  if (!public_key) return public_key;
  if (!registered) return registered;
  const std::string text = proof_text(Purpose::Renew, binding, *public_key, node);
  auto signature = pki::sign(key, text), registered_signature = pki::sign(registered_key, text);
  if (!signature) return signature;
  if (!registered_signature) return registered_signature;
  renew.set_node(node);
  renew.set_registered_key(std::move(*registered));
  renew.set_public_key(std::move(*public_key));
  renew.set_signature(std::move(*signature));
  renew.set_registered_signature(std::move(*registered_signature));
  return bytes_of(request);
}

Result<std::string> login_request(const Token& token, const pki::Key& key, Duration lifetime,
                                  std::string_view binding) {
  v1::EnrolRequest request;
  v1::EnrolRequest::Login& login = *request.mutable_login();
  auto public_key = key.public_der();
  if (!public_key) return public_key;
  auto signature = pki::sign(key, proof_text(Purpose::Login, binding, *public_key, token.id));
  if (!signature) return signature;
  login.set_token_id(token.id);
  login.set_secret(token.secret);
  login.set_public_key(std::move(*public_key));
  login.set_signature(std::move(*signature));
  *login.mutable_lifetime() = to_proto(lifetime);
  return bytes_of(request);
}

}  // namespace muster::enrol
