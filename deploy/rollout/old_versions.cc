#include "deploy/rollout/old_versions.h"

#include <fmt/format.h>

#include "common/text/shell_word.h"

namespace muster::rollout {
namespace {

constexpr std::string_view kRemoveOne = R"sh(
remove_version() {
  [ "$(readlink "$link" 2>/dev/null)" = "${1##*/}" ] && return 0
  for p in muster muster-controller muster-agent muster-worker; do
    rm -f "$1/bin/$p" "$1/bin/$p.new" || return 1
  done
  rmdir "$1/bin" "$1" 2>/dev/null || :
}
)sh";

}  // namespace

Result<void> remove_versions(Host& host, const Places& places,
                             std::span<const std::string> versions) {
  std::string script =
      fmt::format("set -eu\nlink={}\n{}", shell_word(places.current()), kRemoveOne);
  for (const std::string& version : versions)
    script += fmt::format("remove_version {}\n",
                          shell_word(fmt::format("{}/{}", places.prefix, version)));
  auto done = host.need_long(fmt::format("removing old versions from '{}'", host.name()), script);
  if (!done) return fail(std::move(done.error()));
  return {};
}

}  // namespace muster::rollout
