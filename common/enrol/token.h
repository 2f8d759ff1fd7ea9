// The token by which a new node joins a cluster, in the one text form that 'muster token create'
// writes and the agent reads:
//
//   muster-join-1:ID:SECRET:CA      CA: SHA-256 of the CA's certificate (DER), 64 hex digits
//
// The CA's digest lets a node that knows nothing else verify the controller. Pure but for
// read_token(), which blocks. No error has bytes of the secret.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace muster::enrol {

struct Token {
  std::string id;
  std::string secret;
  std::string ca_digest;
  friend bool operator==(const Token&, const Token&) = default;
};

inline constexpr std::size_t kTokenPartMost = 128;  // characters of an id, and of a secret

// 1 to kTokenPartMost of A-Z, a-z, 0-9, '-' and '_'.
[[nodiscard]] bool is_token_part(std::string_view text);

[[nodiscard]] std::string token_text(const Token& token);
// White space around it is passed over. Errors: InvalidArgument.
Result<Token> parse_token(std::string_view text);
// From a file that only its owner may read, or from standard input for "-". Errors: NotFound;
// NotAllowed when others may read the file; InvalidArgument; Io.
Result<Token> read_token(const std::filesystem::path& path);

}  // namespace muster::enrol
