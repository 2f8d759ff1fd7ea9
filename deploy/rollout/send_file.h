// Writes a file on a host, whole or not at all. Stateless functions over a Host; blocking.
//
// The bytes go to another name, are checked and synced, and the file is renamed. So a broken
// connection leaves the old file or the new one.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "common/base/error.h"
#include "common/text/shell_word.h"
#include "deploy/rollout/host.h"

namespace muster::rollout {

// A script with `set -e`, and the variables that it uses.
template <class... Pairs>
std::string with(std::string_view script, const Pairs&... pairs) {
  std::string text = "set -eu; LC_ALL=C; export LC_ALL; PATH=$PATH:/usr/sbin:/sbin; umask 022\n";
  ((text += fmt::format("{}={}\n", pairs.first, shell_word(pairs.second))), ...);
  return text + std::string(script);
}
using Set = std::pair<std::string_view, std::string_view>;

struct SentFile {
  std::string path;
  std::string_view mode = "644";
  std::string_view bytes;
  std::string_view sum;  // SHA-256 of the file
  bool gzip = false;     // `bytes` are compressed; the host has gzip
};
// The script `prepare` runs before: it makes directories, or ends with an error.
Result<void> send_file(Host& host, std::string_view doing, const std::string& prepare,
                       const SentFile& file);

}  // namespace muster::rollout
