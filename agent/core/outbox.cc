#include "agent/core/outbox.h"

#include <fmt/format.h>

#include <utility>

namespace muster::agent {

bool is_bad_exit(const v1::RankExited& exited) {
  return !exited.stop_requested() && (exited.lost() || exited.code() != 0 || exited.signal() != 0);
}

Outbox::Kind Outbox::kind_of(const v1::Fact& fact) {
  std::string name;
  if (fact.has_auxiliary_exited()) name = fact.auxiliary_exited().name();
  if (fact.has_outputs_uploaded() && fact.outputs_uploaded().has_step())
    name = fmt::format("{}{}", fact.outputs_uploaded().step(),
                       fact.outputs_uploaded().seal() ? " seal" : "");
  if (fact.outputs_uploaded().logs()) name = "logs";
  return {fact.what_case(), fact.has_exited() ? fact.exited().rank() : 0, std::move(name)};
}

void Outbox::reconnected() {
  sent_.clear();
  gathered_.Clear();
  sequence_ = 0;
  urgent_ = false;
}

void Outbox::forget(const RunKey& run) { sent_.erase(run); }

bool Outbox::gather(const RunKey& run, const std::vector<v1::Fact>& facts, const Ready& ready,
                    bool scanned) {
  std::set<Kind>& sent = sent_[run];
  bool exits_wait = false;
  for (const v1::Fact& fact : facts) {
    const Kind kind = kind_of(fact);
    if (sent.contains(kind)) continue;
    if (fact.has_exited() && !ready(fact.exited())) {
      exits_wait = true;
      continue;
    }
    // Outputs follow the sweep: before it, the controller does not take them.
    const bool is_last =
        fact.has_swept() || (fact.has_outputs_uploaded() && !fact.outputs_uploaded().has_step());
    if (is_last && (exits_wait || !scanned)) continue;
    sent.insert(kind);
    *gathered_.add_facts() = fact;
    if (!fact.has_exited() || is_bad_exit(fact.exited())) urgent_ = true;
  }
  return urgent_;
}

v1::Facts Outbox::take() {
  auto& gathered = *gathered_.mutable_facts();
  int count = 0;
  for (std::size_t bytes = 0; count < gathered.size() && (count == 0 || bytes < kMessageBytes);
       ++count)
    bytes += gathered[count].ByteSizeLong();
  v1::Facts facts;
  for (int i = 0; i < count; ++i) *facts.add_facts() = std::move(gathered[i]);
  gathered.DeleteSubrange(0, count);
  urgent_ = urgent_ && !gathered.empty();
  sequence_ += static_cast<std::uint64_t>(facts.facts_size());
  facts.set_sequence(sequence_);
  return facts;
}

}  // namespace muster::agent
