#include "common/rpc/live_tls.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/grpc_security_constants.h>
#include <grpc/slice.h>
#include <grpcpp/grpcpp.h>

#include <string>
#include <utility>

namespace muster::rpc {
namespace {

std::string_view text_of(const grpc_slice& slice) {
  return {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)), GRPC_SLICE_LENGTH(slice)};
}

// Empty: the connection has none, or several.
std::string_view certificate_in(const grpc_auth_context* context) {
  grpc_auth_property_iterator all =
      ::grpc_auth_context_find_properties_by_name(context, GRPC_X509_PEM_CERT_PROPERTY_NAME);
  const grpc_auth_property* one = ::grpc_auth_property_iterator_next(&all);
  if (one == nullptr || ::grpc_auth_property_iterator_next(&all) != nullptr) return {};
  return {one->value, one->value_length};
}

// What gRPC's C library calls, for as long as it has a reference.
struct Fetcher {
  std::shared_ptr<LiveTls> tls;
  Mutex mutex;
  std::uint64_t given MUSTER_GUARDED_BY(mutex) = 0;  // the version that gRPC has

  static grpc_ssl_certificate_config_reload_status fetch(
      void* self, grpc_ssl_server_certificate_config** config) {
    return static_cast<Fetcher*>(self)->fetch(config);
  }
  grpc_ssl_certificate_config_reload_status fetch(grpc_ssl_server_certificate_config** config) {
    const LiveTls::Present now = tls->present();
    const MutexLock lock(mutex);
    if (given == now.version) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    const grpc_ssl_pem_key_cert_pair pair{now.own.key_pem.c_str(), now.own.certificate_pem.c_str()};
    *config = ::grpc_ssl_server_certificate_config_create(now.own.ca_pem.c_str(), &pair, 1);
    if (*config == nullptr) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_FAIL;
    given = now.version;
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }
};

void process_call(void* state, grpc_auth_context* context, const grpc_metadata* metadata,
                  size_t count, grpc_process_auth_metadata_done_cb done, void* user_data) {
  std::string_view method;
  for (size_t i = 0; i < count; ++i) {
    if (text_of(metadata[i].key) == ":path") method = text_of(metadata[i].value);
  }
  const grpc::Status status =
      (*static_cast<CallCheck*>(state))(context, certificate_in(context), method);
  done(user_data, nullptr, 0, nullptr, 0, static_cast<grpc_status_code>(status.error_code()),
       status.error_message().c_str());
}

class LiveCredentials final : public grpc::ServerCredentials {
 public:
  LiveCredentials(std::shared_ptr<LiveTls> tls, CallCheck check) {
    fetcher_.tls = std::move(tls);
    credentials_ = ::grpc_ssl_server_credentials_create_with_options(
        ::grpc_ssl_server_credentials_create_options_using_config_fetcher(
            GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY, Fetcher::fetch, &fetcher_));
    ::grpc_server_credentials_set_auth_metadata_processor(
        credentials_, {.process = process_call,
                       .destroy = [](void* state) { delete static_cast<CallCheck*>(state); },
                       .state = new CallCheck(std::move(check))});
  }
  LiveCredentials(const LiveCredentials&) = delete;
  LiveCredentials& operator=(const LiveCredentials&) = delete;
  ~LiveCredentials() override { ::grpc_server_credentials_release(credentials_); }

  // The check of the constructor is the only one.
  void SetAuthMetadataProcessor(
      const std::shared_ptr<grpc::AuthMetadataProcessor>& /*processor*/) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return ::grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  Fetcher fetcher_;
  grpc_server_credentials* credentials_;
};

}  // namespace

void LiveTls::replace(pki::Credentials own) {
  const MutexLock lock(mutex_);
  own_ = std::move(own);
  ++version_;
}

LiveTls::Present LiveTls::present() const {
  const MutexLock lock(mutex_);
  return {.own = own_, .version = version_};
}

std::shared_ptr<const void> connection_of(grpc::ServerContextBase& call) {
  return {::grpc_call_auth_context(call.c_call()), [](grpc_auth_context* context) {
            if (context != nullptr) ::grpc_auth_context_release(context);
          }};
}

std::shared_ptr<grpc::ServerCredentials> live_credentials(std::shared_ptr<LiveTls> tls,
                                                          CallCheck check) {
  return std::make_shared<LiveCredentials>(std::move(tls), std::move(check));
}

}  // namespace muster::rpc
