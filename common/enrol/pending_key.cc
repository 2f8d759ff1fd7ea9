#include "common/enrol/pending_key.h"

#include <string>
#include <system_error>

#include "common/io/file.h"
#include "common/pki/private_file.h"

namespace muster::enrol {
namespace {

constexpr std::size_t kPendingKeyBytesMost = 16 << 10;

}  // namespace

Result<pki::Key> pending_key(const std::filesystem::path& path, std::string_view maker) {
  const auto text = pki::read_private_file(path, kPendingKeyBytesMost, "the key to enrol with",
                                           "remove it; " + std::string(maker) + " makes a new one");
  if (!text && text.error().code != ErrorCode::NotFound) return fail(Error(text.error()));
  if (text) {
    if (auto key = pki::Key::from_pem(*text)) return key;
  }
  auto key = pki::Key::generate();
  if (!key) return key;
  const auto pem = key->private_pem();
  if (!pem) return fail(Error(pem.error()));
  if (auto kept = io::replace_file(path, *pem, io::Durable::Yes); !kept)
    return fail(std::move(kept.error()).in("keeping the key to enrol with"));
  return key;
}

void remove_pending_key(const std::filesystem::path& path) {
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
}

}  // namespace muster::enrol
