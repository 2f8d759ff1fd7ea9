// What comes to the enrolment port within TLS, and to the enrolment socket, from anybody: bytes ->
// length -> request -> proof. And the text of a token file.
#include "common/base/names.h"
#include "common/enrol/frame.h"
#include "common/enrol/login.h"
#include "common/enrol/request.h"
#include "common/enrol/token.h"
#include "tests/fuzz/target.h"

namespace muster::fuzz {
namespace {

using namespace muster::enrol;

constexpr std::size_t kKeyBytesMost = 200;  // DER of a public key on P-256 has 91

void check_length(std::string_view input) {
  if (input.size() < kLengthBytes) return;
  LengthBytes bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(input[i]);
  const auto length = length_in(bytes);
  if (!length) return;
  require(*length > 0 && *length <= kFrameBytesMost, "a length has its bound");
  const std::string frame = in_frame(std::string(*length, 'x'));
  require(frame.substr(0, kLengthBytes) == input.substr(0, kLengthBytes),
          "a length is written as it is read");
}

void check_request(std::string_view input) {
  const auto request = parse_request(input);
  if (!request) {
    require(is_message(request.error().message), "a refusal is a sentence",
            request.error().message);
    return;
  }
  require(request->purpose == Purpose::Login ? request->node.empty() : is_node_name(request->node),
          "a node has a name, and a user's is not in the request", request->node);
  require(request->public_key.size() <= kKeyBytesMost, "a key is that of P-256");
  if (request->purpose == Purpose::Renew) {
    require(request->registered_key.has_value(), "a renewal names two keys");
  } else {
    require(is_token_part(request->token_id) && is_token_part(request->secret),
            "a token has its bounds");
  }
  if (request->purpose == Purpose::Login)
    require(request->lifetime >= kLoginLifetimeLeast && request->lifetime <= kLoginLifetimeMost,
            "a login has its bounds");
  // Nobody can have signed these bytes.
  const auto proven = check_proof(*request, std::string(kBindingBytes, '\0') + "fuzz");
  require(!proven, "a request without a signature proves nothing");
  require(is_message(proven.error().message), "a refusal is a sentence", proven.error().message);
}

// What comes to the enrolment socket. No request is one for both doors.
void check_socket_login(std::string_view input) {
  const auto login = parse_socket_login(input);
  if (!login) {
    require(is_message(login.error().message), "a refusal is a sentence", login.error().message);
    return;
  }
  require(login->public_key.size() <= kKeyBytesMost, "a key is that of P-256");
  require(login->lifetime >= kLoginLifetimeLeast && login->lifetime <= kLoginLifetimeMost,
          "a login has its bounds");
  require(!parse_request(input), "the port asks for a token");
}

void check_token(std::string_view input, TokenKind kind) {
  const auto token = parse_token(input, kind);
  if (!token) {
    require(is_message(token.error().message), "the error is a sentence", token.error().message);
    return;
  }
  const auto again = parse_token(token_text(*token), kind);
  require(again.has_value() && *again == *token, "a token is written as it is read");
}

}  // namespace

void enrol(std::string_view input) {
  check_length(input);
  check_request(input);
  check_socket_login(input);
  check_token(input, TokenKind::Join);
  check_token(input, TokenKind::Login);
}

}  // namespace muster::fuzz
