#include "common/pki/authority_files.h"

#include <fcntl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <memory>
#include <vector>

#include "common/io/file.h"
#include "common/io/unique_fd.h"
#include "common/pki/authority_dir.h"
#include "common/pki/key.h"
#include "common/pki/pem.h"
#include "common/pki/private_file.h"

namespace muster::pki {
namespace {

constexpr std::size_t kFileBytesMost = 64 << 10;
constexpr std::size_t kCaPemBytesMost = 4 << 10;
constexpr Duration kLifeLeast = std::chrono::hours(24 * 30);

struct ChainFree {
  void operator()(X509_STORE* store) const { ::X509_STORE_free(store); }
  void operator()(X509_STORE_CTX* context) const { ::X509_STORE_CTX_free(context); }
};

// Certificates by their digest, and keys by that of their public half.
struct AuthorityParts {
  std::map<std::string, std::string> certificates;
  std::map<std::string, std::string> keys;
  std::map<std::string, std::set<std::string>> files;  // which certificates a file has
};

// A file that is not there has nothing. Blocks that do not read are passed over: what is missing
// then is named by whoever needs it.
Result<void> collect_parts(const std::filesystem::path& dir, const char* name, bool is_private,
                           AuthorityParts& parts) {
  const std::filesystem::path path = dir / name;
  const auto text =
      is_private ? read_private_file(path, kFileBytesMost, "the keys of a CA", "chmod 600 it")
                 : io::read_regular_file(path, kFileBytesMost);
  if (!text) {
    if (text.error().code == ErrorCode::NotFound) return {};
    return fail(Error(text.error()));
  }
  const auto blocks = pem_blocks(*text);
  if (!blocks) return fail(Error(blocks.error()).in("'" + path.string() + "'"));
  for (const PemBlock& block : *blocks) {
    if (is_private_key(block)) {
      if (const auto key = Key::from_pem(block.text))
        parts.keys[key->public_digest()] = std::string(block.text) + "\n";
    } else if (const auto certificate = Certificate::from_pem(block.text)) {
      parts.certificates[certificate->digest()] = certificate->pem();
      parts.files[name].insert(certificate->digest());
    }
  }
  return {};
}

// NotFound: a part is missing.
Result<Authority> assemble(const AuthorityParts& parts, const std::string& digest,
                           std::string_view cluster) {
  const auto pem = parts.certificates.find(digest);
  if (pem == parts.certificates.end())
    return fail(ErrorCode::NotFound, "there is no certificate of CA " + digest);
  const auto certificate = Certificate::from_pem(pem->second);
  if (!certificate) return fail(Error(certificate.error()));
  const auto key = parts.keys.find(certificate->public_digest());
  if (key == parts.keys.end()) return fail(ErrorCode::NotFound, "there is no key of CA " + digest);
  return Authority::adopt(pem->second, key->second, cluster);
}

std::optional<Authority> assembled(const AuthorityParts& parts, const std::string& digest,
                                   std::string_view cluster) {
  if (digest.empty()) return std::nullopt;
  auto authority = assemble(parts, digest, cluster);
  return authority ? std::optional(std::move(*authority)) : std::nullopt;
}

Result<void> write_pair(const std::filesystem::path& path, const Authority& authority) {
  const auto key = authority.key_pem();
  if (!key) return fail(Error(key.error()));
  return io::replace_file(path, *key + authority.certificate().pem(), io::Durable::Yes);
}

Result<void> remove_durably(const std::filesystem::path& path) {
  if (::unlink(path.c_str()) != 0) {
    if (errno == ENOENT) return {};
    return fail_errno("removing '" + path.string() + "'", errno);
  }
  const io::UniqueFd dir(
      ::open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!dir || ::fsync(dir.get()) != 0) return fail_errno("removing '" + path.string() + "'", errno);
  return {};
}

bool has(const AuthorityParts& parts, const char* file, const std::string& digest) {
  const auto found = parts.files.find(file);
  return found != parts.files.end() && found->second.contains(digest);
}

// ca.key and ca.pem become those of the CA that signs. First the pair that is there goes to the
// file of its role: to old.pem, or to next.pem if the journal has lost that it signed.
Result<void> put_in_place(const std::filesystem::path& dir, const AuthorityPlan& plan,
                          AuthorityParts& parts, const Authority& signing,
                          std::string_view cluster) {
  for (const auto& [file, digest] : {std::pair{"next.pem", &plan.next}, {"old.pem", &plan.old}}) {
    if (has(parts, file, *digest)) continue;
    if (const auto kept = assembled(parts, *digest, cluster)) {
      if (auto written = write_pair(dir / file, *kept); !written) return written;
      parts.files[file] = {*digest};
    }
  }
  const auto key = signing.key_pem();
  if (!key) return fail(Error(key.error()));
  if (auto written = io::replace_file(dir / "ca.key", *key, io::Durable::Yes); !written)
    return written;
  return io::replace_file(dir / "ca.pem", signing.certificate().pem(), io::Durable::Yes);
}

// Of what the plan does not name any more.
Result<void> remove_rest(const std::filesystem::path& dir, const AuthorityPlan& plan,
                         const AuthorityParts& parts) {
  if (plan.next.empty() || !has(parts, "next.pem", plan.next)) {
    if (auto removed = remove_durably(dir / "next.pem"); !removed) return removed;
  }
  bool old_is_over = false;
  if (const auto found = parts.files.find("old.pem"); found != parts.files.end()) {
    for (const std::string& digest : found->second)
      old_is_over = old_is_over || plan.dropped.contains(digest);
  }
  return old_is_over ? remove_durably(dir / "old.pem") : Result<void>();
}

Result<AuthorityParts> all_parts(const std::filesystem::path& dir) {
  AuthorityParts parts;
  for (const auto& [name, is_private] :
       {std::pair{"ca.pem", false}, {"ca.key", true}, {"next.pem", true}, {"old.pem", true}}) {
    if (auto collected = collect_parts(dir, name, is_private, parts); !collected)
      return fail(std::move(collected.error()));
  }
  return parts;
}

// The files are ahead of a journal that has lost its end, and with it that the next CA signs and
// that the one before was dropped: that one's files go only after its last step was durable.
bool next_took_over(const AuthorityParts& parts, const AuthorityPlan& plan,
                    std::string_view cluster) {
  return has(parts, "ca.pem", plan.next) && assembled(parts, plan.next, cluster) &&
         !parts.certificates.contains(plan.signing);
}

// A person has removed the files of the CA that signed: a new one takes its place, and nothing of
// before counts. It is not enough that one of its files is lost.
Result<AuthoritySet> settle_new(const std::filesystem::path& dir, std::string_view cluster,
                                const AuthorityPlan& plan, const AuthorityParts& parts,
                                WallTime now) {
  constexpr std::string_view kHelp =
      "restore the files of this directory from a backup (ca.key, ca.pem, next.pem, old.pem), or "
      "remove all of them: then a new CA is made, and all certificates must be issued anew";
  if (parts.certificates.contains(plan.signing))
    return fail(ErrorCode::DataLoss, "the key of CA " + plan.signing + ", which signs the " +
                                         "certificates, is in no file; " + std::string(kHelp));
  auto made = open_authority(dir, cluster, now);
  if (!made && made.error().code == ErrorCode::InvalidArgument)  // an imported one, for example
    return fail(ErrorCode::DataLoss, made.error().message + "; CA " + plan.signing +
                                         " signs the certificates, and is in no file; " +
                                         std::string(kHelp));
  if (!made) return fail(std::move(made.error()));
  const std::string& digest = made->certificate().digest();
  if (digest == plan.next || digest == plan.old || plan.dropped.contains(digest))
    return fail(ErrorCode::DataLoss, "the files are of CA " + digest + ", and CA " + plan.signing +
                                         " signs the certificates; " + std::string(kHelp));
  for (const char* name : {"next.pem", "old.pem"}) {
    if (auto removed = remove_durably(dir / name); !removed)
      return fail(std::move(removed.error()));
  }
  return AuthoritySet{.signing = std::move(*made), .next = {}, .old = {}};
}

Result<AuthoritySet> settle(const std::filesystem::path& dir, std::string_view cluster,
                            const AuthorityPlan& plan, WallTime now) {
  auto parts = all_parts(dir);
  if (!parts) return fail(Error(parts.error()));
  auto signing = assemble(*parts, plan.signing, cluster);
  if (!signing && signing.error().code != ErrorCode::NotFound)
    return fail(std::move(signing.error()));
  if (!signing && next_took_over(*parts, plan, cluster)) {
    AuthorityPlan ahead{.signing = plan.next, .next = {}, .old = {}, .dropped = plan.dropped};
    ahead.dropped.insert(plan.signing);
    return settle(dir, cluster, ahead, now);
  }
  if (!signing) return settle_new(dir, cluster, plan, *parts, now);
  const auto key = Key::from_pem(*signing->key_pem());
  const auto in_place = io::read_regular_file(dir / "ca.pem", kFileBytesMost);
  const auto key_in_place =
      read_private_file(dir / "ca.key", kFileBytesMost, "the CA's key", "chmod 600 it");
  const auto same_key =
      key_in_place ? Key::from_pem(*key_in_place) : Result<Key>(fail(Error(key_in_place.error())));
  const bool is_in_place = in_place && *in_place == signing->certificate().pem() && same_key &&
                           key && same_key->public_digest() == key->public_digest();
  if (!is_in_place) {
    if (auto put = put_in_place(dir, plan, *parts, *signing, cluster); !put)
      return fail(std::move(put.error()));
  }
  if (auto removed = remove_rest(dir, plan, *parts); !removed)
    return fail(std::move(removed.error()));
  return AuthoritySet{.signing = std::move(*signing),
                      .next = assembled(*parts, plan.next, cluster),
                      .old = assembled(*parts, plan.old, cluster)};
}

// By the CA's certificate alone: whoever trusts it may have no other.
bool passes(const Certificate& issued, const Certificate& ca, int purpose) {
  const std::unique_ptr<X509_STORE, ChainFree> store(::X509_STORE_new());
  const std::unique_ptr<X509_STORE_CTX, ChainFree> check(::X509_STORE_CTX_new());
  if (!store || !check || ::X509_STORE_add_cert(store.get(), ca.get()) != 1 ||
      ::X509_STORE_CTX_init(check.get(), store.get(), issued.get(), nullptr) != 1 ||
      ::X509_STORE_CTX_set_purpose(check.get(), purpose) != 1)
    return false;
  ::X509_STORE_CTX_set_flags(check.get(), X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_NO_CHECK_TIME);
  return ::X509_verify_cert(check.get()) == 1;
}

}  // namespace

Result<AuthoritySet> settle_authorities(const std::filesystem::path& dir, std::string_view cluster,
                                        const AuthorityPlan& plan, WallTime now) {
  const std::string doing = "opening the CA in '" + dir.string() + "'";
  if (plan.signing.empty()) {
    auto only = open_authority(dir, cluster, now);
    if (!only) return fail(std::move(only.error()));
    // Of a change that was cut off before it was decided.
    if (auto removed = remove_durably(dir / "next.pem"); !removed)
      return fail(std::move(removed.error()).in(doing));
    return AuthoritySet{.signing = std::move(*only), .next = {}, .old = {}};
  }
  if (auto prepared = prepare_authority_dir(dir); !prepared)
    return fail(std::move(prepared.error()).in(doing));
  auto settled = settle(dir, cluster, plan, now);
  if (!settled) return fail(std::move(settled.error()).in(doing));
  return settled;
}

Result<void> keep_next(const std::filesystem::path& dir, const Authority& next) {
  if (auto written = write_pair(dir / "next.pem", next); !written)
    return fail(std::move(written.error()).in("keeping the next CA"));
  return {};
}

Result<void> check_usable(const Authority& authority, WallTime now) {
  const OpenSslErrors errors;
  const Certificate& ca = authority.certificate();
  if (const std::size_t size = ca.pem().size(); size > kCaPemBytesMost)
    return fail(ErrorCode::InvalidArgument,
                "its certificate has " + std::to_string(size) + " bytes (PEM), and may have " +
                    std::to_string(kCaPemBytesMost) +
                    "; take one with a shorter name and fewer extensions");
  if (ca.not_after() < now + kLifeLeast)
    return fail(ErrorCode::InvalidArgument,
                "it ends at " + utc_text(ca.not_after()) +
                    ", and no certificate outlives its CA; take one that lives for 30 days at "
                    "least, better for years");
  const auto key = Key::generate();
  if (!key) return fail(Error(key.error()));
  for (const Role role : {Role::Controller, Role::Node, Role::User}) {
    const bool server = role == Role::Controller;
    const auto issued = authority.issue(
        *key, {.cluster = authority.cluster(), .role = role, .name = server ? "" : "n1"}, now,
        std::chrono::hours(24));
    if (!issued) return fail(Error(issued.error()));
    if (!passes(*issued, ca, server ? X509_PURPOSE_SSL_SERVER : X509_PURPOSE_SSL_CLIENT))
      return fail(ErrorCode::InvalidArgument,
                  "certificates that it signs do not pass the checks of TLS: has it constraints of "
                  "names or of uses? A CA for muster has none");
  }
  return {};
}

}  // namespace muster::pki
