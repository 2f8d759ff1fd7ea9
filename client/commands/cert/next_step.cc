#include "client/commands/cert/next_step.h"

#include <fmt/format.h>

#include "client/render/text.h"

namespace muster::client {
namespace {

constexpr int kNodesNamed = 20;

std::string short_digest(const v1::Authority& one) {
  return render::printable(one.sha256().substr(0, 16));
}

// "a, b and 3 more"
std::string nodes_text(const v1::Authority& one) {
  std::string text;
  for (int i = 0; i < one.waiting_nodes_size() && i < kNodesNamed; ++i)
    text += (i == 0 ? "" : ", ") + render::printable(one.waiting_nodes(i));
  if (one.waiting_nodes_size() > kNodesNamed)
    text += fmt::format(" and {} more", one.waiting_nodes_size() - kNodesNamed);
  return text;
}

std::string of_next(const v1::Authority& next) {
  const std::string begin =
      fmt::format("CA {} is published, and signs nothing yet\n", short_digest(next));
  if (next.waiting_nodes().empty())
    return begin +
           "every connected node trusts it; a node that is away learns of it when it comes back\n"
           "next: muster cert rotate sign      (or 'muster cert rotate abort')\n";
  return begin + fmt::format("waiting for nodes that do not trust it yet: {}\n", nodes_text(next)) +
         "next: muster cert rotate sign, when they do\n";
}

std::string of_old(const v1::Authority& old, const v1::Authority* signing) {
  std::string text = fmt::format("CA {} signs, and certificates of CA {} still count\n",
                                 signing == nullptr ? std::string("?") : short_digest(*signing),
                                 short_digest(old));
  if (old.user_certificates() > 0)
    text += fmt::format(
        "{} of users {} from before, and end{} with the old CA ('muster cert ls' lists them; "
        "'muster cert issue' makes new ones)\n",
        old.user_certificates() == 1 ? "1 certificate"
                                     : fmt::format("{} certificates", old.user_certificates()),
        old.user_certificates() == 1 ? "is" : "are", old.user_certificates() == 1 ? "s" : "");
  if (!old.waiting_nodes().empty())
    return text +
           fmt::format("waiting for nodes with a certificate of the old CA: {}\n",
                       nodes_text(old)) +
           "next: muster cert rotate finish, when they have another one\n";
  return text +
         "no node has a certificate of the old CA; one that was declared dead and has will have to "
         "join again\n"
         "next: muster cert rotate finish\n";
}

}  // namespace

std::string state_word(v1::AuthorityState state) {
  switch (state) {
    case v1::AUTHORITY_STATE_NEXT: return "next";
    case v1::AUTHORITY_STATE_SIGNING: return "signing";
    case v1::AUTHORITY_STATE_OLD: return "old";
    case v1::AUTHORITY_STATE_UNSPECIFIED:
    case v1::AuthorityState_INT_MIN_SENTINEL_DO_NOT_USE_:
    case v1::AuthorityState_INT_MAX_SENTINEL_DO_NOT_USE_: break;
  }
  return "unknown";
}

const v1::Authority* authority_in(
    const google::protobuf::RepeatedPtrField<v1::Authority>& authorities,
    v1::AuthorityState state) {
  for (const v1::Authority& one : authorities) {
    if (one.state() == state) return &one;
  }
  return nullptr;
}

std::string next_step_text(const google::protobuf::RepeatedPtrField<v1::Authority>& authorities) {
  const v1::Authority* signing = authority_in(authorities, v1::AUTHORITY_STATE_SIGNING);
  if (const auto* next = authority_in(authorities, v1::AUTHORITY_STATE_NEXT)) return of_next(*next);
  if (const auto* old = authority_in(authorities, v1::AUTHORITY_STATE_OLD))
    return of_old(*old, signing);
  return fmt::format(
      "CA {} signs, and no change is under way\n"
      "next: muster cert rotate start      (or 'muster cert import')\n",
      signing == nullptr ? std::string("?") : short_digest(*signing));
}

}  // namespace muster::client
