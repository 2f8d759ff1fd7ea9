// The rules of observe.
#include "common/engine/model/grammar.h"
#include "common/spec/rules/checks.h"

namespace muster::spec {
namespace {

bool is_step_count(const std::string& text) {
  return !text.empty() && text.size() < 19 &&
         text.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

void complete_observe(Draft& draft) {
  v1::ObserveSpec& observe = *draft.spec.mutable_observe();
  if (observe.grammar().empty() && !observe.step().empty()) observe.set_grammar("custom");
  if (observe.grammar().empty() && draft.engine != nullptr)
    observe.set_grammar(std::string(draft.engine->grammar));
  if (observe.grammar() == "custom") {
    check_pattern(draft, "observe.progress.step", observe.step(), 1);
    if (!observe.loss().empty()) check_pattern(draft, "observe.progress.loss", observe.loss(), 1);
    if (!observe.total().empty() && !is_step_count(observe.total()))
      check_pattern(draft, "observe.progress.total", observe.total(), 1);
    return;
  }
  v1::Watching watching;
  watching.set_grammar(observe.grammar());
  if (auto grammar = engine::make_grammar(watching); !grammar)
    draft.problem("observe.progress", grammar.error().message);
}

}  // namespace muster::spec
