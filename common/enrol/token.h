// The token by which a new node joins a cluster or a user logs in, in the one text form that
// 'muster token create' writes, and the agent and 'muster login' read:
//
//   muster-join-1:ID:SECRET:CA      CA: SHA-256 of the CA's certificate (DER), 64 hex digits
//   muster-login-1:ID:SECRET:CA     of a user: a personal token
//
// The CA's digest lets whoever knows nothing else verify the controller. Pure but for
// read_token(), which blocks. No error has bytes of the secret.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace muster::enrol {

enum class TokenKind : std::uint8_t { Join, Login };

struct Token {
  std::string id;
  std::string secret;
  std::string ca_digest;
  TokenKind kind = TokenKind::Join;
  friend bool operator==(const Token&, const Token&) = default;
};

inline constexpr std::size_t kTokenPartMost = 128;  // characters of an id, and of a secret

// 1 to kTokenPartMost of A-Z, a-z, 0-9, '-' and '_'.
[[nodiscard]] bool is_token_part(std::string_view text);

[[nodiscard]] std::string token_text(const Token& token);
// White space around it is passed over. Errors: InvalidArgument, also for the other kind.
Result<Token> parse_token(std::string_view text, TokenKind kind = TokenKind::Join);
// From a file that only its owner may read, or from standard input for "-". Errors: NotFound;
// NotAllowed when others may read the file; InvalidArgument; Io.
Result<Token> read_token(const std::filesystem::path& path, TokenKind kind = TokenKind::Join);

}  // namespace muster::enrol
