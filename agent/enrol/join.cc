#include "agent/enrol/join.h"

#include <random>

#include "agent/enrol/pending_key.h"
#include "common/base/once_per_cause.h"
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

Result<pki::Credentials> try_to_join(const JoinOptions& options, const enrol::Token& token,
                                     const pki::Key& key, const Clock& clock,
                                     const Cancel& cancel) {
  const auto issued =
      enrol::join({.address = options.enrol, .cancel = cancel.fd()}, token, options.node, key);
  if (!issued) return fail(Error(issued.error()));
  auto credentials = credentials_of(*issued, key, options.node, {token.ca_digest});
  if (!credentials) return credentials;
  if (auto valid = check_clock(*credentials, clock.now().wall, issued->time); !valid)
    return fail(std::move(valid.error()).in("joining the cluster"));
  return credentials;
}

}  // namespace

Result<bool> join_cluster(const JoinOptions& options, const Clock& clock, const Cancel& cancel) {
  const auto token = enrol::read_token(options.token);
  if (!token) return fail(Error(token.error()));
  const auto key = pending_key(options.pending_key);
  if (!key) return fail(Error(key.error()));
  rpc::Backoff backoff(std::random_device{}(), options.retry_min, options.retry_max);
  OncePerCause trouble;
  log::info("joining the cluster", {{"node", options.node},
                                    {"enrol", options.enrol},
                                    {"token", token->id},
                                    {"key", key->public_digest()}});
  for (;;) {
    const auto credentials = try_to_join(options, *token, *key, clock, cancel);
    if (credentials) {
      if (auto kept = pki::replace_credentials(options.credentials, *credentials); !kept)
        return fail(std::move(kept.error()));
      remove_pending_key(options.pending_key);
      log::info("joined the cluster", {{"cluster", credentials->identity.cluster},
                                       {"node", options.node},
                                       {"until", utc_text(credentials->not_after)},
                                       {"credentials", options.credentials.string()}});
      return true;
    }
    if (cancel.requested()) return false;
    const Error& error = credentials.error();
    if (!may_change(error.code)) return fail(Error(error));
    if (trouble.first(to_string(error.code))) log::warn(error.message + "; trying again");
    if (cancel.wait(backoff.next())) return false;
  }
}

}  // namespace muster::agent
