#include "common/store/rclone.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "common/base/controls.h"

namespace muster::store {
namespace {

constexpr std::string_view kPem = "-----BEGIN ";

bool is_pem(std::string_view text) { return text.starts_with(kPem); }

// rclone reads values with goconfig, which trims them (also of blanks beyond ASCII), takes quotes
// off and replaces %(NAME)s.
bool is_value(std::string_view text) {
  const auto is_edge = [](char c) { return c > ' ' && c < 0x7f; };
  return !has_controls(text) && is_edge(text.front()) && is_edge(text.back()) &&
         !text.starts_with('"') && !text.starts_with('`') && !text.contains("%(");
}

class Config {
 public:
  void put(std::string_view name, std::string_view value) {
    if (value.empty()) return;
    if (!is_value(value) && wrong_.empty()) wrong_ = name;
    text_ += fmt::format("{} = {}\n", name, value);
  }
  [[nodiscard]] Result<std::string> text() const {
    if (!wrong_.empty())
      return fail(
          ErrorCode::InvalidArgument,
          fmt::format("its {} has characters that rclone cannot be given: a control "
                      "character, a quote, or '%(', or one beyond ASCII or a blank at an edge",
                      wrong_));
    return text_;
  }

 private:
  std::string text_ = "[store]\n", wrong_;
};

// The lines of a secret: the key, and perhaps a session token.
Result<std::pair<std::string, std::string>> bucket_key(std::string_view plain) {
  while (plain.ends_with('\n') || plain.ends_with('\r')) plain.remove_suffix(1);
  const std::size_t end = std::min(plain.find('\n'), plain.size());
  std::string_view key = plain.substr(0, end);
  std::string_view token = plain.substr(std::min(end + 1, plain.size()));
  if (key.ends_with('\r')) key.remove_suffix(1);
  if (token.contains('\n'))
    return fail(ErrorCode::InvalidArgument,
                "its secret has more than two lines; it is the secret access key, and in a second "
                "line perhaps a session token");
  return std::pair(std::string(key), std::string(token));
}

Result<void> put_bucket(Config& config, const v1::StoreProfile& profile, const Url& url,
                        const Key& key) {
  config.put("type", "s3");
  // "HuaweiOBS" insists on addresses that have the bucket in the host's name.
  const bool aws = url.scheme == Scheme::S3 && profile.endpoint().empty();
  config.put("provider", aws                                                  ? "AWS"
                         : url.scheme == Scheme::Obs && !profile.path_style() ? "HuaweiOBS"
                                                                              : "Other");
  config.put("endpoint", profile.endpoint());
  config.put("region", profile.region());
  config.put("force_path_style", profile.path_style() ? "true" : "false");
  config.put("env_auth", "false");
  config.put("no_check_bucket", "true");  // it makes no bucket, and needs no right to
  if (profile.user().empty()) return {};  // anonymous
  const auto lines = bucket_key(key.plain);
  if (!lines) return fail(Error(lines.error()));
  config.put("access_key_id", profile.user());
  config.put("secret_access_key", lines->first);
  config.put("session_token", lines->second);
  return {};
}

void put_sftp(Config& config, const v1::StoreProfile& profile, const Url& url, const Key& key,
              const std::string& known_hosts) {
  std::string_view host = url.place;
  std::string_view port;
  if (const std::size_t colon = host.rfind(':');
      colon != std::string_view::npos && !host.ends_with(']')) {
    port = host.substr(colon + 1);
    host = host.substr(0, colon);
  }
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  config.put("type", "sftp");
  config.put("host", host);
  config.put("port", port);
  config.put("user", profile.user());
  if (is_pem(key.plain)) {
    std::string line;  // one, with the two characters \n for each end of a line
    for (const char c : key.plain)
      if (c == '\n') {
        line += "\\n";
      } else if (c != '\r') {
        line += c;
      }
    config.put("key_pem", line);
  } else {
    config.put("pass", key.obscured);
  }
  config.put("known_hosts_file", known_hosts);
  config.put("use_insecure_cipher", "false");
  config.put("shell_type", "none");         // it would run programs there
  config.put("disable_hashcheck", "true");  // the same
}

}  // namespace

bool needs_obscured(const v1::StoreProfile& profile, std::string_view plain) {
  const auto url = parse_store_url(profile.url());
  if (!url || plain.empty()) return false;
  return url->scheme == Scheme::Webdav || (url->scheme == Scheme::Sftp && !is_pem(plain));
}

Result<Remote> remote_of(const v1::StoreProfile& profile, const Url& url, const Key& key,
                         const std::string& known_hosts) {
  Config config;
  Remote remote{.config = {}, .path = url.path};
  switch (url.scheme) {
    case Scheme::Obs:
    case Scheme::S3:
      if (auto put = put_bucket(config, profile, url, key); !put)
        return fail(std::move(put.error()));
      remote.path = url.place + (url.path.empty() ? "" : "/" + url.path);
      break;
    case Scheme::Sftp:
      put_sftp(config, profile, url, key, known_hosts);
      remote.path = "/" + url.path;
      break;
    case Scheme::Webdav:
      config.put("type", "webdav");
      config.put("url", profile.endpoint().empty() ? "https://" + url.place : profile.endpoint());
      config.put("vendor", "other");
      config.put("user", profile.user());
      config.put("pass", key.obscured);
      break;
    case Scheme::Http:
    case Scheme::Https:
      config.put("type", "http");
      config.put("url", fmt::format("{}://{}", name_of(url.scheme), url.place));
      break;
    case Scheme::Directory:
      config.put("type", "local");
      config.put("copy_links", "true");  // else what is behind them would be missing
      remote.path = profile.endpoint() + (url.path.empty() ? "" : "/" + url.path);
      break;
  }
  auto text = config.text();
  if (!text) return fail(std::move(text.error()));
  remote.config = *std::move(text);
  return remote;
}

std::string parse_version(std::string_view output) {
  constexpr std::string_view kBegin = "rclone v";
  if (!output.starts_with(kBegin)) return {};
  output.remove_prefix(kBegin.size());
  return std::string(output.substr(0, output.find_first_not_of("0123456789.")));
}

bool is_new_enough(std::string_view version) {
  const auto next = [](std::string_view& text) {
    unsigned number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.starts_with('.')) text.remove_prefix(1);
    return error == std::errc() ? number : 0U;
  };
  std::string_view least = kRcloneLeast;
  const std::pair has{next(version), next(version)}, wanted{next(least), next(least)};
  return has >= wanted;
}

}  // namespace muster::store
