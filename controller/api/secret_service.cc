#include "controller/api/secret_service.h"

#include <fmt/format.h>

#include <utility>

#include "common/base/names.h"
#include "common/log/log.h"
#include "common/proto/proto_time.h"
#include "common/spec/keys/values.h"
#include "controller/api/owned_name.h"
#include "controller/core/secrets/secrets.h"

namespace muster::controller {
namespace {

void fill(v1::Secret& to, const core::OwnedName& key, const core::SecretRecord& secret) {
  to.set_name(key.name);
  to.set_owner(key.owner);
  to.set_shared(key.shared);
  *to.mutable_set_at() = to_proto(secret.set_at);
  to.set_actor(secret.actor);
}

Result<void> check_value(const core::OwnedName& key, std::string_view value) {
  const std::string doing = "setting " + core::text_of(key);
  if (!is_node_name(key.name))
    return fail(ErrorCode::InvalidArgument,
                fmt::format("setting secret '{}': not a name; letters, digits, '.', '_', '-', at "
                            "most 63, the first a letter or digit",
                            spec::shown(key.name)));
  if (value.empty()) return fail(ErrorCode::InvalidArgument, doing + ": its value is empty");
  if (value.size() > kSecretBytesMost)
    return fail(ErrorCode::InvalidArgument,
                fmt::format("{}: its value has {} bytes, at most {}; put a file where every node "
                            "sees it",
                            doing, value.size(), kSecretBytesMost));
  if (value.contains('\0'))
    return fail(ErrorCode::InvalidArgument,
                doing +
                    ": its value has a zero byte, which no variable can have; encode it "
                    "(base64)");
  return {};
}

}  // namespace

grpc::ServerUnaryReactor* SecretService::SetSecret(grpc::CallbackServerContext* context,
                                                   const v1::SetSecretRequest* request,
                                                   v1::SetSecretResponse* response) {
  return serve(context, [&](grpc::ServerUnaryReactor* reactor) {
    const JobAccess access = access_of(edge_, *context, "/muster.v1.SecretService/SetSecret");
    auto key = owned_name(access, "setting secret", *request);
    if (!key) return reactor->Finish(rpc::to_status(key.error()));
    if (auto sound = check_value(*key, request->value()); !sound)
      return reactor->Finish(rpc::to_status(sound.error()));
    // Shared secrets are nobody's, so that the event alone says who set one.
    set({.key = *std::move(key), .item = {}, .actor = access.by()}, request->value(), reactor,
        response);
  });
}

// The value is on the disk before the fact that names it.
void SecretService::set(core::SetSecret input, std::string value, grpc::ServerUnaryReactor* reactor,
                        v1::SetSecretResponse* response) {
  later_.post("set secret", [this, input = std::move(input), value = std::move(value), reactor,
                             response]() mutable {
    auto item = vault_.put(value);
    if (!item) return reactor->Finish(rpc::to_status(item.error()));
    input.item = *item;
    const auto take_back = [this, item = *item] {
      if (auto gone = vault_.remove(item); !gone) log::warn(gone.error().message);
    };
    const bool taken = edge_.shell.submit(
        input, edge_.shell.now(),
        [this, reactor, response, key = input.key, take_back](const Outcome& outcome,
                                                              const View& view) {
          if (outcome.refusal) {
            later_.post("secret refused", take_back);
            return reactor->Finish(rpc::to_status(*outcome.refusal));
          }
          if (const auto found = view.ledger.secrets.find(key); found != view.ledger.secrets.end())
            fill(*response->mutable_secret(), key, found->second);
          reactor->Finish(grpc::Status::OK);
        });
    if (taken) return;
    take_back();
    reactor->Finish(overloaded());
  });
}

grpc::ServerUnaryReactor* SecretService::ListSecrets(grpc::CallbackServerContext* context,
                                                     const v1::ListSecretsRequest* request,
                                                     v1::ListSecretsResponse* response) {
  return serve(context, [&](grpc::ServerUnaryReactor* reactor) {
    const JobAccess access = access_of(edge_, *context, "/muster.v1.SecretService/ListSecrets");
    const bool all = request->all();
    if (all && !access.is_admin())
      return reactor->Finish(rpc::to_status(
          {.code = ErrorCode::NotAllowed,
           .message = "listing secrets: other users' secrets are for admins; without --all there "
                      "are your own and the shared ones"}));
    answer_from_view(edge_, reactor, [response, all, user = access.user()](const View& view) {
      for (const auto& [key, secret] : view.ledger.secrets)
        if (all || key.shared || key.owner == user) fill(*response->add_secrets(), key, secret);
      return grpc::Status::OK;
    });
  });
}

grpc::ServerUnaryReactor* SecretService::RemoveSecret(grpc::CallbackServerContext* context,
                                                      const v1::RemoveSecretRequest* request,
                                                      v1::RemoveSecretResponse*) {
  return serve(context, [&](grpc::ServerUnaryReactor* reactor) {
    const JobAccess access = access_of(edge_, *context, "/muster.v1.SecretService/RemoveSecret");
    auto key = owned_name(access, "removing secret", *request);
    if (!key) return reactor->Finish(rpc::to_status(key.error()));
    key->name = spec::shown(key->name);
    const bool taken = edge_.shell.submit(
        core::RemoveSecret{.key = *std::move(key), .actor = access.by()}, edge_.shell.now(),
        [reactor](const Outcome& outcome, const View&) {
          reactor->Finish(outcome.refusal ? rpc::to_status(*outcome.refusal) : grpc::Status::OK);
        });
    if (!taken) reactor->Finish(overloaded());
  });
}

}  // namespace muster::controller
