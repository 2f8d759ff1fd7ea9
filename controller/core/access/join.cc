#include "controller/core/access/join.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/names.h"
#include "controller/core/access/bounds.h"
#include "controller/core/access/certificates.h"
#include "controller/core/access/fold.h"

namespace muster::core {
namespace {

bool counts(const CertificateRecord& record, WallTime now) {
  return !record.revoked_at && record.last_end >= now;
}

// What bounds the certificates that nodes ask for by themselves.
std::optional<Error> refuse_more(const Ledger& ledger, const Subject& subject,
                                 const std::string& key, WallTime now, const std::string& doing) {
  const auto& keys = keys_of(ledger, subject);
  const auto known = keys.find(key);
  if (known != keys.end()) {
    const CertificateRecord& record = known->second;
    if (record.issued_day >= kCertificatesOfKeyDay &&
        now < record.issued_at + std::chrono::hours(24))
      return Error{ErrorCode::ResourceExhausted,
                   fmt::format("{}: its key got {} certificates within a day, as many as are "
                               "issued; see why the agent does not keep them",
                               doing, record.issued_day)};
    return std::nullopt;
  }
  const auto live = static_cast<std::size_t>(
      std::ranges::count_if(keys, [&](const auto& entry) { return counts(entry.second, now); }));
  if (live < kKeysOfNode) return std::nullopt;
  return Error{ErrorCode::ResourceExhausted,
               fmt::format("{}: {} keys of the node count, as many as may; `muster cert revoke {}` "
                           "ends them, and `muster node replace {}` lets the node join again",
                           doing, live, subject.name, subject.name)};
}

Decision one_more(const Ledger& ledger, const Subject& subject, const NewCertificate& made,
                  std::string token, std::string actor, WallTime now, const std::string& doing) {
  if (auto error = refuse_certificate(ledger, subject, made, doing))
    return {.refusal = std::move(error)};
  if (auto error = refuse_more(ledger, subject, made.key, now, doing))
    return {.refusal = std::move(error)};
  return accept(issued(subject, made, std::move(token), std::move(actor)));
}

}  // namespace

bool matches(std::string_view pattern, std::string_view name) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name;
  const std::string_view front = pattern.substr(0, star), back = pattern.substr(star + 1);
  return name.size() >= front.size() + back.size() && name.starts_with(front) &&
         name.ends_with(back);
}

bool same_digest(std::string_view one, std::string_view other) {
  if (one.size() != other.size()) return false;
  unsigned different = 0;
  for (std::size_t i = 0; i < one.size(); ++i)
    different |= static_cast<unsigned char>(one[i]) ^ static_cast<unsigned char>(other[i]);
  return different == 0;
}

std::optional<Error> refuse_join_token(const Ledger& ledger, const std::string& token,
                                       const std::string& secret_sha256, const std::string& node,
                                       WallTime now) {
  if (!is_node_name(node))
    return Error{ErrorCode::InvalidArgument,
                 "letting a node join: its name is no name; letters, digits, '.', '_', "
                 "'-', at most 63, the first a letter or digit (--name)"};
  const auto found = ledger.access.tokens.find(token);
  if (found == ledger.access.tokens.end() ||
      !same_digest(found->second.secret_sha256, secret_sha256))
    return Error{ErrorCode::NotAllowed,
                 // Without the name, which is whatever the caller likes: each text is a line of
                 // the log, and has a place there.
                 "letting a node join: the controller does not know this token; `muster token "
                 "create` on the controller's machine makes one"};
  const TokenRecord& known = found->second;
  const std::string doing = fmt::format("letting node '{}' join", node);
  if (!known.user.empty())
    return Error{ErrorCode::NotAllowed,
                 fmt::format("{}: token '{}' is a personal one, for `muster login`; `muster token "
                             "create --node` makes one for nodes",
                             doing, token)};
  if (known.revoked_at)
    return Error{ErrorCode::NotAllowed, doing + ": " + revoked_text(token, known)};
  if (now > known.ends_at)
    return Error{ErrorCode::NotAllowed,
                 fmt::format("{}: token '{}' ended at {}, by the controller's clock; make "
                             "another one",
                             doing, token, utc_text(known.ends_at))};
  if (!matches(known.nodes, node))
    return Error{ErrorCode::NotAllowed,
                 fmt::format("{}: token '{}' is for '{}' (--name)", doing, token, known.nodes)};
  return std::nullopt;
}

Decision decide_join(const Ledger& ledger, const JoinNode& input, bool connected, WallTime now) {
  if (auto error = refuse_join_token(ledger, input.token, input.secret_sha256, input.node, now))
    return {.refusal = std::move(error)};
  const std::string doing = fmt::format("letting node '{}' join", input.node);
  const TokenRecord& token = ledger.access.tokens.at(input.token);
  const Subject subject{.role = SubjectRole::Node, .name = input.node};
  const std::string actor = fmt::format("token {}", input.token);
  if (token.joined.contains({input.node, input.certificate.key}))
    return one_more(ledger, subject, input.certificate, input.token, actor, now, doing);
  if (token.joined.size() >= token.uses)
    return refuse(ErrorCode::NotAllowed,
                  fmt::format("{}: token '{}' is used up ({} of {}); make another one", doing,
                              input.token, token.joined.size(), token.uses));
  const auto& keys = keys_of(ledger, subject);
  const bool known = !keys.empty() || ledger.access.revoked.contains(subject) ||
                     ledger.nodes.contains(NodeName(input.node));
  const bool replaces = known && !keys.contains(input.certificate.key);
  if (replaces && !token.may_replace)
    return refuse(ErrorCode::NotAllowed,
                  fmt::format("{}: the name is known with another key; if this machine takes its "
                              "place, `muster node replace {}` on the controller's machine makes "
                              "a token for that",
                              doing, input.node));
  if (!replaces)
    return one_more(ledger, subject, input.certificate, input.token, actor, now, doing);
  // Its agent would be cut off, and what runs there would go on unseen.
  if (connected)
    return refuse(ErrorCode::Conflict,
                  fmt::format("{}: an agent of this name is connected; if another machine is to "
                              "take its place, `muster node drain {}`, and stop that agent first",
                              doing, input.node));
  if (auto error = refuse_certificate(ledger, subject, input.certificate, doing))
    return {.refusal = std::move(error)};
  return accept(CertificateRevoked{.subject = subject,
                                   .key = {},
                                   .serial = {},
                                   .before = now,
                                   .why = "another machine has taken its place",
                                   .actor = actor},
                issued(subject, input.certificate, input.token, actor));
}

Decision decide_renew(const Ledger& ledger, const RenewNode& input, WallTime now) {
  const std::string doing = fmt::format("giving node '{}' another certificate", input.node);
  const Subject subject{.role = SubjectRole::Node, .name = input.node};
  const auto& keys = keys_of(ledger, subject);
  const auto registered = keys.find(input.registered);
  if (registered == keys.end() || registered->second.last_end < now - kAccessKept)
    return refuse(ErrorCode::NotAllowed,
                  fmt::format("{}: the controller knows no such key of it; `muster node replace "
                              "{}` on the controller's machine makes a token by which it joins "
                              "again",
                              doing, input.node));
  if (registered->second.revoked_at)
    return refuse(ErrorCode::NotAllowed,
                  fmt::format("{}: {}", doing, revoked_text(registered->second)));
  return one_more(ledger, subject, input.certificate, {}, fmt::format("node '{}'", input.node), now,
                  doing);
}

}  // namespace muster::core
