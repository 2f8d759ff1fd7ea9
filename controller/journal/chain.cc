#include "controller/journal/chain.h"

#include <openssl/evp.h>

#include <algorithm>
#include <memory>

#include "common/base/assert.h"

namespace muster::journal {
namespace {

// One context for each thread, because making a context costs more than hashing a row.
EVP_MD_CTX* fresh_context() {
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
    void operator()(EVP_MD* method) const { EVP_MD_free(method); }
  };
  thread_local const std::unique_ptr<EVP_MD, Free> method(EVP_MD_fetch(nullptr, "SHA256", nullptr));
  thread_local const std::unique_ptr<EVP_MD_CTX, Free> context(EVP_MD_CTX_new());
  const bool ready = method != nullptr && context != nullptr &&
                     EVP_DigestInit_ex2(context.get(), method.get(), nullptr) == 1;
  MUSTER_ASSERT(ready, "libcrypto has no SHA-256");
  return context.get();
}

std::array<char, 8> little_endian(std::uint64_t number) {
  std::array<char, 8> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(number >> (8 * i));
  return bytes;
}

}  // namespace

std::string Digest::hex() const {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

bool Digest::parse(std::string_view raw, Digest& to) {
  if (raw.size() != to.bytes.size()) return false;
  std::ranges::copy(raw, to.bytes.begin());
  return true;
}

bool Digest::parse_hex(std::string_view text, Digest& to) {
  if (text.size() != 2 * to.bytes.size()) return false;
  const auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  for (std::size_t i = 0; i < to.bytes.size(); ++i) {
    const int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    to.bytes[i] = static_cast<unsigned char>(high * 16 + low);
  }
  return true;
}

Digest digest_of(std::initializer_list<std::string_view> parts) {
  EVP_MD_CTX* context = fresh_context();
  bool well = true;
  for (const std::string_view part : parts) {
    const auto size = little_endian(part.size());
    well = well && EVP_DigestUpdate(context, size.data(), size.size()) == 1 &&
           EVP_DigestUpdate(context, part.data(), part.size()) == 1;
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> whole;
  unsigned size = 0;
  well = well && EVP_DigestFinal_ex(context, whole.data(), &size) == 1 && size == 32;
  MUSTER_ASSERT(well, "libcrypto's SHA-256 failed");
  Digest cut;
  std::copy_n(whole.begin(), cut.bytes.size(), cut.bytes.begin());
  return cut;
}

Digest chain_start(std::string_view journal_id) {
  return digest_of({"muster journal", journal_id});
}

Digest chain_next(const Digest& previous, JournalIndex index, const Record& record) {
  const auto number = little_endian(index.value), format = little_endian(record.format),
             type = little_endian(record.type);
  return digest_of(
      {previous.view(), {number.data(), 8}, {format.data(), 8}, {type.data(), 8}, record.payload});
}

}  // namespace muster::journal
