#include "common/pki/credentials.h"

#include <openssl/x509.h>
#include <unistd.h>

#include <system_error>
#include <vector>

#include "common/io/file.h"
#include "common/pki/certificate.h"
#include "common/pki/key.h"
#include "common/pki/pem.h"
#include "common/pki/printable.h"
#include "common/pki/private_file.h"

namespace muster::pki {
namespace {

constexpr std::size_t kCredentialsBytesMax = 64 << 10;

std::unexpected<Error> unusable(std::string what) {
  return fail(ErrorCode::InvalidArgument, "reading credentials: " + std::move(what));
}

std::string text_of_file(const Credentials& credentials) {
  return credentials.key_pem + credentials.certificate_pem + credentials.ca_pem;
}

std::unexpected<Error> is_there(const std::filesystem::path& path, std::string_view what) {
  return fail(ErrorCode::Conflict,
              "writing " + std::string(what) + " to '" + path.string() +
                  "': the file is there already; name another one, or remove it");
}

}  // namespace

Result<std::vector<std::string>> Credentials::ca_digests() const {
  const auto blocks = pem_blocks(ca_pem);
  if (!blocks) return fail(Error(blocks.error()));
  std::vector<std::string> digests;
  for (const PemBlock& block : *blocks) {
    const auto ca = Certificate::from_pem(block.text);
    if (!ca) return fail(Error(ca.error()));
    digests.push_back(ca->digest());
  }
  return digests;
}

Result<std::string> Credentials::signer() const {
  const auto own = Certificate::from_pem(certificate_pem);
  if (!own) return fail(Error(own.error()));
  const auto blocks = pem_blocks(ca_pem);
  if (!blocks) return fail(Error(blocks.error()));
  for (const PemBlock& block : *blocks) {
    const auto ca = Certificate::from_pem(block.text);
    if (ca && own->is_signed_by(*ca)) return ca->digest();
  }
  return fail(ErrorCode::InvalidArgument,
              "no CA in it has signed the certificate of " + text_of(identity));
}

Result<void> Credentials::check_time(WallTime now) const {
  return pki::check_time(identity, not_before, not_after, now);
}

Result<Credentials> parse_credentials(std::string_view text) {
  const OpenSslErrors errors;
  const auto blocks = pem_blocks(text);
  if (!blocks) return unusable(blocks.error().message);
  std::vector<std::string_view> keys, certificates;
  for (const PemBlock& block : *blocks) {
    if (block.label == "CERTIFICATE") {
      certificates.push_back(block.text);
    } else if (is_private_key(block)) {
      keys.push_back(block.text);
    } else {
      return unusable("a PEM block '" + printable(block.label) + "' does not belong there");
    }
  }
  if (keys.size() != 1)
    return unusable("there must be one private key, and there are " + std::to_string(keys.size()));
  if (certificates.size() < 2)
    return unusable(
        "there must be two certificates at least, the owner's and then the CA's, and there are " +
        std::to_string(certificates.size()));

  auto key = Key::from_pem(keys.front());
  if (!key) return unusable(key.error().message);
  auto certificate = Certificate::from_pem(certificates.front());
  if (!certificate) return unusable(certificate.error().message);
  auto identity = certificate->identity();
  if (!identity) return unusable(identity.error().message);
  if (::X509_check_private_key(certificate->get(), key->get()) != 1)
    return unusable("the private key is not that of the certificate of " + text_of(*identity));
  auto key_pem = key->private_pem();
  if (!key_pem) return unusable(key_pem.error().message);

  Credentials credentials{.ca_pem = {},
                          .certificate_pem = certificate->pem(),
                          .key_pem = std::move(*key_pem),
                          .identity = std::move(*identity),
                          .not_before = certificate->not_before(),
                          .not_after = certificate->not_after()};
  bool signed_by_one = false;
  for (std::size_t i = 1; i < certificates.size(); ++i) {
    auto ca = Certificate::from_pem(certificates[i]);
    if (!ca) return unusable(ca.error().message);
    if (!ca->is_ca())
      return unusable("certificate " + std::to_string(i + 1) + ", '" +
                      printable(ca->common_name()) + "', is not that of a CA");
    signed_by_one = signed_by_one || certificate->is_signed_by(*ca);
    credentials.ca_pem += ca->pem();
  }
  if (!signed_by_one)
    return unusable("no CA in it has signed the certificate of " + text_of(credentials.identity));
  return credentials;
}

Result<Credentials> read_credentials(const std::filesystem::path& path) {
  const auto text = read_private_file(path, kCredentialsBytesMax, "the credentials file",
                                      "chmod 600 it, or make a new one");
  if (!text) return fail(Error(text.error()));
  auto credentials = parse_credentials(*text);
  if (!credentials)
    return fail(std::move(credentials.error()).in("in the file '" + path.string() + "'"));
  return credentials;
}

Result<void> check_creatable(const std::filesystem::path& path, std::string_view what) {
  if (path == "-")
    return fail(
        ErrorCode::InvalidArgument,
        "writing " + std::string(what) + " to '-': that is no file; name one (it gets mode 0600)");
  std::error_code ignored;
  if (std::filesystem::exists(std::filesystem::symlink_status(path, ignored)))
    return is_there(path, what);
  const std::filesystem::path dir = path.has_parent_path() ? path.parent_path() : ".";
  const std::string doing = "writing " + std::string(what) + " to '" + path.string() + "': ";
  if (!std::filesystem::is_directory(dir, ignored))
    return fail(ErrorCode::NotFound, doing + "there is no directory '" + dir.string() +
                                         "'; make it, or name another file");
  if (::access(dir.c_str(), W_OK | X_OK) != 0)
    return fail(ErrorCode::NotAllowed, doing + "you may not write in the directory '" +
                                           dir.string() + "'; name another file");
  return {};
}

Result<void> create_credentials(const std::filesystem::path& path, const Credentials& credentials) {
  const auto created = io::create_file(path, text_of_file(credentials), io::Durable::Yes);
  if (!created)
    return fail(Error(created.error()).in("writing credentials to '" + path.string() + "'"));
  if (!*created) return is_there(path, "credentials");
  return {};
}

Result<void> replace_credentials(const std::filesystem::path& path,
                                 const Credentials& credentials) {
  if (auto replaced = io::replace_file(path, text_of_file(credentials), io::Durable::Yes);
      !replaced)
    return fail(std::move(replaced.error()).in("writing credentials"));
  return {};
}

}  // namespace muster::pki
