#include "controller/core/access/tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "common/base/duration.h"
#include "common/base/names.h"
#include "controller/core/access/authorities.h"
#include "controller/core/access/bounds.h"

namespace muster::core {
namespace {

// A name, or one with a '*' in place of some of its characters.
bool is_pattern(const std::string& text) {
  std::string name = text;
  if (const std::size_t star = name.find('*'); star != std::string::npos) name[star] = 'x';
  return is_node_name(name);
}

std::string_view doing_with(const TokenCreated& token) {
  return token.user.empty() ? "making a join token" : "making a personal token";
}

std::optional<Error> refuse_token(const TokenCreated& token, WallTime now) {
  const auto refused = [&token](std::string why) {
    return Error{ErrorCode::InvalidArgument,
                 std::string(doing_with(token)) + ": " + std::move(why)};
  };
  if (!token.user.empty()) {
    if (!token.nodes.empty()) return refused("it is for nodes, or for one user");
    if (!is_node_name(token.user))
      return refused(
          "its user has no name that a certificate can have: letters, digits, '.', '_', '-', at "
          "most 63, the first a letter or digit");
    if (token.may_replace) return refused("a user replaces no node");
  } else if (!is_pattern(token.nodes))
    return refused(
        "it is for a node's name, or for a pattern with one '*': letters, digits, '.', '_', '-', "
        "at "
        "most 63, the first a letter or digit");
  if (token.uses == 0 || token.uses > kTokenUsesMost)
    return refused(fmt::format("--uses must be 1 to {}", kTokenUsesMost));
  if (token.ends_at < now + kTokenLifetimeLeast || token.ends_at > now + kTokenLifetimeMost)
    return refused("--lifetime must be 1h to 30d");
  if (token.may_replace && (token.uses != 1 || token.nodes.contains('*')))
    return refused("one that replaces a node is for one name, and for one use");
  return std::nullopt;
}

}  // namespace

Decision decide_create(const Ledger& ledger, const CreateToken& input, WallTime now) {
  const auto& tokens = ledger.access.tokens;
  if (auto error = refuse_token(input.token, now)) return {.refusal = std::move(error)};
  if (tokens.contains(input.token.token))
    return refuse(ErrorCode::Conflict,
                  std::string(doing_with(input.token)) + ": its random id is taken; try again");
  if (auto error =
          refuse_authority(ledger.access, input.authority, std::string(doing_with(input.token))))
    return {.refusal = std::move(error)};
  const Subject node{.role = SubjectRole::Node, .name = input.token.nodes};
  if (input.token.may_replace && !ledger.nodes.contains(NodeName(node.name)) &&
      !ledger.access.certificates.contains(node) && !ledger.access.revoked.contains(node))
    return refuse(ErrorCode::NotFound,
                  fmt::format("{}: there is no node '{}' whose place another machine could take; "
                              "`muster node ls` lists them, `muster token create --node {}` is for "
                              "a new one",
                              doing_with(input.token), node.name, node.name));
  const auto live = static_cast<std::size_t>(std::ranges::count_if(
      tokens, [&](const auto& entry) { return entry.second.over_at() > now; }));
  if (live >= kTokensLive)
    return refuse(ErrorCode::ResourceExhausted,
                  fmt::format("{}: {} tokens count, as many as the limit allows; "
                              "revoke some, or wait for their end",
                              doing_with(input.token), live));
  return accept(input.token);
}

Decision decide_revoke(const Ledger& ledger, const RevokeToken& input) {
  const auto found = ledger.access.tokens.find(input.token);
  if (found == ledger.access.tokens.end())
    return refuse(
        ErrorCode::NotFound,
        fmt::format("revoking token '{}': there is no such token; `muster token ls` lists "
                    "them",
                    input.token));
  if (found->second.revoked_at) return nothing();
  return accept(TokenRevoked{.token = input.token, .actor = input.actor});
}

}  // namespace muster::core
