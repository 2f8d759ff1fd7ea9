#include "controller/api/store_service.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "common/proto/proto_time.h"
#include "common/spec/keys/values.h"
#include "common/store/selection.h"
#include "common/store/store_url.h"
#include "controller/api/owned_name.h"
#include "controller/core/stores/stores.h"
#include "controller/secrets/hidden.h"

namespace muster::controller {
namespace {

constexpr int kNamesMost = 10;
constexpr std::size_t kNameMost = 1024, kTroubleMost = 2048;  // of what a node says

// Without its CA, which has KiB.
void fill(v1::Store& to, const core::OwnedName& key, const core::StoreRecord& store) {
  to.set_name(key.name);
  to.set_owner(key.owner);
  to.set_shared(key.shared);
  v1::StoreProfile& profile = *to.mutable_profile();
  profile.set_url(store.profile.url());
  profile.set_endpoint(store.profile.endpoint());
  profile.set_region(store.profile.region());
  profile.set_path_style(store.profile.path_style());
  profile.set_proxy(store.profile.proxy());
  profile.set_user(store.profile.user());
  profile.set_secret(store.profile.secret());
  profile.set_host_key(store.profile.host_key());
  *to.mutable_set_at() = to_proto(store.set_at);
  to.set_actor(store.actor);
}

// One call of CheckStore. It keeps itself until gRPC is done with it.
class CheckCall final : public grpc::ServerUnaryReactor {
 public:
  CheckCall(v1::CheckStoreResponse& response, std::function<void(const std::string&)> drop)
      : response_(response), drop_(std::move(drop)) {}

  static std::shared_ptr<CheckCall> make(v1::CheckStoreResponse& response,
                                         std::function<void(const std::string&)> drop) {
    auto call = std::make_shared<CheckCall>(response, std::move(drop));
    call->self_ = call;
    return call;
  }
  // Only the first end counts. `fill` is called for it, while the response may be written.
  template <class Fill>
  void end(const grpc::Status& status, Fill fill) {
    const MutexLock lock(mutex_);
    if (std::exchange(over_, true)) return;
    fill(response_);
    Finish(status);
  }
  void refuse(const Error& error) {
    end(rpc::to_status(error), [](v1::CheckStoreResponse&) {});
  }
  // False: it is over, and nobody would drop the ticket.
  bool set_ticket(const std::string& ticket) {
    const MutexLock lock(mutex_);
    ticket_ = ticket;
    return !over_;
  }
  void OnCancel() override {
    end(grpc::Status::CANCELLED, [](v1::CheckStoreResponse&) {});
    std::string ticket;
    {
      const MutexLock lock(mutex_);
      ticket = ticket_;
    }
    if (!ticket.empty()) drop_(ticket);
  }
  void OnDone() override { self_.reset(); }

 private:
  v1::CheckStoreResponse& response_;
  const std::function<void(const std::string&)> drop_;
  Mutex mutex_;
  bool over_ MUSTER_GUARDED_BY(mutex_) = false;
  std::string ticket_ MUSTER_GUARDED_BY(mutex_);
  std::shared_ptr<CheckCall> self_;
};

}  // namespace

grpc::ServerUnaryReactor* StoreService::SetStore(grpc::CallbackServerContext* context,
                                                 const v1::SetStoreRequest* request,
                                                 v1::SetStoreResponse* response) {
  return serve(context, [&](grpc::ServerUnaryReactor* reactor) {
    const JobAccess access = access_of(edge_, *context, "/muster.v1.StoreService/SetStore");
    auto key = owned_name(access, "setting store", *request);
    if (!key) return reactor->Finish(rpc::to_status(key.error()));
    key->name = spec::shown(key->name);
    core::SetStore input{
        .key = *std::move(key), .profile = request->profile(), .actor = access.by()};
    input.profile.DiscardUnknownFields();  // a newer client's; the journal could not be read again
    const bool taken = edge_.shell.submit(
        input, edge_.shell.now(),
        [reactor, response, key = input.key](const Outcome& outcome, const View& view) {
          if (outcome.refusal) return reactor->Finish(rpc::to_status(*outcome.refusal));
          if (const auto found = view.ledger.stores.find(key); found != view.ledger.stores.end())
            fill(*response->mutable_store(), key, found->second);
          reactor->Finish(grpc::Status::OK);
        });
    if (!taken) reactor->Finish(overloaded());
  });
}

grpc::ServerUnaryReactor* StoreService::ListStores(grpc::CallbackServerContext* context,
                                                   const v1::ListStoresRequest* request,
                                                   v1::ListStoresResponse* response) {
  return serve(context, [&](grpc::ServerUnaryReactor* reactor) {
    const JobAccess access = access_of(edge_, *context, "/muster.v1.StoreService/ListStores");
    const bool all = request->all();
    if (all && !access.is_admin())
      return reactor->Finish(rpc::to_status(
          {.code = ErrorCode::NotAllowed,
           .message = "listing stores: other users' stores are for admins; without --all there "
                      "are your own and the shared ones"}));
    answer_from_view(edge_, reactor, [response, all, user = access.user()](const View& view) {
      for (const auto& [key, store] : view.ledger.stores)
        if (all || key.shared || key.owner == user) fill(*response->add_stores(), key, store);
      return grpc::Status::OK;
    });
  });
}

grpc::ServerUnaryReactor* StoreService::CheckStore(grpc::CallbackServerContext* context,
                                                   const v1::CheckStoreRequest* request,
                                                   v1::CheckStoreResponse* response) {
  const auto call = CheckCall::make(*response, checks_.drop);
  const JobAccess access = access_of(edge_, *context, "/muster.v1.StoreService/CheckStore");
  const std::string doing = "checking '" + spec::shown(request->url()) + "'";
  auto url = store::parse_url(request->url());
  if (!url) {
    call->refuse(std::move(url.error()).in(doing));
    return call.get();
  }
  v1::StoreCheck asked;
  asked.set_url(store::text_of(*url));
  asked.set_measure(request->measure());
  *asked.mutable_include() = request->include();
  if (const auto sound = store::Selection::check(
          std::vector<std::string>(asked.include().begin(), asked.include().end()));
      !sound) {
    call->refuse(Error(sound.error()).in(doing + ": include"));
    return call.get();
  }
  const bool taken = edge_.shell.read([this, call, doing, url = *std::move(url),
                                       asked = std::move(asked), user = access.user(),
                                       node = NodeName(request->node())](const View& view) {
    const auto* found = core::find_store(view.ledger, user, url);
    if (found == nullptr)
      return call->refuse({ErrorCode::NotFound,
                           doing + ": no store is for it; `muster store add NAME URL` makes one"});
    const auto& [key, record] = *found;
    const core::OwnedName secret{
        .owner = key.owner, .shared = key.shared, .name = record.profile.secret()};
    const auto known = view.ledger.secrets.find(secret);
    if (!secret.name.empty() && known == view.ledger.secrets.end())
      return call->refuse({ErrorCode::NotFound, doing + ": the secret '" + secret.name + "' of " +
                                                    core::store_text(key) +
                                                    " is there no more; `muster secret set " +
                                                    secret.name + "` makes it"});
    v1::StoreCheck check = asked;
    *check.mutable_profile() = record.profile;
    later_.post("check store", [this, call, check = std::move(check), node, name = key.name,
                                shared = key.shared, user, secret = secret.name,
                                item = secret.name.empty() ? "" : known->second.item]() mutable {
      Hidden hidden;
      if (!item.empty()) {
        auto value = vault_.get(item);
        if (!value) return call->refuse(value.error());
        hidden.add(secret, *value);
        check.set_key(*std::move(value));
      }
      checks_.begin(
          node, user, std::move(check),
          [call](const std::string& ticket) { return call->set_ticket(ticket); },
          [call, name, shared, hidden = std::move(hidden)](Result<v1::ReportStoreRequest> report) {
            if (!report) return call->refuse(report.error());
            call->end(grpc::Status::OK, [&](v1::CheckStoreResponse& to) {
              to.set_node(report->node());
              to.set_store(name);
              to.set_shared(shared);
              to.set_trouble(
                  spec::readable(hidden.hide(report->trouble().substr(0, kTroubleMost))));
              to.set_count(report->count());
              to.set_more(report->more());
              to.set_objects(report->objects());
              to.set_bytes(report->bytes());
              for (int i = 0; i < std::min(report->names_size(), kNamesMost); ++i)
                to.add_names(spec::readable(report->names(i).substr(0, kNameMost)));
            });
          });
    });
  });
  if (!taken) call->end(overloaded(), [](v1::CheckStoreResponse&) {});
  return call.get();
}

grpc::ServerUnaryReactor* StoreService::RemoveStore(grpc::CallbackServerContext* context,
                                                    const v1::RemoveStoreRequest* request,
                                                    v1::RemoveStoreResponse*) {
  return serve(context, [&](grpc::ServerUnaryReactor* reactor) {
    const JobAccess access = access_of(edge_, *context, "/muster.v1.StoreService/RemoveStore");
    auto key = owned_name(access, "removing store", *request);
    if (!key) return reactor->Finish(rpc::to_status(key.error()));
    key->name = spec::shown(key->name);
    const bool taken = edge_.shell.submit(
        core::RemoveStore{.key = *std::move(key), .actor = access.by()}, edge_.shell.now(),
        [reactor](const Outcome& outcome, const View&) {
          reactor->Finish(outcome.refusal ? rpc::to_status(*outcome.refusal) : grpc::Status::OK);
        });
    if (!taken) reactor->Finish(overloaded());
  });
}

}  // namespace muster::controller
