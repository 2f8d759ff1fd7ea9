#include "common/enrol/token.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include "common/pki/private_file.h"

namespace muster::enrol {
namespace {

constexpr std::string_view kJoin = "muster-join-1", kLogin = "muster-login-1";
constexpr std::size_t kTokenBytesMost = 4 << 10;
constexpr std::size_t kDigestDigits = 64;

std::string_view begin_of(TokenKind kind) { return kind == TokenKind::Join ? kJoin : kLogin; }

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

bool is_digest(std::string_view text) {
  return text.size() == kDigestDigits && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t colon = text.find(':'); colon != std::string_view::npos;
       colon = text.find(':')) {
    parts.push_back(text.substr(0, colon));
    text.remove_prefix(colon + 1);
  }
  parts.push_back(text);
  return parts;
}

Result<std::string> read_stdin() {
  std::string text(kTokenBytesMost + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(STDIN_FILENO, text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno("reading the token from standard input", errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  text.resize(size);
  return text;
}

}  // namespace

bool is_token_part(std::string_view text) {
  return !text.empty() && text.size() <= kTokenPartMost && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  });
}

std::string token_text(const Token& token) {
  return std::string(begin_of(token.kind)) + ":" + token.id + ":" + token.secret + ":" +
         token.ca_digest;
}

Result<Token> parse_token(std::string_view text, TokenKind kind) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  const auto parts = split(text.substr(0, kTokenBytesMost));
  if (text.size() > kTokenBytesMost || parts.size() != 4 ||
      (parts[0] != kJoin && parts[0] != kLogin) || !is_token_part(parts[1]) ||
      !is_token_part(parts[2]) || !is_digest(parts[3]))
    return fail(ErrorCode::InvalidArgument,
                "it is not a token; 'muster token create' writes one line, " +
                    std::string(begin_of(kind)) + ":ID:SECRET:CA");
  if (parts[0] != begin_of(kind))
    return fail(ErrorCode::InvalidArgument,
                kind == TokenKind::Join
                    ? "it is a personal token, for 'muster login'; 'muster token create --node' "
                      "makes one for nodes"
                    : "it is a token for nodes that join; 'muster token create --user NAME' makes "
                      "one for a user");
  return Token{.id = std::string(parts[1]),
               .secret = std::string(parts[2]),
               .ca_digest = std::string(parts[3]),
               .kind = kind};
}

Result<Token> read_token(const std::filesystem::path& path, TokenKind kind) {
  const bool is_stdin = path == "-";
  auto text = is_stdin ? read_stdin()
                       : pki::read_private_file(path, kTokenBytesMost, "the token file",
                                                "chmod 600 it, or make a new one");
  if (!text) return fail(std::move(text.error()));
  auto token = parse_token(*text, kind);
  if (!token)
    return fail(std::move(token.error())
                    .in(is_stdin ? "reading the token from standard input"
                                 : "reading the token file '" + path.string() + "'"));
  return token;
}

}  // namespace muster::enrol
