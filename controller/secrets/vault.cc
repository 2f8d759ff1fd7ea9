#include "controller/secrets/vault.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "common/base/random_hex.h"
#include "common/io/file.h"
#include "common/io/own_dir.h"
#include "common/io/unique_fd.h"
#include "common/pki/private_file.h"

namespace muster::controller {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kKeyPrefix = "muster-secrets-key-1:", kItemPrefix = "muster-secret-1\n";
constexpr std::size_t kItemNameBytes = 16, kKeyFileBytesMost = 256;
constexpr std::size_t kItemBytesMost = kSecretBytesMost + 256;
constexpr auto kUnnamedKept = std::chrono::hours(24 * 30);

bool is_item(const std::string& name) {
  return name.size() == 2 * kItemNameBytes &&
         name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

bool has_items(const fs::path& dir) {
  std::error_code error;
  for (fs::directory_iterator at(dir, error), end; !error && at != end; at.increment(error))
    if (is_item(at->path().filename().string())) return true;
  return false;
}

Result<pki::SealingKey> make_key(const fs::path& file) {
  auto key = pki::SealingKey::generate();
  if (!key) return key;
  const auto made =
      io::create_file(file, std::string(kKeyPrefix) + key->hex() + "\n", io::Durable::Yes);
  if (!made) return fail(Error(made.error()));
  if (!*made) return fail(ErrorCode::Conflict, "'" + file.string() + "' appeared meanwhile");
  return key;
}

Result<pki::SealingKey> read_key(const fs::path& file) {
  auto text = pki::read_private_file(file, kKeyFileBytesMost, "the key of the secrets",
                                     "make it readable for its owner alone (chmod 600)");
  if (!text) return fail(std::move(text.error()));
  std::string_view hex(*text);
  while (hex.ends_with('\n')) hex.remove_suffix(1);
  if (!hex.starts_with(kKeyPrefix))
    return fail(ErrorCode::InvalidArgument, "'" + file.string() + "' is no key of secrets");
  auto key = pki::SealingKey::from_hex(hex.substr(kKeyPrefix.size()));
  if (!key) return fail(std::move(key.error()).in("'" + file.string() + "'"));
  return key;
}

Result<pki::SealingKey> open_key(const fs::path& dir, const fs::path& file) {
  auto key = read_key(file);
  if (key || key.error().code != ErrorCode::NotFound) return key;
  if (has_items(dir))
    return fail(ErrorCode::DataLoss, "its key is missing: '" + file.string() +
                                         "'; put it back (--secrets-key), or move '" +
                                         dir.string() +
                                         "' away, and every user sets the secrets again");
  return make_key(file);
}

}  // namespace

Result<Vault> Vault::open(const fs::path& dir, const fs::path& key_file) {
  const std::string doing = "opening the secrets in '" + dir.string() + "'";
  if (auto made = io::make_dirs(dir, 0700); !made) return fail(std::move(made.error()).in(doing));
  if (auto own = io::check_own_dir(dir); !own) return fail(std::move(own.error()).in(doing));
  if (::chmod(dir.c_str(), 0700) != 0) return fail_errno(doing + ": making it private", errno);
  auto key = open_key(dir, key_file);
  if (!key) return fail(std::move(key.error()).in(doing));
  return Vault(dir, *std::move(key));
}

Result<std::string> Vault::put(std::string_view value) const {
  auto item = random_hex(kItemNameBytes, "naming a secret");
  if (!item) return item;
  auto sealed = key_.seal(value, *item);
  if (!sealed) return sealed;
  const auto made =
      io::create_file(dir_ / *item, std::string(kItemPrefix) + *sealed, io::Durable::Yes);
  if (!made) return fail(Error(made.error()).in("writing a secret"));
  if (!*made) return fail(ErrorCode::Conflict, "writing a secret: its random name is taken");
  return item;
}

Result<std::string> Vault::get(const std::string& item) const {
  const std::string doing = "reading secret item '" + item + "'";
  if (!is_item(item)) return fail(ErrorCode::InvalidArgument, doing + ": not a name of an item");
  const auto bytes = io::read_regular_file(dir_ / item, kItemBytesMost, io::Links::Own);
  if (!bytes) return fail(Error(bytes.error()).in(doing));
  if (!bytes->starts_with(kItemPrefix)) return fail(ErrorCode::DataLoss, doing + ": it is damaged");
  auto value = key_.open(std::string_view(*bytes).substr(kItemPrefix.size()), item);
  if (!value) return fail(std::move(value.error()).in(doing));
  return value;
}

Result<void> Vault::remove(const std::string& item) const {
  if (!is_item(item)) return {};
  const std::string doing = "removing secret item '" + item + "'";
  const io::UniqueFd dir(::open(dir_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir) return fail_errno(doing, errno);
  if (::unlinkat(dir.get(), item.c_str(), 0) != 0 && errno != ENOENT)
    return fail_errno(doing, errno);
  if (::fsync(dir.get()) != 0) return fail_errno(doing, errno);
  return {};
}

void Vault::remove_unnamed(const std::set<std::string>& named, WallTime now) const {
  std::error_code error;
  for (fs::directory_iterator at(dir_, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    struct stat status{};
    if (!is_item(name) || named.contains(name) || ::stat(at->path().c_str(), &status) != 0)
      continue;
    const WallTime written{std::chrono::seconds(status.st_mtim.tv_sec)};
    if (written + kUnnamedKept < now) (void)remove(name);
  }
}

}  // namespace muster::controller
