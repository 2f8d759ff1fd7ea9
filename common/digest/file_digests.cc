#include "common/digest/file_digests.h"

#include <openssl/evp.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <optional>
#include <vector>

#include "common/digest/hex.h"

namespace muster {
namespace {

class Digest {
 public:
  explicit Digest(const EVP_MD* kind) : context_(::EVP_MD_CTX_new()) {
    good_ = context_ != nullptr && ::EVP_DigestInit_ex(context_.get(), kind, nullptr) == 1;
  }
  void add(const std::vector<char>& bytes, std::size_t size) {
    good_ = good_ && ::EVP_DigestUpdate(context_.get(), bytes.data(), size) == 1;
  }
  // Empty: libcrypto does not have it (MD5 where only FIPS digests are allowed).
  std::string hex() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> made{};
    unsigned size = 0;
    if (!good_ || ::EVP_DigestFinal_ex(context_.get(), made.data(), &size) != 1) return {};
    return hex_of({made.data(), size});
  }

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const { ::EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context_;
  bool good_ = false;
};

}  // namespace

Result<FileDigests> digests_of(int fd, Digests which, const std::function<bool()>& stop) {
  constexpr std::size_t kChunk = 1 << 20;
  Digest sha256(::EVP_sha256());
  std::optional<Digest> md5;
  if (which == Digests::Sha256AndMd5) md5.emplace(::EVP_md5());
  std::vector<char> chunk(kChunk);
  FileDigests found;
  for (;;) {
    const ssize_t got = ::pread(fd, chunk.data(), chunk.size(), static_cast<off_t>(found.bytes));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno("reading", errno);
    if (got == 0) break;
    if (stop && stop())
      return fail(ErrorCode::Unreachable, "reading: nobody waits for it any more");
    sha256.add(chunk, static_cast<std::size_t>(got));
    if (md5) md5->add(chunk, static_cast<std::size_t>(got));
    found.bytes += static_cast<std::uint64_t>(got);
  }
  found.sha256 = sha256.hex();
  if (md5) found.md5 = md5->hex();
  if (found.sha256.empty()) return fail(ErrorCode::Io, "reading: libcrypto has no SHA-256");
  return found;
}

}  // namespace muster
