#include "worker/secrets.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "common/io/unique_fd.h"

namespace muster::worker {

Result<std::vector<std::string>> read_secrets(const rundir::v1::Launch& launch, int fd) {
  if (launch.secrets().empty()) return {};
  constexpr const char* kDoing = "reading the job's secrets";
  std::string bytes;
  std::array<char, 64 << 10> part{};
  for (;;) {
    const ssize_t count = ::read(fd, part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_errno(kDoing, errno);
    if (count == 0) break;
    bytes.append(part.data(), static_cast<std::size_t>(count));
    if (bytes.size() > kSecretsBytesMost)
      return fail(ErrorCode::ResourceExhausted, std::string(kDoing) + ": they are too large");
  }
  const io::UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null || ::dup2(null.get(), fd) < 0) return fail_errno(kDoing, errno);
  rundir::v1::SecretValues given;
  if (!given.ParseFromString(bytes) || given.values_size() != launch.secrets_size())
    return fail(ErrorCode::DataLoss,
                std::string(kDoing) + ": the agent has given " +
                    std::to_string(given.values_size()) + " of " +
                    std::to_string(launch.secrets_size()) +
                    "; is the container's tool one that passes standard input on (-i)?");
  std::vector<std::string> variables;
  for (int i = 0; i < launch.secrets_size(); ++i)
    variables.push_back(launch.secrets(i).variable() + "=" + given.values(i));
  return variables;
}

}  // namespace muster::worker
