#include "common/base/random_hex.h"

#include <sys/random.h>

#include <array>
#include <cerrno>

#include "common/base/assert.h"

namespace muster {

Result<std::string> random_hex(std::size_t bytes, std::string_view doing) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::array<unsigned char, 256> random{};  // the kernel gives so many at once
  MUSTER_ASSERT(bytes <= random.size(), "too many random bytes");
  if (::getrandom(random.data(), bytes, 0) != static_cast<ssize_t>(bytes))
    return fail_errno(std::string(doing) + ": asking for random bytes", errno);
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) {
    text += kDigits[random[i] >> 4U];
    text += kDigits[random[i] & 15U];
  }
  return text;
}

}  // namespace muster
