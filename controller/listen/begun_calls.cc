#include "controller/listen/begun_calls.h"

namespace muster::controller {

bool BegunCalls::begin(rpc::ConnectionId connection, const std::string& owner, BootTime now) {
  // Another connection may have had the same id before, and no request of it became whole.
  if (const Of* of = find(connection); of != nullptr && of->owner != owner) forget(connection);
  std::size_t& all = of_owner_[owner];
  if (all >= kOfOwnerMost) return false;
  ++all;
  Of& of = of_connection_[connection];
  of.owner = owner;
  ++of.count;
  of.last = now;
  return true;
}

void BegunCalls::whole(rpc::ConnectionId connection) {
  const auto found = of_connection_.find(connection);
  if (found == of_connection_.end()) return;
  drop(found->second.owner, 1);
  if (--found->second.count == 0) of_connection_.erase(found);
}

void BegunCalls::forget(rpc::ConnectionId connection) {
  const auto found = of_connection_.find(connection);
  if (found == of_connection_.end()) return;
  drop(found->second.owner, found->second.count);
  of_connection_.erase(found);
}

BegunCalls::Of* BegunCalls::find(rpc::ConnectionId connection) {
  const auto found = of_connection_.find(connection);
  return found == of_connection_.end() ? nullptr : &found->second;
}

void BegunCalls::drop(const std::string& owner, std::size_t count) {
  const auto of_owner = of_owner_.find(owner);
  of_owner->second -= count;
  if (of_owner->second == 0) of_owner_.erase(of_owner);
}

}  // namespace muster::controller
