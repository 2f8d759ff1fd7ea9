#include "agent/enrol/join.h"

#include <random>
#include <set>

#include "agent/enrol/pending_key.h"
#include "common/enrol/client.h"
#include "common/enrol/token.h"
#include "common/log/log.h"
#include "common/rpc/backoff.h"

namespace muster::agent {
namespace {

// What may be otherwise at the next try.
bool may_change(ErrorCode code) {
  return code == ErrorCode::Unreachable || code == ErrorCode::TimedOut ||
         code == ErrorCode::ResourceExhausted || code == ErrorCode::Internal ||
         code == ErrorCode::Io;
}

Result<Received> ask_to_join(const JoinOptions& options, const enrol::Token& token,
                             const pki::Key& key, const Cancel& cancel) {
  const auto issued =
      enrol::join({.address = options.enrol, .cancel = cancel.fd()}, token, options.node, key);
  if (!issued) return fail(Error(issued.error()));
  return received(*issued, key, options.node, {token.ca_digest});
}

Result<void> keep(const JoinOptions& options, const pki::Credentials& credentials) {
  if (auto kept = pki::replace_credentials(options.credentials, credentials); !kept) return kept;
  remove_pending_key(options.pending_key);
  log::info("joined the cluster", {{"cluster", credentials.identity.cluster},
                                   {"node", options.node},
                                   {"until", utc_text(credentials.not_after)},
                                   {"credentials", options.credentials.string()}});
  return {};
}

}  // namespace

Result<bool> join_cluster(const JoinOptions& options, const Clock& clock, const Cancel& cancel) {
  const auto token = enrol::read_token(options.token);
  if (!token) return fail(Error(token.error()));
  const auto key = pending_key(options.pending_key);
  if (!key) return fail(Error(key.error()));
  rpc::Backoff backoff(std::random_device{}(), options.retry_min, options.retry_max);
  std::set<ErrorCode> reported;
  log::info("joining the cluster", {{"node", options.node},
                                    {"enrol", options.enrol},
                                    {"token", token->id},
                                    {"key", key->public_digest()}});
  Result<Received> answer = fail(ErrorCode::Internal, "nothing was asked yet");
  for (;;) {
    if (!answer) answer = ask_to_join(options, *token, *key, cancel);
    auto usable = answer ? check_clock(*answer, clock.now().wall)
                         : Result<void>(std::unexpected(answer.error()));
    if (usable) {
      if (auto kept = keep(options, answer->credentials); !kept)
        return fail(std::move(kept.error()));
      return true;
    }
    if (cancel.requested()) return false;
    const Error& error = usable.error();
    if (!may_change(error.code)) {
      // A key that the controller refuses for good is of no use: it may be revoked.
      if (error.code == ErrorCode::NotAllowed) remove_pending_key(options.pending_key);
      return fail(Error(error));
    }
    if (reported.insert(error.code).second) log::warn(error.message + "; trying again");
    if (cancel.wait(backoff.next())) return false;
  }
}

}  // namespace muster::agent
