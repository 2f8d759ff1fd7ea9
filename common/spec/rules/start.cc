// The rules of start.
#include <fmt/format.h>

#include <algorithm>

#include "common/spec/keys/names.h"
#include "common/spec/keys/values.h"
#include "common/spec/rules/checks.h"
#include "common/store/store_url.h"

namespace muster::spec {

void complete_start(Draft& draft) {
  v1::JobSpec& spec = draft.spec;
  if (!spec.has_start()) return;
  if (spec.start().from().empty()) return spec.clear_start();
  v1::StartSpec& start = *spec.mutable_start();
  if (start.as() == v1::START_AS_UNSPECIFIED) start.set_as(v1::START_AS_WEIGHTS);
  if (start.as() < v1::START_AS_WEIGHTS || start.as() > v1::START_AS_RESUME_OR_SCRATCH)
    draft.problem("start.as", fmt::format("{} is not accepted ({})", static_cast<int>(start.as()),
                                          accepted_of("start.as")));
  if (start.has_step() && start.step() < 0)
    draft.problem("start.step",
                  fmt::format("{} is out of range ({})", start.step(), accepted_of("start.step")));
  const bool in_store = store::is_url(start.from());
  const auto taken = std::ranges::find(spec.inputs(), kStartInput, &v1::InputSpec::name);
  if (in_store && taken != spec.inputs().end() && taken->from() != start.from())
    return draft.problem("start.from",
                         fmt::format("'{}' becomes the input '{}', which is '{}' here; give that "
                                     "input another name",
                                     shown(start.from()), kStartInput, shown(taken->from())));
  if (std::string wrong = in_store ? add_input(draft, std::string(kStartInput), start.from())
                                   : source_problem(spec, start.from(), accepted_of("start.from"));
      !wrong.empty())
    return draft.problem("start.from", std::move(wrong));
  const Source source = source_of(start.from());
  if (source.slash && source.below.empty())
    return draft.problem("start.from",
                         fmt::format("'{}' ends with a slash: leave it out for the newest "
                                     "checkpoint, or name a directory behind it",
                                     shown(start.from())));
  const bool directory = source.kind.empty() || source.slash;
  if (directory && !start.has_step() && start.as() != v1::START_AS_WEIGHTS)
    draft.problem("start.step",
                  fmt::format("is missing: in a directory muster does not look which checkpoint is "
                              "whole; write the step of '{}' to go on from (a number)",
                              shown(start.from())));
  if (start.as() != v1::START_AS_WEIGHTS && spec.has_resume() && spec.resume().has_enabled() &&
      !spec.resume().enabled())
    draft.problem(
        "start.as",
        "is to go on behind a checkpoint, but every attempt starts from the beginning here "
        "(resume: none, or a mode that does not train); use as: weights");
}

}  // namespace muster::spec
