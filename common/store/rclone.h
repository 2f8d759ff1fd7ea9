// What rclone (1.60) must be told to reach a store. Pure.
//
// The configuration has one remote, "store". It is given to rclone as a file in memory: it has the
// key, and a command line is for everybody to see. rclone's own files and variables are left out by
// a clean environment. Sources: https://rclone.org/s3/, /sftp/, /webdav/, /http/, and its --config.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/store/store_url.h"
#include "muster/v1/store_service.pb.h"

namespace muster::store {

// What the secret of a store has.
struct Key {
  std::string plain;
  std::string obscured;  // as `rclone obscure` prints it; empty where needs_obscured() is false
};

// rclone takes passwords only as `rclone obscure` writes them. It protects nothing.
[[nodiscard]] bool needs_obscured(const v1::StoreProfile& profile, std::string_view plain);

struct Remote {
  std::string config;  // the text of the configuration
  std::string path;    // what follows "store:"
};

// A sound profile (check_profile), of a store that is for the URL. `known_hosts`: path of a file
// with the profile's host_key. InvalidArgument: the key is none of such a store.
Result<Remote> remote_of(const v1::StoreProfile& profile, const Url& url, const Key& key,
                         const std::string& known_hosts);

// Options and settings that muster uses are of this release. An older one would leave out settings
// that it does not know, such as known_hosts_file.
inline constexpr std::string_view kRcloneLeast = "1.60";
// "1.60.1" from what `rclone version` prints; empty: it prints something else.
std::string parse_version(std::string_view output);
[[nodiscard]] bool is_new_enough(std::string_view version);

}  // namespace muster::store
