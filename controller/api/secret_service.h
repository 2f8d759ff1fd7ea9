// SecretService sets, lists and removes users' secrets. run() in main.cc owns it. gRPC's threads
// call it; the vault is written on a loop of its own, and the answers come from the shell's strand.
//
// No answer has a value. Shared secrets, and those of other users, are for admins
// (JobAccess::is_admin): the table of calls knows only the role that a call needs at least.
#pragma once

#include "controller/api/edge.h"
#include "controller/secrets/vault.h"
#include "muster/v1/secret_service.grpc.pb.h"

namespace muster::controller {

class SecretService final : public v1::SecretService::CallbackService {
 public:
  // All must outlive the service. `later` runs what waits for the vault's disk.
  SecretService(Edge& edge, const Vault& vault, async::Loop& later)
      : edge_(edge), vault_(vault), later_(later) {}

  grpc::ServerUnaryReactor* SetSecret(grpc::CallbackServerContext*, const v1::SetSecretRequest*,
                                      v1::SetSecretResponse*) override;
  grpc::ServerUnaryReactor* ListSecrets(grpc::CallbackServerContext*, const v1::ListSecretsRequest*,
                                        v1::ListSecretsResponse*) override;
  grpc::ServerUnaryReactor* RemoveSecret(grpc::CallbackServerContext*,
                                         const v1::RemoveSecretRequest*,
                                         v1::RemoveSecretResponse*) override;

 private:
  void set(core::SetSecret input, std::string value, grpc::ServerUnaryReactor* reactor,
           v1::SetSecretResponse* response);

  Edge& edge_;
  const Vault& vault_;
  async::Loop& later_;
};

}  // namespace muster::controller
