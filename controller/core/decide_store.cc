#include "controller/core/decide.h"
#include "controller/core/stores/stores.h"

namespace muster::core {

Decision decide_one(const Deciding& in, const SetStore& input) {
  return decide_set_store(in.ledger, input);
}
Decision decide_one(const Deciding& in, const RemoveStore& input) {
  return decide_remove_store(in.ledger, input);
}

}  // namespace muster::core
