#include "deploy/rollout/send_file.h"

namespace muster::rollout {
namespace {

using namespace std::chrono_literals;
constexpr Duration kUploadTimeMost = 30min;

// Standard input becomes the file $file with mode $mode. $unpack makes its bytes, $sum is their
// digest. A file of a broken upload is overwritten by the next one.
constexpr std::string_view kReceive = R"sh(
new=$file.new
trap 'rm -f "$new"' EXIT
(umask 077; $unpack > "$new")
[ "$(sha256sum < "$new" | cut -c1-64)" = "$sum" ] ||
  { echo "what arrived has another digest than what was sent" >&2; exit 1; }
chmod "$mode" "$new"
sync "$new" 2>/dev/null || sync
mv -f "$new" "$file"
)sh";

}  // namespace

Result<void> send_file(Host& host, std::string_view doing, const std::string& prepare,
                       const SentFile& file) {
  auto done = host.need(
      doing,
      with(prepare + std::string(kReceive), Set{"file", file.path}, Set{"mode", file.mode},
           Set{"sum", file.sum}, Set{"unpack", file.gzip ? "gzip -dc" : "cat"}),
      file.bytes, kUploadTimeMost);
  if (!done) return fail(std::move(done.error()));
  return {};
}

}  // namespace muster::rollout
