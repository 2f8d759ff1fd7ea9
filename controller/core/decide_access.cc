#include "controller/core/access/authorities.h"
#include "controller/core/access/certificates.h"
#include "controller/core/access/join.h"
#include "controller/core/access/login.h"
#include "controller/core/access/tokens.h"
#include "controller/core/decide.h"

namespace muster::core {

Decision decide_one(const Deciding& in, const CreateToken& input) {
  return decide_create(in.ledger, input, in.now.wall);
}
Decision decide_one(const Deciding& in, const RevokeToken& input) {
  return decide_revoke(in.ledger, input);
}
Decision decide_one(const Deciding& in, const JoinNode& input) {
  const NodeName node(input.node);
  const bool connected = is_connected(in.presence, node) &&
                         !is_silent(in.presence, node, in.now.boot, in.limits.silent_after);
  return decide_join(in.ledger, input, connected, in.now.wall);
}
Decision decide_one(const Deciding& in, const RenewNode& input) {
  return decide_renew(in.ledger, input, in.now.wall);
}
Decision decide_one(const Deciding& in, const LoginWithToken& input) {
  return decide_login(in.ledger, input, in.now.wall);
}
Decision decide_one(const Deciding& in, const LoginByUid& input) {
  return decide_login(in.ledger, input, in.now.wall);
}
Decision decide_one(const Deciding& in, const IssueCertificate& input) {
  return decide_issue(in.ledger, input);
}
Decision decide_one(const Deciding& in, const RevokeCertificate& input) {
  return decide_revoke(in.ledger, input, in.now.wall);
}

Decision decide_one(const Deciding& in, const ChangeAuthority& input) {
  return decide_change(in.ledger, input);
}

}  // namespace muster::core
