#include "controller/api/withhold.h"

#include <memory>
#include <utility>

namespace muster::controller {
namespace {

void keep_verdict(v1::Verdict& to, const v1::Verdict& from) {
  to.set_failure_class(from.failure_class());
  to.set_node(from.node());
  if (from.has_rank()) to.set_rank(from.rank());
}

void keep_attempt(v1::Attempt& to, const v1::Attempt& from) {
  to.set_number(from.number());
  for (const v1::NodePlacement& node : from.nodes()) {
    v1::NodePlacement& kept = *to.add_nodes();
    kept.set_node(node.node());
    *kept.mutable_devices() = node.devices();
    kept.set_first_rank(node.first_rank());
    kept.set_rank_count(node.rank_count());
    kept.set_started(node.started());
    kept.set_swept(node.swept());
  }
  if (from.has_resume()) {
    to.mutable_resume()->set_attempt(from.resume().attempt());
    to.mutable_resume()->set_step(from.resume().step());
    to.mutable_resume()->set_from_start(from.resume().from_start());
  }
  if (from.has_placed_at()) *to.mutable_placed_at() = from.placed_at();
  if (from.has_running_at()) *to.mutable_running_at() = from.running_at();
  if (from.has_first_step_at()) *to.mutable_first_step_at() = from.first_step_at();
  if (from.has_ended_at()) *to.mutable_ended_at() = from.ended_at();
  if (from.has_verdict()) keep_verdict(*to.mutable_verdict(), from.verdict());
  if (from.has_best_step()) to.set_best_step(from.best_step());
}

// Names what is kept, so that a new field is not shown unless somebody decides it.
v1::Job kept_of(const v1::Job& from) {
  v1::Job to;
  to.set_withheld(true);
  to.set_id(from.id());
  to.set_owner(from.owner());
  to.mutable_spec()->set_name(from.spec().name());
  if (from.spec().has_stage()) {
    v1::StageSpec& stage = *to.mutable_spec()->mutable_stage();
    stage.set_chain_name(from.spec().stage().chain_name());
    stage.set_name(from.spec().stage().name());
    stage.set_number(from.spec().stage().number());
    stage.set_count(from.spec().stage().count());
  }
  to.set_phase(from.phase());
  if (from.has_submitted_at()) *to.mutable_submitted_at() = from.submitted_at();
  if (from.has_ended_at()) *to.mutable_ended_at() = from.ended_at();
  to.set_attempt(from.attempt());
  to.set_restarts(from.restarts());
  for (const v1::Attempt& attempt : from.attempts()) keep_attempt(*to.add_attempts(), attempt);
  if (from.has_progress()) {
    v1::Progress& progress = *to.mutable_progress();
    progress = from.progress();
    progress.clear_loss();
    progress.clear_loss_not_finite();
  }
  if (from.has_verdict()) keep_verdict(*to.mutable_verdict(), from.verdict());
  to.set_last_index(from.last_index());
  return to;
}

}  // namespace

const std::string* owner_of(const core::Ledger& ledger, const JobId& job) {
  if (const auto live = ledger.jobs.find(job); live != ledger.jobs.end())
    return &live->second.owner;
  const auto stone = ledger.tombstones.find(job);
  return stone == ledger.tombstones.end() ? nullptr : &stone->second.owner;
}

void show_to(const JobAccess& access, v1::Job& job) {
  const bool whole = access.may(job.owner());
  job.set_owner(access.owner_text(job.owner()));
  if (!whole) job = kept_of(job);
}

EventPtr withheld(const v1::Event& event, const std::string& what) {
  auto kept = std::make_shared<v1::Event>();
  kept->set_index(event.index());
  *kept->mutable_at() = event.at();
  kept->set_type(event.type());
  kept->set_job_id(event.job_id());
  kept->set_job_name(event.job_name());
  kept->set_attempt(event.attempt());
  kept->set_node(event.node());
  if (event.has_rank()) kept->set_rank(event.rank());
  kept->set_text("of " + what);
  kept->set_phase(event.phase());
  return kept;
}

EventPtr without_access(const EventPtr& event, bool is_operator, bool is_admin) {
  const auto is_about = [&](const char* what) { return event->type().starts_with(what); };
  const bool of_users = is_about("secret-") || is_about("store-");
  const bool of_access = is_about("token-") || is_about("certificate-");
  if ((!of_users || is_admin) && (!of_access || is_operator)) return event;
  auto kept = std::make_shared<v1::Event>();
  kept->set_index(event->index());
  *kept->mutable_at() = event->at();
  kept->set_type(event->type());
  kept->set_text(of_users ? "for admins only" : "for operators only");
  return kept;
}

}  // namespace muster::controller
