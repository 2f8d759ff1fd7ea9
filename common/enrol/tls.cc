#include "common/enrol/tls.h"

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "common/pki/certificate.h"
#include "common/pki/key.h"
#include "common/pki/openssl.h"
#include "common/pki/pem.h"

namespace muster::enrol {
namespace {

constexpr long kChainBytesMost = 16 << 10;  // of the controller's certificates

struct StoreFree {
  void operator()(X509_STORE* store) const { ::X509_STORE_free(store); }
  void operator()(X509_STORE_CTX* context) const { ::X509_STORE_CTX_free(context); }
};

TlsContext context_of(const SSL_METHOD* method) {
  TlsContext made(::SSL_CTX_new(method));
  SSL_CTX* context = made.get();
  if (context == nullptr || ::SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1 ||
      ::SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) != 1)
    return nullptr;
  ::SSL_CTX_set_options(context,
                        SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  ::SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  ::SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  ::SSL_CTX_set_max_cert_list(context, kChainBytesMost);
  return made;
}

std::optional<pki::Certificate> certificate_of(X509* x509) {
  const pki::BioOwner bio = pki::empty_bio();
  if (!bio || ::PEM_write_bio_X509(bio.get(), x509) != 1) return std::nullopt;
  auto certificate = pki::Certificate::from_pem(pki::text_in(bio.get()));
  if (!certificate) return std::nullopt;
  return std::move(*certificate);
}

// Signatures, uses and extensions of both certificates, but not their times.
bool is_of(const pki::Certificate& own, const pki::Certificate& ca) {
  const std::unique_ptr<X509_STORE, StoreFree> store(::X509_STORE_new());
  const std::unique_ptr<X509_STORE_CTX, StoreFree> check(::X509_STORE_CTX_new());
  if (!store || !check || ::X509_STORE_add_cert(store.get(), ca.get()) != 1 ||
      ::X509_STORE_CTX_init(check.get(), store.get(), own.get(), nullptr) != 1 ||
      ::X509_STORE_CTX_set_purpose(check.get(), X509_PURPOSE_SSL_SERVER) != 1)
    return false;
  // The CA may be an intermediate one: it is trusted by itself.
  ::X509_STORE_CTX_set_flags(check.get(), X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_NO_CHECK_TIME);
  return ::X509_verify_cert(check.get()) == 1;
}

// gRPC's port chooses this protocol (ALPN, RFC 7301) where a client offers it. The enrolment port
// has none, and chooses nothing.
constexpr std::string_view kOfGrpc = "h2";

bool is_grpc(X509_STORE_CTX* check) {
  const auto* connection = static_cast<const SSL*>(
      ::X509_STORE_CTX_get_ex_data(check, ::SSL_get_ex_data_X509_STORE_CTX_idx()));
  const unsigned char* chosen = nullptr;
  unsigned size = 0;
  if (connection != nullptr) ::SSL_get0_alpn_selected(connection, &chosen, &size);
  return std::string_view(reinterpret_cast<const char*>(chosen), size) == kOfGrpc;
}

// The empty text: it is the controller.
std::string why_not(X509* shown, STACK_OF(X509) * chain, const TrustedCas& trusted) {
  constexpr const char* kOther =
      "it shows no certificate of the CA that is wanted: it is another cluster's controller, or "
      "something between this machine and the controller answers for it; or the cluster's CA was "
      "changed meanwhile (`muster cert ca` on the controller's machine shows it): then a new token "
      "is needed, by `muster token create`, or by `muster node replace` for a node that it knows";
  const auto own = shown == nullptr ? std::nullopt : certificate_of(shown);
  if (!own) return "its certificate cannot be read";
  std::string fault = kOther;
  for (int i = 0; i < sk_X509_num(chain); ++i) {
    const auto ca = certificate_of(sk_X509_value(chain, i));
    if (!ca || std::ranges::find(trusted.digests, ca->digest()) == trusted.digests.end()) continue;
    if (!is_of(*own, *ca)) {
      fault = "its certificate is not a sound one of the cluster's CA";
      continue;
    }
    const auto identity = own->identity();
    if (!identity || identity->role != pki::Role::Controller)
      return "its certificate is not that of a controller";
    return {};
  }
  return fault;
}

int choose_context(SSL* connection, int* /*alert*/, void* argument) {
  const char* name = ::SSL_get_servername(connection, TLSEXT_NAMETYPE_host_name);
  SSL_CTX* wanted = name == nullptr ? nullptr : static_cast<ServerTls*>(argument)->of(name);
  if (wanted != nullptr) ::SSL_set_SSL_CTX(connection, wanted);
  return SSL_TLSEXT_ERR_OK;
}

int check_controller(X509_STORE_CTX* check, void* argument) {
  const pki::OpenSslErrors errors;
  auto& trusted = *static_cast<TrustedCas*>(argument);
  trusted.refused =
      is_grpc(check)
          ? "it is a port of gRPC, not an enrolment port: give the port of the controller's --enrol"
          : why_not(::X509_STORE_CTX_get0_cert(check), ::X509_STORE_CTX_get0_untrusted(check),
                    trusted);
  if (trusted.refused.empty()) return 1;
  ::X509_STORE_CTX_set_error(check, X509_V_ERR_CERT_UNTRUSTED);
  return 0;
}

}  // namespace

void TlsFree::operator()(SSL_CTX* context) const { ::SSL_CTX_free(context); }
void TlsFree::operator()(SSL* connection) const { ::SSL_free(connection); }

Result<TlsContext> server_context(const pki::Credentials& own) {
  constexpr std::string_view kDoing = "preparing TLS for the enrolment port";
  const pki::OpenSslErrors errors;
  const auto key = pki::Key::from_pem(own.key_pem);
  if (!key) return fail(Error(key.error()).in(kDoing));
  const auto certificate = pki::Certificate::from_pem(own.certificate_pem);
  if (!certificate) return fail(Error(certificate.error()).in(kDoing));
  const auto blocks = pki::pem_blocks(own.ca_pem);
  if (!blocks) return fail(Error(blocks.error()).in(kDoing));
  TlsContext context = context_of(::TLS_server_method());
  bool done = context && ::SSL_CTX_use_certificate(context.get(), certificate->get()) == 1 &&
              ::SSL_CTX_use_PrivateKey(context.get(), key->get()) == 1 &&
              ::SSL_CTX_set_num_tickets(context.get(), 0) == 1;
  for (const pki::PemBlock& block : *blocks) {
    const auto ca = pki::Certificate::from_pem(block.text);
    if (!ca) return fail(Error(ca.error()).in(kDoing));
    done = done && ::SSL_CTX_add1_chain_cert(context.get(), ca->get()) == 1;
  }
  if (!done) return pki::openssl_failed(ErrorCode::Internal, kDoing);
  return context;
}

std::string server_name_of(std::string_view ca_digest) {
  return "ca-" + std::string(ca_digest.substr(0, 40));
}

bool ask_for(SSL* connection, std::string_view ca_digest) {
  std::string name = server_name_of(ca_digest);
  return ::SSL_ctrl(connection, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                    name.data()) == 1;
}

Result<std::unique_ptr<ServerTls>> ServerTls::make(const std::vector<pki::Credentials>& own) {
  std::unique_ptr<ServerTls> made(new ServerTls);
  for (const pki::Credentials& one : own) {
    auto context = server_context(one);
    if (!context) return fail(std::move(context.error()));
    const auto signer = one.signer();
    if (!signer) return fail(Error(signer.error()));
    made->contexts_.emplace_back(server_name_of(*signer), std::move(*context));
  }
  SSL_CTX* first = made->get();
  // libssl's macros for this have casts of C.
  ::SSL_CTX_callback_ctrl(first, SSL_CTRL_SET_TLSEXT_SERVERNAME_CB,
                          reinterpret_cast<void (*)()>(choose_context));
  ::SSL_CTX_set_tlsext_servername_arg(first, made.get());
  return made;
}

SSL_CTX* ServerTls::of(std::string_view server_name) const {
  for (const auto& [name, context] : contexts_) {
    if (name == server_name) return context.get();
  }
  return nullptr;
}

Result<TlsContext> client_context(TrustedCas& trusted) {
  const pki::OpenSslErrors errors;
  TlsContext context = context_of(::TLS_client_method());
  if (!context) return pki::openssl_failed(ErrorCode::Internal, "preparing TLS to enrol");
  ::SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  ::SSL_CTX_set_cert_verify_callback(context.get(), check_controller, &trusted);
  const std::string offered = static_cast<char>(kOfGrpc.size()) + std::string(kOfGrpc);
  if (::SSL_CTX_set_alpn_protos(context.get(),
                                reinterpret_cast<const unsigned char*>(offered.data()),
                                static_cast<unsigned>(offered.size())) != 0)
    return pki::openssl_failed(ErrorCode::Internal, "preparing TLS to enrol");
  return context;
}

}  // namespace muster::enrol
