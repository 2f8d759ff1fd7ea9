#include <unistd.h>

#include <cerrno>

#include "deploy/ssh/session.h"

namespace muster::ssh {

std::string_view to_string(TransportKind kind) {
  switch (kind) {
    case TransportKind::Libssh2: return "libssh2";
    case TransportKind::OpenSsh: return "openssh";
  }
  return "";
}

Source Source::memory(std::string_view bytes) {
  Source source;
  source.bytes_ = bytes;
  return source;
}

Source Source::file(int fd) {
  Source source;
  source.fd_ = fd;
  return source;
}

Result<std::string_view> Source::next(std::size_t most) {
  if (fd_ < 0) {
    const std::string_view part = bytes_.substr(0, most);
    bytes_.remove_prefix(part.size());
    return part;
  }
  buffer_.resize(most);
  for (;;) {
    const ssize_t count = ::read(fd_, buffer_.data(), most);
    if (count >= 0) return std::string_view(buffer_).substr(0, static_cast<std::size_t>(count));
    if (errno != EINTR) return fail_errno("reading what the command gets as its input", errno);
  }
}

}  // namespace muster::ssh
