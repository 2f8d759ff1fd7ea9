#include "deploy/ssh/known_hosts_file.h"

#include <fcntl.h>
#include <openssl/rand.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "common/io/file.h"
#include "common/io/unique_fd.h"
#include "deploy/ssh/host_names.h"

namespace muster::ssh {
namespace {

Result<std::string> new_salt() {
  std::string salt(kSaltBytes, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(salt.data()), static_cast<int>(salt.size())) != 1)
    return fail(ErrorCode::Internal, "hiding a host's name: there are no random bytes");
  return salt;
}

int lock(int fd) {
  int rc = 0;
  do rc = ::flock(fd, LOCK_EX);
  while (rc != 0 && errno == EINTR);
  return rc == 0 ? 0 : errno;
}

}  // namespace

Result<KnownHosts> read_known_hosts(const std::vector<std::string>& files) {
  KnownHosts hosts;
  for (const std::string& file : files) {
    const auto text = io::read_regular_file(file, kFileBytesMost);
    if (!text && text.error().code == ErrorCode::NotFound) continue;
    if (!text) return fail(Error(text.error()).in("reading the keys of known hosts"));
    hosts.add(file, *text);
  }
  return hosts;
}

Result<KeyAnswer> record_key(const std::string& file, const NewKey& key) {
  const std::string doing =
      "recording the key of host '" + std::string(key.name) + "' in '" + file + "'";
  std::string salt;
  if (key.hash_name) {
    auto made = new_salt();
    if (!made) return fail(std::move(made).error());
    salt = std::move(*made);
  }
  auto line = known_hosts_line(key.name, key.port, key.blob, salt);
  if (!line) return fail(std::move(line).error());

  const auto folder = std::filesystem::path(file).parent_path();
  if (!folder.empty()) {
    if (auto made = io::make_dirs(folder, 0700); !made)
      return fail(std::move(made).error().in(doing));
  }
  const io::UniqueFd fd(
      ::open(file.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0600));
  if (!fd) return fail_errno(doing, errno);
  if (const int error = lock(fd.get()); error != 0) return fail_errno(doing, error);

  const auto text = io::read_regular_file(file, kFileBytesMost);
  if (!text) return fail(Error(text.error()).in(doing));
  KnownHosts now;
  now.add(file, *text);
  KeyAnswer before = now.check(key.name, key.port, key.blob);
  if (before.state != KeyState::Unknown) return before;

  if (!text->empty() && text->back() != '\n') line->insert(0, "\n");
  std::size_t written = 0;
  if (const int error = io::write_all(fd.get(), *line, written); error != 0)
    return fail_errno(doing, error);
  if (::fsync(fd.get()) != 0) return fail_errno(doing, errno);
  if (text->empty()) {
    const io::UniqueFd directory(
        ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!directory || ::fsync(directory.get()) != 0) return fail_errno(doing, errno);
  }
  return before;
}

}  // namespace muster::ssh
