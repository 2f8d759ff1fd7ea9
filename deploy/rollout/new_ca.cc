#include "deploy/rollout/new_ca.h"

#include <fmt/format.h>

#include "common/text/shell_word.h"

namespace muster::rollout {
namespace {

// The key is the first to go: without the others, the controller refuses to start, and does not
// make a second CA beside them.
constexpr std::string_view kMoveCa = R"sh(
old=$pki/before-$(date -u +%Y%m%dT%H%M%SZ)
for name in ca.key ca.pem next.pem old.pem; do
  [ -e "$pki/$name" ] || continue
  [ -d "$old" ] || mkdir -m 700 "$old"
  mv -f "$pki/$name" "$old/$name"
done
sync "$pki" 2>/dev/null || sync
)sh";

}  // namespace

Steps with_new_ca(Steps steps, Role role) {
  if (role == Role::Controller) {
    steps.start = true;
  } else {
    steps.issue = true;  // an agent reads the file at its next connection
  }
  return steps;
}

std::string move_ca_aside_script(const std::string& state_dir) {
  return "set -eu; LC_ALL=C; export LC_ALL\npki=" + shell_word(state_dir + "/pki") + "\n" +
         "[ -d \"$pki\" ] || exit 0\n" + std::string(kMoveCa);
}

Result<void> move_ca_aside(Host& host, const Places& places) {
  auto done = host.need(fmt::format("moving the CA aside on '{}'", host.name()),
                        move_ca_aside_script(places.state_dir));
  if (!done) return fail(std::move(done.error()));
  return {};
}

}  // namespace muster::rollout
