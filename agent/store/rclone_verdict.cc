#include "agent/store/rclone_verdict.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>

namespace muster::agent {
namespace {

bool has_one_of(std::string_view text, std::span<const std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return text.contains(word); });
}

// A URL, mostly in quotes, may hold any word: Get "https://host/AccessDenied/a": dial tcp ...
std::string without_urls(std::string_view message) {
  std::string text(message);
  for (std::size_t at = 0; (at = text.find("://", at)) != std::string::npos;) {
    const std::size_t end = std::min(text.find_first_of("\" \t\n", at), text.size());
    text.erase(at, end - at);
  }
  return text;
}

constexpr auto kRefused = std::to_array<std::string_view>(
    {"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken",
     "NoSuchBucket", "AuthorizationHeaderMalformed", "PermanentRedirect", "403 Forbidden",
     "401 Unauthorized", "Forbidden: Forbidden", "Unauthorized: Unauthorized",
     "unable to authenticate", "permission denied", "knownhosts: key mismatch",
     "knownhosts: key is unknown"});
constexpr auto kAbsent = std::to_array<std::string_view>(
    {"NoSuchKey", "404 Not Found", "directory not found", "object not found"});
constexpr auto kFull = std::to_array<std::string_view>(
    {"no space left on device", "disk quota exceeded", "too big for remaining disk space"});
constexpr auto kClock = std::to_array<std::string_view>(
    {"RequestTimeTooSkewed", "certificate has expired or is not yet valid"});
constexpr auto kLocal = std::to_array<std::string_view>(
    {"permission denied", "read-only file system", "input/output error"});
constexpr std::string_view kUnknownCa = "certificate signed by unknown authority";

}  // namespace

Verdict verdict_of(std::string_view message, std::string_view local, bool has_own_ca) {
  const std::string text = without_urls(message);
  if (has_one_of(text, kFull)) return Verdict::DiskFull;
  const bool is_local = !local.empty() && text.contains(local) && has_one_of(text, kLocal);
  if (is_local || has_one_of(text, kClock)) return Verdict::NodeFault;
  if (text.contains(kUnknownCa)) return has_own_ca ? Verdict::Refused : Verdict::NodeFault;
  if (text.contains("is a directory not a file")) return Verdict::Directory;
  if (has_one_of(text, kRefused)) return Verdict::Refused;
  if (has_one_of(text, kAbsent)) return Verdict::Absent;
  return Verdict::TryAgain;
}

}  // namespace muster::agent
