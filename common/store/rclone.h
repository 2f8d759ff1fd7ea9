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
  std::string config;       // the file's text, with a place for each file below
  std::string path;         // what follows "store:"
  std::string ca;           // PEM; empty: the host's own CAs. For --ca-cert
  std::string known_hosts;  // a line; empty: not sftp. `config` names it by kKnownHosts
  std::string proxy;        // for HTTPS_PROXY and HTTP_PROXY; empty: none
};
// Stands in `config` for the path of the file with Remote::known_hosts.
inline constexpr std::string_view kKnownHosts = "@known_hosts@";

// A sound profile (check_profile), of a store that is for the URL. InvalidArgument: the key is none
// of such a store.
Result<Remote> remote_of(const v1::StoreProfile& profile, const Url& url, const Key& key);

}  // namespace muster::store
