#include "controller/core/decide.h"
#include "controller/core/secrets/secrets.h"

namespace muster::core {

Decision decide_one(const Deciding& in, const SetSecret& input) {
  return decide_set(in.ledger, input);
}
Decision decide_one(const Deciding& in, const RemoveSecret& input) {
  return decide_remove(in.ledger, input);
}

}  // namespace muster::core
