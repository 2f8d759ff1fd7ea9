#include "controller/api/access_list.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "common/proto/proto_time.h"

namespace muster::controller {
namespace {

constexpr std::size_t kCertificatesPage = 10'000;

// The newest first. Two of one moment are in the order of their keys.
struct Listed {
  WallTime issued_at{};
  const core::Subject* subject = nullptr;
  const std::string* key = nullptr;
  const core::CertificateRecord* certificate = nullptr;
};
bool before(const Listed& one, const Listed& other) {
  return std::tie(other.issued_at, *one.key, *one.subject) <
         std::tie(one.issued_at, *other.key, *other.subject);
}

// Opaque for clients: where the next page begins.
std::string page_token_of(const Listed& last) {
  return std::to_string(last.issued_at.time_since_epoch().count()) + ":" + *last.key + ":" +
         (last.subject->role == core::SubjectRole::Node ? "node" : "user") + ":" +
         last.subject->name;
}

struct Position {
  WallTime issued_at{};
  std::string key;
  core::Subject subject;
};
std::optional<Position> parse_page_token(std::string_view text) {
  Position position;
  std::int64_t nanoseconds = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), nanoseconds);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  std::array<std::string_view, 3> parts;  // key, role, name
  for (std::string_view& part : parts) {
    if (!text.starts_with(':')) return std::nullopt;
    text.remove_prefix(1);
    part = text.substr(0, text.find(':'));
    text.remove_prefix(part.size());
  }
  if (!text.empty() || (parts[1] != "node" && parts[1] != "user")) return std::nullopt;
  return Position{
      .issued_at = WallTime(Duration(nanoseconds)),
      .key = std::string(parts[0]),
      .subject = {.role = parts[1] == "node" ? core::SubjectRole::Node : core::SubjectRole::User,
                  .name = std::string(parts[2])}};
}

}  // namespace

v1::Token to_v1(const std::string& id, const core::TokenRecord& token) {
  v1::Token shown;
  shown.set_id(id);
  shown.set_nodes(token.nodes);
  shown.set_uses(token.uses);
  shown.set_used(static_cast<std::uint32_t>(token.joined.size()));
  *shown.mutable_created_at() = to_proto(token.created_at);
  *shown.mutable_ends_at() = to_proto(token.ends_at);
  shown.set_may_replace(token.may_replace);
  shown.set_actor(token.actor);
  shown.set_user(token.user);
  if (token.revoked_at) *shown.mutable_revoked_at() = to_proto(*token.revoked_at);
  return shown;
}

v1::Certificate to_v1(const core::Subject& subject, const std::string& key,
                      const core::CertificateRecord& certificate) {
  v1::Certificate shown;
  shown.set_serial(certificate.serial);
  if (subject.role == core::SubjectRole::Node) {
    shown.set_node(subject.name);
  } else {
    shown.set_user(subject.name);
  }
  shown.set_key_sha256(key);
  *shown.mutable_not_before() = to_proto(certificate.not_before);
  *shown.mutable_not_after() = to_proto(certificate.not_after);
  *shown.mutable_issued_at() = to_proto(certificate.issued_at);
  shown.set_token(certificate.token);
  shown.set_actor(certificate.actor);
  if (certificate.revoked_at) *shown.mutable_revoked_at() = to_proto(*certificate.revoked_at);
  shown.set_why(certificate.why);
  return shown;
}

void list_tokens(const core::AccessRecords& records, v1::ListTokensResponse& response) {
  std::vector<std::pair<WallTime, const std::string*>> order;
  for (const auto& [id, token] : records.tokens) order.emplace_back(token.created_at, &id);
  std::ranges::sort(order, [](const auto& one, const auto& other) {
    return std::tie(other.first, *one.second) < std::tie(one.first, *other.second);
  });
  for (const auto& [at, id] : order) *response.add_tokens() = to_v1(*id, records.tokens.at(*id));
}

Result<void> list_certificates(const core::AccessRecords& records,
                               const v1::ListCertificatesRequest& request, std::size_t bytes,
                               v1::ListCertificatesResponse& response) {
  std::optional<Position> begin;
  if (!request.page_token().empty()) {
    begin = parse_page_token(request.page_token());
    if (!begin)
      return fail(ErrorCode::InvalidArgument,
                  "listing certificates: the page token is none of this controller's");
  }
  std::vector<Listed> order;
  order.reserve(records.certificate_count);
  for (const auto& [subject, keys] : records.certificates) {
    for (const auto& [key, one] : keys)
      order.push_back(
          {.issued_at = one.issued_at, .subject = &subject, .key = &key, .certificate = &one});
  }
  std::ranges::sort(order, before);
  const std::size_t most = request.page_size() == 0
                               ? kCertificatesPage
                               : std::min<std::size_t>(request.page_size(), kCertificatesPage);
  std::size_t used = 0;
  const Listed* last = nullptr;
  for (const Listed& one : order) {
    if (begin && !before({.issued_at = begin->issued_at,
                          .subject = &begin->subject,
                          .key = &begin->key,
                          .certificate = nullptr},
                         one))
      continue;
    if (static_cast<std::size_t>(response.certificates_size()) >= most || used >= bytes) {
      response.set_next_page_token(page_token_of(*last));
      return {};
    }
    v1::Certificate& shown = *response.add_certificates() =
        to_v1(*one.subject, *one.key, *one.certificate);
    used += shown.ByteSizeLong() + 8;
    last = &one;
  }
  return {};
}

}  // namespace muster::controller
