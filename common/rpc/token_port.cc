#include "common/rpc/token_port.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <string_view>
#include <utility>

namespace muster::rpc {
namespace {

bool same(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  return difference == 0;
}

std::string_view view(const grpc_slice& slice) {
  return {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)),
          GRPC_SLICE_LENGTH(slice)};  // NOLINT: what a slice is made of
}

// The state of one listener. gRPC's core owns it.
struct Expected {
  std::string authorization;  // empty: there is no token
};

// Returns nullptr if the call has the cluster's token.
const char* why_not(const Expected& expected, const grpc_metadata* metadata, std::size_t count) {
  if (expected.authorization.empty())
    return "calling the controller: this address needs a token, and the controller has none; it is "
           "a bug";
  for (std::size_t i = 0; i < count; ++i) {
    if (view(metadata[i].key) != "authorization") continue;
    if (same(view(metadata[i].value), expected.authorization)) return nullptr;
    return "calling the controller: the token is not this cluster's; check --token-file or "
           "MUSTER_TOKEN_FILE";
  }
  return "calling the controller: no token was sent; name the cluster's token file (--token-file "
         "or MUSTER_TOKEN_FILE)";
}

void check(void* state, grpc_auth_context*, const grpc_metadata* metadata, std::size_t count,
           grpc_process_auth_metadata_done_cb done, void* call) {
  const char* why = why_not(*static_cast<const Expected*>(state), metadata, count);
  done(call, nullptr, 0, nullptr, 0, why == nullptr ? GRPC_STATUS_OK : GRPC_STATUS_UNAUTHENTICATED,
       why);
}

void destroy(void* state) { delete static_cast<Expected*>(state); }

// gRPC's C++ interface accepts such a check only together with TLS; its core accepts it with any
// port.
class TokenCredentials final : public grpc::ServerCredentials {
 public:
  explicit TokenCredentials(std::string token) : token_(std::move(token)) {}
  // This class has a check of its own.
  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    grpc_server_credentials* credentials = grpc_insecure_server_credentials_create();
    auto* expected = new Expected{token_.empty() ? "" : "Bearer " + token_};
    grpc_server_credentials_set_auth_metadata_processor(
        credentials, {.process = check, .destroy = destroy, .state = expected});
    const int port = grpc_server_add_http2_port(server, address.c_str(), credentials);
    grpc_server_credentials_release(credentials);
    return port;
  }

  const std::string token_;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> token_credentials(std::string token) {
  return std::make_shared<TokenCredentials>(std::move(token));
}

}  // namespace muster::rpc
