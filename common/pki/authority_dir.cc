#include "common/pki/authority_dir.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "common/io/file.h"
#include "common/pki/private_file.h"

namespace muster::pki {
namespace {

constexpr std::size_t kAuthorityBytesMax = 16 << 10;

struct AuthorityFiles {
  std::filesystem::path key;
  std::filesystem::path certificate;
};

// NotFound becomes no text.
Result<std::optional<std::string>> if_there(Result<std::string> text) {
  if (text) return std::optional(std::move(*text));
  if (text.error().code == ErrorCode::NotFound) return std::optional<std::string>();
  return fail(std::move(text.error()));
}

Result<Key> key_in(const AuthorityFiles& files, bool has_certificate) {
  const auto pem =
      if_there(read_private_file(files.key, kAuthorityBytesMax, "the CA's key", "chmod 600 it"));
  if (!pem) return fail(Error(pem.error()));
  if (*pem) {
    auto key = Key::from_pem(**pem);
    if (!key) return fail(std::move(key.error()).in("'" + files.key.string() + "'"));
    return key;
  }
  if (has_certificate)
    return fail(ErrorCode::DataLoss,
                "'" + files.certificate.string() + "' is there without its key '" +
                    files.key.string() + "'; restore the key from a backup, or remove '" +
                    files.certificate.string() +
                    "': then a new CA is made, and all certificates must be issued anew");
  auto made = Key::generate();
  if (!made) return made;
  const auto made_pem = made->private_pem();
  if (!made_pem) return fail(Error(made_pem.error()));
  if (auto written = io::replace_file(files.key, *made_pem, io::Durable::Yes); !written)
    return fail(std::move(written.error()));
  return made;
}

Result<Authority> open_files(const AuthorityFiles& files, std::string_view cluster, WallTime now) {
  const auto pem = if_there(io::read_regular_file(files.certificate, kAuthorityBytesMax));
  if (!pem) return fail(Error(pem.error()));
  auto key = key_in(files, pem->has_value());
  if (!key) return fail(std::move(key.error()));
  if (!*pem) {
    auto made = Authority::make(std::move(*key), cluster, now);
    if (!made) return made;
    if (auto written =
            io::replace_file(files.certificate, made->certificate().pem(), io::Durable::Yes);
        !written)
      return fail(std::move(written.error()));
    return made;
  }
  const auto key_pem = key->private_pem();
  if (!key_pem) return fail(Error(key_pem.error()));
  auto loaded = Authority::load(**pem, *key_pem);
  if (!loaded) return fail(std::move(loaded.error()).in("'" + files.certificate.string() + "'"));
  if (loaded->cluster() != cluster)
    return fail(ErrorCode::Conflict,
                "it is the CA of cluster '" + loaded->cluster() + "', this is '" +
                    std::string(cluster) +
                    "'; give the controller its own state directory, or move '" +
                    files.key.parent_path().string() +
                    "' away: then a new CA is made, and all certificates must be issued anew");
  return loaded;
}

}  // namespace

Result<void> prepare_authority_dir(const std::filesystem::path& dir) {
  if (auto made = io::make_dirs(dir, 0700); !made) return made;
  struct stat info{};
  if (::lstat(dir.c_str(), &info) != 0) return fail_errno("checking '" + dir.string() + "'", errno);
  if (!S_ISDIR(info.st_mode))
    return fail(ErrorCode::NotAllowed,
                "'" + dir.string() + "' is a link; put the directory itself there");
  const uid_t own = ::geteuid();
  if (info.st_uid != own && info.st_uid != 0)
    return fail(ErrorCode::NotAllowed,
                "'" + dir.string() + "' belongs to user " + std::to_string(info.st_uid) +
                    ", who may change what is in it; chown it to user " + std::to_string(own));
  if ((info.st_mode & 022) != 0)
    return fail(ErrorCode::NotAllowed, "others may write in '" + dir.string() + "'; chmod 700 it");
  return {};
}

Result<Authority> open_authority(const std::filesystem::path& dir, std::string_view cluster,
                                 WallTime now) {
  const std::string doing = "opening the CA in '" + dir.string() + "'";
  if (auto prepared = prepare_authority_dir(dir); !prepared)
    return fail(std::move(prepared.error()).in(doing));
  auto authority = open_files({.key = dir / "ca.key", .certificate = dir / "ca.pem"}, cluster, now);
  if (!authority) return fail(std::move(authority.error()).in(doing));
  return authority;
}

Result<Credentials> issue_controller(const Authority& authority, std::string_view cluster,
                                     WallTime now) {
  const std::string doing = "issuing the controller's certificate";
  const auto key = Key::generate();
  if (!key) return fail(Error(key.error()).in(doing));
  auto key_pem = key->private_pem();
  if (!key_pem) return fail(std::move(key_pem.error()).in(doing));
  Identity identity{.cluster = std::string(cluster), .role = Role::Controller, .name = {}};
  const auto certificate = authority.issue(*key, identity, now, Duration::max());
  if (!certificate) return fail(Error(certificate.error()).in(doing));
  return Credentials{.ca_pem = authority.certificate().pem(),
                     .certificate_pem = certificate->pem(),
                     .key_pem = std::move(*key_pem),
                     .identity = std::move(identity),
                     .not_before = certificate->not_before(),
                     .not_after = certificate->not_after()};
}

}  // namespace muster::pki
