#include "controller/api/bounded.h"

#include <fmt/format.h>

#include "common/base/controls.h"
#include "common/base/utf8.h"

namespace muster::controller {

Result<void> check_reason(std::string_view reason, std::string_view doing) {
  if (reason.size() > kReasonBytesMax)
    return fail(ErrorCode::InvalidArgument, fmt::format("{}: reason has {} bytes, at most {}",
                                                        doing, reason.size(), kReasonBytesMax));
  if (!is_utf8(reason))
    return fail(ErrorCode::InvalidArgument, fmt::format("{}: reason is not UTF-8 text", doing));
  if (has_controls(reason))
    return fail(
        ErrorCode::InvalidArgument,
        fmt::format("{}: reason has control characters in it; write it in one line", doing));
  return {};
}

std::string bounded(std::string_view text, std::size_t most) {
  constexpr std::string_view kCut = "...";
  if (text.size() <= most) return std::string(text);
  std::size_t end = most - kCut.size();
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80) --end;
  return std::string(text.substr(0, end)).append(kCut);
}

}  // namespace muster::controller
