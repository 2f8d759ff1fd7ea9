#include "common/store/store_url.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "common/base/controls.h"
#include "common/base/host_port.h"

namespace muster::store {
namespace {

constexpr std::array<std::pair<Scheme, std::string_view>, 7> kSchemes = {{
    {Scheme::Obs, "obs"},
    {Scheme::S3, "s3"},
    {Scheme::Sftp, "sftp"},
    {Scheme::Webdav, "webdav"},
    {Scheme::Http, "http"},
    {Scheme::Https, "https"},
    {Scheme::Directory, "dir"},
}};
constexpr std::string_view kSeparator = "://";
constexpr std::size_t kBytesMost = 2048;

std::optional<Scheme> scheme_of(std::string_view text) {
  const std::size_t end = text.find(kSeparator);
  const auto found = std::ranges::find(kSchemes, text.substr(0, std::min(end, text.size())),
                                       &decltype(kSchemes)::value_type::second);
  if (end == std::string_view::npos || found == kSchemes.end()) return std::nullopt;
  return found->first;
}

bool has_only(std::string_view text, std::string_view marks) {
  return std::ranges::all_of(text, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           marks.contains(c);
  });
}

// Empty: it is one.
std::string place_problem(Scheme scheme, std::string_view place) {
  switch (scheme) {
    case Scheme::Obs:
    case Scheme::S3:
      // Bucket naming rules of S3 and OBS; older buckets may have capitals and '_'.
      if (place.size() < 3 || place.size() > 63 || !has_only(place, ".-_") ||
          !has_only(place.substr(0, 1), ""))
        return fmt::format("'{}' is no name of a bucket (3 to 63 letters, digits, '.', '-', '_')",
                           without_controls(place.substr(0, 64)));
      return {};
    case Scheme::Directory:
      if (place.size() > 63 || !has_only(place, ".-_") || !has_only(place.substr(0, 1), ""))
        return fmt::format("'{}' is no name (letters, digits, '.', '-', '_')",
                           without_controls(place.substr(0, 64)));
      return {};
    case Scheme::Sftp:
    case Scheme::Webdav:
    case Scheme::Http:
    case Scheme::Https: {
      if (place.contains('@'))
        return "a user, and above all a password, has no place in a URL; `muster store add` takes "
               "both";
      const std::string_view host =
          place.ends_with(']') ? place : place.substr(0, place.rfind(':'));
      if (!has_only(host, ".-_[]:") || host.empty())
        return fmt::format("'{}' is no HOST or HOST:PORT", without_controls(place.substr(0, 64)));
      if (host.size() == place.size()) return {};
      if (const auto port = parse_host_port(place, 1); !port) return port.error().message;
      return {};
    }
  }
  std::unreachable();
}

std::string path_problem(std::string_view path) {
  if (has_controls(path)) return "its path has control characters";
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    if (part == "." || part == "..")
      return fmt::format("its path has '{}'; write the path without it", part);
    if (part.empty() && !path.empty()) return "its path has '//'; write one '/'";
    at = end + 1;
  }
  return {};
}

// "obs:// s3:// ..."
std::string schemes_text() {
  std::string text;
  for (const auto& [scheme, name] : kSchemes)
    text += fmt::format("{}{}{}", text.empty() ? "" : " ", name, kSeparator);
  return text;
}

Result<Url> parse(std::string_view text, bool is_of_store) {
  if (text.size() > kBytesMost)
    return fail(ErrorCode::InvalidArgument,
                fmt::format("has {} bytes, at most {}", text.size(), kBytesMost));
  const auto scheme = scheme_of(text);
  if (!scheme)
    return fail(ErrorCode::InvalidArgument, fmt::format("begins with none of {}", schemes_text()));
  std::string_view rest = text.substr(name_of(*scheme).size() + kSeparator.size());
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  Url url{.scheme = *scheme, .place = std::string(rest.substr(0, slash)), .path = {}};
  rest.remove_prefix(slash);
  while (rest.starts_with('/')) rest.remove_prefix(1);
  while (rest.ends_with('/')) rest.remove_suffix(1);
  url.path = rest;
  if (url.place.empty()) {
    if (is_of_store && url.path.empty()) return url;
    return fail(ErrorCode::InvalidArgument, "names no bucket, host or directory behind '://'");
  }
  if (std::string wrong = place_problem(url.scheme, url.place); !wrong.empty())
    return fail(ErrorCode::InvalidArgument, std::move(wrong));
  if (std::string wrong = path_problem(url.path); !wrong.empty())
    return fail(ErrorCode::InvalidArgument, std::move(wrong));
  return url;
}

}  // namespace

std::string_view name_of(Scheme scheme) {
  return std::ranges::find(kSchemes, scheme, &decltype(kSchemes)::value_type::first)->second;
}

bool is_url(std::string_view text) { return scheme_of(text).has_value(); }

Result<Url> parse_url(std::string_view text) { return parse(text, false); }

Result<Url> parse_store_url(std::string_view text) { return parse(text, true); }

std::string text_of(const Url& url) {
  return fmt::format("{}{}{}{}{}", name_of(url.scheme), kSeparator, url.place,
                     url.path.empty() ? "" : "/", url.path);
}

std::size_t match(const Url& store, const Url& url) {
  if (store.scheme != url.scheme) return 0;
  if (store.place.empty()) return 1;
  if (store.place != url.place) return 0;
  const bool below = store.path.empty() || url.path == store.path ||
                     (url.path.starts_with(store.path) && url.path[store.path.size()] == '/');
  return below ? 2 + store.path.size() : 0;
}

}  // namespace muster::store
