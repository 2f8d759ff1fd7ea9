#include "controller/api/authority_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/log/log.h"
#include "common/rpc/status.h"
#include "controller/api/authority_list.h"
#include "controller/api/edge.h"
#include "controller/core/access/authorities.h"

namespace muster::controller {
namespace {

constexpr std::size_t kPemBytesMost = 16 << 10;  // of a certificate, and of a key
constexpr std::size_t kNodesNamed = 10;

std::string waiting_text(const std::vector<std::string>& nodes) {
  std::string text;
  for (std::size_t i = 0; i < nodes.size() && i < kNodesNamed; ++i)
    text += (i == 0 ? "" : ", ") + nodes[i];
  if (nodes.size() > kNodesNamed) text += fmt::format(" and {} more", nodes.size() - kNodesNamed);
  return text;
}

bool has_sound_size(const v1::ChangeAuthorityRequest::Publish& publish) {
  return publish.certificate().size() <= kPemBytesMost && publish.key().size() <= kPemBytesMost &&
         publish.certificate().empty() == publish.key().empty();
}

}  // namespace

// One change on its way. It frees the turn when it is over.
struct AuthorityChanges::Change {
  grpc::ServerUnaryReactor* reactor;
  const v1::ChangeAuthorityRequest& request;
  v1::ChangeAuthorityResponse& response;
  core::ChangeAuthority input = {};
};

void AuthorityChanges::list(grpc::ServerUnaryReactor* reactor,
                            v1::ListAuthoritiesResponse& response) {
  const bool taken = shell_.read([this, reactor, &response](const View& view) {
    const auto now = authorities_.now();
    if (now == nullptr)
      return reactor->Finish(rpc::to_status(Error(authorities_.why()).in("listing the CAs")));
    *response.mutable_authorities() =
        list_authorities(view.ledger, view.presence, *now, clock_.now().wall);
    reactor->Finish(grpc::Status::OK);
  });
  if (!taken) reactor->Finish(overloaded());
}

void AuthorityChanges::change(grpc::ServerUnaryReactor* reactor,
                              const v1::ChangeAuthorityRequest& request,
                              v1::ChangeAuthorityResponse& response, const std::string& actor) {
  const std::string doing = "changing the CA";
  if (!authorities_) return reactor->Finish(rpc::to_status(Error(authorities_.why()).in(doing)));
  if (request.step_case() == request.STEP_NOT_SET)
    return reactor->Finish({grpc::StatusCode::INVALID_ARGUMENT, doing + ": no step is named"});
  if (request.has_publish() && !has_sound_size(request.publish()))
    return reactor->Finish(
        {grpc::StatusCode::INVALID_ARGUMENT,
         doing + ": a CA from outside is a certificate and its key, each of at most 16 KiB"});
  if (busy_.exchange(true))
    return reactor->Finish(
        {grpc::StatusCode::ABORTED, doing + ": another change is being made; try again"});
  const auto one = std::make_shared<Change>(Change{reactor, request, response});
  one->input.actor = actor;
  const bool taken = shell_.read([this, one](const View& view) { check(one, view); });
  if (!taken) finish(one, overloaded());
}

// On the strand.
void AuthorityChanges::check(const ChangePtr& change, const View& view) {
  const core::AuthorityRecords& known = view.ledger.access.authorities;
  core::ChangeAuthority& input = change->input;
  // The files wait for that step: another one could remove the only key of the CA that signs.
  if (!known.signing.empty() && known.signing != authorities_->certificate().digest())
    return finish(change, {grpc::StatusCode::ABORTED,
                           "changing the CA: a step before was decided and not carried out: start "
                           "the controller again"});
  std::string why;
  switch (change->request.step_case()) {
    case v1::ChangeAuthorityRequest::kPublish:
      input.step = core::AuthorityStep::Published;
      input.imported = !change->request.publish().certificate().empty();
      input.at_once = input.imported && core::nothing_issued(view.ledger.access);
      if (!known.next.empty() || !known.old.empty()) {
        // next.pem is in use: the decision says why it is not this step's turn.
        input.sha256 = input.signing = authorities_->certificate().digest();
        const auto refused = core::decide_change(view.ledger, input).refusal;
        return finish(change, refused ? rpc::to_status(*refused) : overloaded());
      }
      break;
    case v1::ChangeAuthorityRequest::kSign: {
      input.step = core::AuthorityStep::Signs;
      input.sha256 = known.next;
      const auto waiting =
          known.next.empty() ? std::vector<std::string>() : not_trusting(view.presence, known.next);
      if (!waiting.empty())
        why = fmt::format("these nodes do not trust the next CA yet: {}; wait for them",
                          waiting_text(waiting));
      break;
    }
    case v1::ChangeAuthorityRequest::kDrop: {
      input.step = core::AuthorityStep::Dropped;
      input.sha256 = known.old.empty() ? known.next : known.old;
      const auto waiting = known.old.empty()
                               ? std::vector<std::string>()
                               : signed_by(view.ledger, view.presence, known.old);
      if (!waiting.empty())
        why = fmt::format(
            "these nodes have no certificate of the new CA yet: {}; an agent with --enrol gets one "
            "by itself within seconds, another one needs `muster cert issue`; wait for them (one "
            "that is away gets it when it is back, `muster node rm` forgets one that is gone)",
            waiting_text(waiting));
      break;
    }
    case v1::ChangeAuthorityRequest::STEP_NOT_SET: break;
  }
  if (!why.empty() && !change->request.force())
    return finish(change, {grpc::StatusCode::ABORTED,
                           "changing the CA: " + why +
                               ", or --force (they must join again with a new token then)"});
  work_.post("prepare a change of the CA", [this, change] { prepare(change); });
}

// On the work loop.
void AuthorityChanges::prepare(const ChangePtr& change) {
  core::ChangeAuthority& input = change->input;
  input.signing = authorities_->certificate().digest();
  if (input.step != core::AuthorityStep::Published) return decide(change);
  const std::string& cluster = authorities_->cluster();
  const WallTime now = clock_.now().wall;
  const auto& publish = change->request.publish();
  auto next = input.imported ? pki::Authority::adopt(publish.certificate(), publish.key(), cluster)
                             : pki::Authority::make(cluster, now);
  if (next && input.imported) {
    if (auto usable = pki::check_usable(*next, now); !usable)
      next =
          fail(std::move(usable.error()).in("the CA '" + next->certificate().common_name() + "'"));
  }
  if (!next)
    return finish(
        change,
        rpc::to_status(
            Error(next.error()).in(input.imported ? "importing a CA" : "making a next CA")));
  input.sha256 = next->certificate().digest();
  if (auto kept = pki::keep_next(dir_, *next); !kept)
    return finish(change, rpc::to_status(kept.error()));
  decide(change);
}

void AuthorityChanges::decide(const ChangePtr& change) {
  const bool taken = shell_.submit(
      change->input, clock_.now(), [this, change](const Outcome& outcome, const View& view) {
        auto plan = plan_of(view.ledger.access.authorities);
        work_.post("carry out a change of the CA", [this, change, refusal = outcome.refusal,
                                                    plan = std::move(plan)] {
          if (!refusal) return carry_out(change, plan);
          // What was prepared for it goes.
          (void)pki::settle_authorities(dir_, authorities_->cluster(), plan, clock_.now().wall);
          finish(change, rpc::to_status(*refusal));
        });
      });
  if (!taken) finish(change, overloaded());
}

void AuthorityChanges::carry_out(const ChangePtr& change, const pki::AuthorityPlan& plan) {
  const WallTime now = clock_.now().wall;
  auto set = pki::settle_authorities(dir_, authorities_->cluster(), plan, now);
  auto made = set ? authorities_now(std::move(*set), now)
                  : Result<AuthoritiesNow>(fail(std::move(set.error())));
  if (!made) {
    const Error error = Error(made.error())
                            .in("the step was decided, and its files are not in place: start the "
                                "controller again when "
                                "that is mended");
    log::error(error.message);
    return finish(change, rpc::to_status(error));
  }
  log::info("the CA was changed", {{"signing", made->set.signing.certificate().digest()},
                                   {"next", plan.next},
                                   {"old", plan.old}});
  authorities_.replace(std::move(*made));
  on_changed_(*authorities_.now());
  const bool taken = shell_.read([this, change](const View& view) {
    *change->response.mutable_authorities() =
        list_authorities(view.ledger, view.presence, *authorities_.now(), clock_.now().wall);
    finish(change, grpc::Status::OK);
  });
  if (!taken) finish(change, grpc::Status::OK);  // it was done, and is not shown
}

void AuthorityChanges::finish(const ChangePtr& change, const grpc::Status& status) {
  busy_ = false;
  change->reactor->Finish(status);
}

}  // namespace muster::controller
