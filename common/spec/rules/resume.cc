// The rules of resume.
#include "common/engine/model/training_end.h"
#include "common/spec/rules/checks.h"

namespace muster::spec {

void complete_resume(Draft& draft) {
  v1::ResumeSpec& resume = *draft.spec.mutable_resume();
  if (!resume.has_enabled()) {
    const bool trains = engine::asks_for_training(draft.spec);
    resume.set_enabled(trains);
    if (!trains && (!resume.args().empty() || !resume.env().empty() || !resume.drop().empty() ||
                    !resume.patch().empty() || !resume.vars().empty()))
      draft.problem("resume",
                    "is for modes that train: eval, predict and strategy write nothing to go on "
                    "from; leave it out");
  }
  check_words(draft, "resume.args", resume.args());
  check_patches(draft);
  check_environment(draft, "resume.env", resume.env());
}

}  // namespace muster::spec
