// StoreService sets, lists and removes users' stores. run() in main.cc owns it. gRPC's threads call
// it, and the answers come from the shell's strand.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "controller/api/edge.h"
#include "controller/secrets/vault.h"
#include "muster/v1/agent_service.pb.h"
#include "muster/v1/store_service.grpc.pb.h"

namespace muster::controller {

// Lets a node list what `check` names, as Hub::check_store does.
using StoreChecker =
    std::function<void(const NodeName& node, const std::string& user, v1::StoreCheck check,
                       std::function<bool(const std::string&)> ticket,
                       std::move_only_function<void(Result<v1::ReportStoreRequest>)> done)>;

class StoreService final : public v1::StoreService::CallbackService {
 public:
  struct Checks {
    StoreChecker begin;
    std::function<void(const std::string& ticket)> drop;  // nobody waits for it any more
  };
  // All must outlive the service. `later` runs what waits for the vault's disk.
  StoreService(Edge& edge, const Vault& vault, async::Loop& later, Checks checks)
      : edge_(edge), vault_(vault), later_(later), checks_(std::move(checks)) {}

  grpc::ServerUnaryReactor* SetStore(grpc::CallbackServerContext*, const v1::SetStoreRequest*,
                                     v1::SetStoreResponse*) override;
  grpc::ServerUnaryReactor* ListStores(grpc::CallbackServerContext*, const v1::ListStoresRequest*,
                                       v1::ListStoresResponse*) override;
  grpc::ServerUnaryReactor* CheckStore(grpc::CallbackServerContext*, const v1::CheckStoreRequest*,
                                       v1::CheckStoreResponse*) override;
  grpc::ServerUnaryReactor* RemoveStore(grpc::CallbackServerContext*, const v1::RemoveStoreRequest*,
                                        v1::RemoveStoreResponse*) override;

 private:
  Edge& edge_;
  const Vault& vault_;
  async::Loop& later_;
  const Checks checks_;
};

}  // namespace muster::controller
