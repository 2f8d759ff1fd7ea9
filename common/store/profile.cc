#include "common/store/profile.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "common/base/controls.h"
#include "common/base/names.h"
#include "common/store/store_url.h"

namespace muster::store {
namespace {

bool is_bucket(Scheme scheme) { return scheme == Scheme::Obs || scheme == Scheme::S3; }

// "http://HOST[:PORT]" or https, without a user, a path or a query. Empty: it is one.
std::string origin_problem(std::string_view text) {
  std::string_view rest = text;
  for (const std::string_view scheme : {"https://", "http://"})
    if (rest.size() == text.size() && rest.starts_with(scheme)) rest.remove_prefix(scheme.size());
  if (rest.size() == text.size()) return "begins with neither https:// nor http://";
  while (rest.ends_with('/')) rest.remove_suffix(1);
  const auto url = parse_url("http://" + std::string(rest));
  if (!url) return url.error().message;
  if (!url->path.empty()) return "has a path behind the host; leave it out";
  return {};
}

std::string endpoint_problem(Scheme scheme, const std::string& endpoint) {
  switch (scheme) {
    case Scheme::Obs:
      if (endpoint.empty())
        return "is missing; https://obs.REGION.myhuaweicloud.com, or the cluster's own";
      return origin_problem(endpoint);
    case Scheme::S3:
    case Scheme::Webdav: return endpoint.empty() ? std::string() : origin_problem(endpoint);
    case Scheme::Directory:
      if (!endpoint.starts_with('/') || endpoint.size() > 1024 || has_controls(endpoint))
        return "is the absolute path of the directory, the same on every node";
      return {};
    case Scheme::Sftp:
    case Scheme::Http:
    case Scheme::Https: return endpoint.empty() ? "" : "is the URL itself; leave it out";
  }
  std::unreachable();
}

Result<void> wrong(std::string_view field, std::string_view what) {
  return fail(ErrorCode::InvalidArgument, fmt::format("{}: {}", field, what));
}

// A field that this scheme has no use for is no harmless one: somebody expects something of it.
Result<void> check_belongs(const v1::StoreProfile& profile, Scheme scheme) {
  const auto no = [&](std::string_view field) {
    return wrong(field, fmt::format("means nothing for {}://; leave it out", name_of(scheme)));
  };
  const bool by_http = scheme != Scheme::Sftp && scheme != Scheme::Directory;
  const bool logs_in = is_bucket(scheme) || scheme == Scheme::Sftp || scheme == Scheme::Webdav;
  if (!is_bucket(scheme) && !profile.region().empty()) return no("region");
  if (!is_bucket(scheme) && profile.path_style()) return no("path_style");
  if (!by_http && !profile.proxy().empty()) return no("proxy");
  if (!by_http && !profile.ca().empty()) return no("ca");
  if (!logs_in && !profile.user().empty()) return no("user");
  if (!logs_in && !profile.secret().empty()) return no("secret");
  if (scheme != Scheme::Sftp && !profile.host_key().empty()) return no("host_key");
  return {};
}

Result<void> check_login(const v1::StoreProfile& profile, Scheme scheme) {
  const std::string& user = profile.user();
  if (user.size() > 256 || has_controls(user)) return wrong("user", "is no name of a user");
  if (!profile.secret().empty() && !is_node_name(profile.secret()))
    return wrong("secret", "is no name of a secret");
  if (user.empty() && !profile.secret().empty())
    return wrong("user", is_bucket(scheme) ? "is missing: the access key ID" : "is missing");
  if (is_bucket(scheme) && !user.empty() && profile.secret().empty())
    return wrong("secret", "is missing: the name of the secret with the secret access key");
  if (scheme == Scheme::Sftp && (user.empty() || profile.secret().empty()))
    return wrong(user.empty() ? "user" : "secret", "is missing; sftp lets nobody in without");
  return {};
}

}  // namespace

Result<void> check_profile(const v1::StoreProfile& profile) {
  if (profile.ca().size() > kCaBytesMost)
    return wrong("ca", fmt::format("has {} bytes, at most {}; leave out certificates that the "
                                   "endpoint does not need",
                                   profile.ca().size(), kCaBytesMost));
  if (const std::size_t bytes = profile.ByteSizeLong() - profile.ca().size();
      bytes > kProfileBytesMost)
    return wrong("profile", fmt::format("has {} bytes, at most {}", bytes, kProfileBytesMost));
  const auto url = parse_store_url(profile.url());
  if (!url) return wrong("url", url.error().message);
  if (auto belongs = check_belongs(profile, url->scheme); !belongs) return belongs;
  if (const std::string why = endpoint_problem(url->scheme, profile.endpoint()); !why.empty())
    return wrong("endpoint", why);
  if (const std::string& region = profile.region();
      region.size() > 63 || (!region.empty() && !is_node_name(region)))
    return wrong("region", "is no name of a region (cn-north-4)");
  if (!profile.proxy().empty())
    if (const std::string why = origin_problem(profile.proxy()); !why.empty())
      return wrong("proxy", why);
  if (!profile.ca().empty() && !profile.ca().contains("-----BEGIN CERTIFICATE-----"))
    return wrong("ca", "has no certificate (PEM)");
  // Its endpoint is the directory itself.
  if (url->scheme == Scheme::Directory && (url->place.empty() || !url->path.empty()))
    return wrong("url", "is dir://NAME, without a path");
  // A URL that somebody makes up would say whom the password is sent to.
  const bool has_password =
      url->scheme == Scheme::Sftp || (url->scheme == Scheme::Webdav && !profile.user().empty());
  if (has_password && url->place.empty() && profile.endpoint().empty())
    return wrong("url", fmt::format("names no host; a store with a user is for one: {}://HOST",
                                    name_of(url->scheme)));
  if (url->scheme == Scheme::Sftp && profile.host_key().empty())
    return wrong("host_key",
                 "is missing; ssh-keyscan prints it, and the person who runs that host knows "
                 "whether it is the right one");
  return check_login(profile, url->scheme);
}

}  // namespace muster::store
