#include "common/enrol/login.h"

#include "common/enrol/frame.h"
#include "common/proto/proto_time.h"

namespace muster::enrol {
namespace {

constexpr std::string_view kReadingLogin = "reading a request at the enrolment socket";

std::unexpected<Error> no_login(std::string_view what) {
  return fail(ErrorCode::InvalidArgument, std::string(kReadingLogin) + ": " + std::string(what));
}

}  // namespace

Result<Duration> lifetime_of(const v1::EnrolRequest::Login& login) {
  if (!login.has_lifetime()) return kLoginLifetimeDefault;
  const Duration lifetime = to_duration(login.lifetime());
  if (lifetime < kLoginLifetimeLeast || lifetime > kLoginLifetimeMost)
    return fail(ErrorCode::InvalidArgument, "the lifetime of a login must be 1h to 31d");
  return lifetime;
}

Result<SocketLogin> parse_socket_login(std::string_view bytes) {
  v1::EnrolRequest request;
  if (bytes.size() > kFrameBytesMost ||
      !request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return no_login("it does not decode");
  if (!request.has_login())
    return no_login("here users log in, and nothing else; nodes join at the enrolment port");
  const v1::EnrolRequest::Login& login = request.login();
  if (!login.token_id().empty() || !login.secret().empty())
    return no_login("tokens are for the enrolment port; here nobody needs one");
  const auto key = pki::Key::from_public_der(login.public_key());
  if (!key) return fail(Error(key.error()).in(kReadingLogin));
  const auto lifetime = lifetime_of(login);
  if (!lifetime) return fail(Error(lifetime.error()).in(kReadingLogin));
  return SocketLogin{.public_key = login.public_key(), .lifetime = *lifetime};
}

Result<std::string> socket_login_request(const pki::Key& key, Duration lifetime) {
  auto public_key = key.public_der();
  if (!public_key) return public_key;
  v1::EnrolRequest request;
  request.mutable_login()->set_public_key(std::move(*public_key));
  *request.mutable_login()->mutable_lifetime() = to_proto(lifetime);
  return request.SerializeAsString();
}

}  // namespace muster::enrol
