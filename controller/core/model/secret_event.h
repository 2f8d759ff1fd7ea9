// The events about users' secrets. Plain values; part of EventBody (event.h).
//
// No event has the value of a secret. It is in the vault (controller/secrets/vault.h), in a file
// that `item` names. An item leaves the vault when no secret and no attempt of a job in the ledger
// names it any more.
#pragma once

#include <string>

#include "controller/core/model/owned_name.h"

namespace muster::core {

// Which value an attempt gets by a name, chosen when it is placed: all of its nodes get the same.
struct PinnedSecret {
  std::string name;
  std::string item;
  friend bool operator==(const PinnedSecret&, const PinnedSecret&) = default;
};

// It was made, or has another value. `actor`: user; empty: the one who runs the controller.
struct SecretSet {
  OwnedName key;
  std::string item;
  std::string replaced;  // the item of its value before; empty: it had none
  std::string actor;
};
struct SecretRemoved {
  OwnedName key;
  std::string item;  // that it had
  std::string actor;
};

}  // namespace muster::core
