#include "client/commands/call/secret_value.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "client/commands/call/hidden_line.h"
#include "common/io/file.h"

namespace muster::client {
namespace {

constexpr std::size_t kValueMost = 1 << 20;  // the controller's own bound is below it

Result<std::string> read_input() {
  std::string value;
  std::array<char, 4096> part{};
  for (;;) {
    const ssize_t count = ::read(STDIN_FILENO, part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_errno("reading the value from standard input", errno);
    if (count == 0) return value;
    value.append(part.data(), static_cast<std::size_t>(count));
    if (value.size() > kValueMost)
      return fail(ErrorCode::InvalidArgument,
                  "reading the value from standard input: it has more than 64 KiB");
  }
}

}  // namespace

Result<std::string> read_secret_value(const SecretValue& wanted) {
  if (wanted.file.empty() && ::isatty(STDIN_FILENO) == 1) {
    if (auto typed = ask_hidden(wanted.what)) return *std::move(typed);
    return fail(ErrorCode::InvalidArgument,
                "reading the value: nothing was typed; several lines come from a file: < FILE");
  }
  auto value = wanted.file.empty() ? read_input() : io::read_file(wanted.file, kValueMost);
  if (!value) return value;
  if (!wanted.exact && value->ends_with('\n')) value->pop_back();
  if (!wanted.exact && value->ends_with('\r')) value->pop_back();
  return value;
}

}  // namespace muster::client
