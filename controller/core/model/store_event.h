// The events about stores: where a user's jobs find data, and put it. Plain values; part of
// EventBody (event.h). A store's key is a secret, which its profile names.
#pragma once

#include <string>

#include "controller/core/model/owned_name.h"
#include "muster/v1/store_service.pb.h"

namespace muster::core {

// How the nodes of an attempt reach an input that is in a store, chosen when it is placed.
struct PinnedInput {
  std::string input;  // its name in the spec
  v1::StoreProfile profile;
  std::string secret;  // PinnedSecret::name of the store's key; empty: it has none
};

// The same of where its outputs go.
struct PinnedOutput {
  v1::StoreProfile profile;
  std::string secret;
};

// It was made, or is another one now. `actor`: user; empty: the one who runs the controller.
struct StoreSet {
  OwnedName key;
  v1::StoreProfile profile;
  std::string actor;
};
struct StoreRemoved {
  OwnedName key;
  std::string actor;
};

}  // namespace muster::core
