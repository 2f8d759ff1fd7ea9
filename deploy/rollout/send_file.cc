#include "deploy/rollout/send_file.h"

namespace muster::rollout {
namespace {

using namespace std::chrono_literals;
constexpr Duration kUploadTimeMost = 30min;

// From this size on a program that starts more slowly, and reads faster, makes the digest.
constexpr std::size_t kLargeBytes = std::size_t{1} << 20U;

// Standard input becomes the file $file with mode $mode. $unpack makes its bytes, $sum is their
// digest. A file of a broken upload is overwritten by the next one. openssl uses instructions for
// SHA-256, which sha256sum mostly does not (six times the time), and not every host has it. So it
// may only say that the digest is right; otherwise sha256sum decides.
constexpr std::string_view kReceive = R"sh(
new=$file.new
trap 'rm -f "$new"' EXIT
umask 077
$unpack > "$new"
has_sum() { case $("$@" < "$new" 2>/dev/null || :) in "$sum "*) ;; *) return 1 ;; esac; }
{ [ -n "$large" ] && has_sum openssl dgst -sha256 -r; } || has_sum sha256sum ||
  { echo "what arrived has another digest than what was sent" >&2; exit 1; }
chmod "$mode" "$new"
sync "$new" 2>/dev/null || sync
mv -f "$new" "$file"
trap - EXIT
)sh";

}  // namespace

Result<void> send_file(Host& host, std::string_view doing, const std::string& prepare,
                       const SentFile& file) {
  auto done = host.need(
      doing,
      with(prepare + std::string(kReceive), Set{"file", file.path}, Set{"mode", file.mode},
           Set{"sum", file.sum}, Set{"unpack", file.gzip ? "gzip -dc" : "cat"},
           Set{"large", file.bytes.size() >= kLargeBytes ? "yes" : ""}),
      file.bytes, kUploadTimeMost);
  if (!done) {
    add_room(done.error(), host, file.path);
    return fail(std::move(done.error()));
  }
  return {};
}

}  // namespace muster::rollout
