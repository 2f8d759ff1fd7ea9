#include "common/pki/certificate.h"

#include <openssl/asn1.h>
#include <openssl/bn.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <optional>
#include <vector>

#include "common/digest/sha256.h"
#include "common/pki/pem.h"
#include "common/pki/printable.h"

namespace muster::pki {
namespace {

constexpr std::size_t kCertificatePemBytesMax = 16 << 10;
constexpr std::string_view kReading = "reading the certificate";

struct NamesFree {
  void operator()(GENERAL_NAMES* names) const { ::GENERAL_NAMES_free(names); }
};
struct BufferFree {
  void operator()(void* buffer) const { OPENSSL_free(buffer); }
};

std::string_view bytes_of(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(::ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(::ASN1_STRING_length(text))};
}

std::optional<WallTime> wall_time(const ASN1_TIME* time) {
  using namespace std::chrono;
  tm utc{};
  if (time == nullptr || ::ASN1_TIME_to_tm(time, &utc) != 1) return std::nullopt;
  const sys_days date = year(utc.tm_year + 1900) / month(static_cast<unsigned>(utc.tm_mon) + 1) /
                        day(static_cast<unsigned>(utc.tm_mday));
  const sys_seconds moment = date + hours(utc.tm_hour) + minutes(utc.tm_min) + seconds(utc.tm_sec);
  // 64 bits of nanoseconds end in 2262, and the years of a certificate in 9999.
  return WallTime(
      std::clamp(moment, ceil<seconds>(WallTime::min()), floor<seconds>(WallTime::max())));
}

std::string serial_of(const X509* certificate) {
  const NumberOwner number(::ASN1_INTEGER_to_BN(::X509_get0_serialNumber(certificate), nullptr));
  const std::unique_ptr<char, BufferFree> hex(number ? ::BN_bn2hex(number.get()) : nullptr);
  std::string text = hex ? hex.get() : "";
  for (char& c : text) {
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

std::string digest_of_public_key(const X509* certificate) {
  const BioOwner bio = empty_bio();
  if (!bio || ::i2d_X509_PUBKEY_bio(bio.get(), ::X509_get_X509_PUBKEY(certificate)) != 1) return {};
  return sha256_hex(text_in(bio.get()));
}

std::string digest_of(const X509* certificate) {
  const BioOwner bio = empty_bio();
  if (!bio || ::i2d_X509_bio(bio.get(), certificate) != 1) return {};
  return sha256_hex(text_in(bio.get()));
}

std::string common_name_of(const X509* certificate) {
  const X509_NAME* subject = ::X509_get_subject_name(certificate);
  const int at = ::X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0) return {};
  unsigned char* utf8 = nullptr;
  const int size =
      ::ASN1_STRING_to_UTF8(&utf8, ::X509_NAME_ENTRY_get_data(::X509_NAME_get_entry(subject, at)));
  const std::unique_ptr<unsigned char, BufferFree> owner(utf8);
  if (size < 0) return {};
  return {reinterpret_cast<const char*>(utf8), static_cast<std::size_t>(size)};
}

constexpr std::string_view kClockSays = ", and this machine's clock says ";

}  // namespace

Result<Certificate> Certificate::from_pem(std::string_view pem) {
  const OpenSslErrors errors;
  if (pem.size() > kCertificatePemBytesMax)
    return fail(ErrorCode::InvalidArgument, std::string(kReading) + ": more than " +
                                                std::to_string(kCertificatePemBytesMax) + " bytes");
  const auto blocks = pem_blocks(pem);
  if (!blocks) return fail(Error(blocks.error()).in(kReading));
  if (blocks->size() != 1 || blocks->front().label != "CERTIFICATE")
    return fail(ErrorCode::InvalidArgument,
                std::string(kReading) + ": it must be one PEM block 'CERTIFICATE', and " +
                    (blocks->size() == 1 ? "it is '" + printable(blocks->front().label) + "'"
                                         : "there are " + std::to_string(blocks->size())));
  const BioOwner bio = bio_of(blocks->front().text);
  CertificateOwner owner(bio ? ::PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr) : nullptr);
  if (!owner)
    return openssl_failed(ErrorCode::InvalidArgument,
                          std::string(kReading) + ": it does not decode");

  Certificate certificate(std::move(owner));
  X509* x509 = certificate.get();
  const auto not_before = wall_time(::X509_get0_notBefore(x509));
  const auto not_after = wall_time(::X509_get0_notAfter(x509));
  const BioOwner text = empty_bio();
  certificate.digest_ = digest_of(x509);
  certificate.serial_ = serial_of(x509);
  certificate.public_digest_ = digest_of_public_key(x509);
  if (!not_before || !not_after || certificate.serial_.empty() ||
      certificate.public_digest_.empty() || certificate.digest_.empty() || !text ||
      ::PEM_write_bio_X509(text.get(), x509) != 1)
    return openssl_failed(ErrorCode::InvalidArgument, std::string(kReading) + ": it is damaged");
  certificate.pem_ = text_in(text.get());
  certificate.not_before_ = *not_before;
  certificate.not_after_ = *not_after;
  certificate.common_name_ = common_name_of(x509);
  certificate.is_ca_ = ::X509_check_ca(x509) == 1;  // other numbers: by older signs of a CA
  return certificate;
}

Result<Identity> Certificate::identity() const {
  const OpenSslErrors errors;
  const std::string doing = std::string(kReading) + " '" + printable(common_name_) + "'";
  int place = -1;
  const std::unique_ptr<GENERAL_NAMES, NamesFree> names(static_cast<GENERAL_NAMES*>(
      ::X509_get_ext_d2i(get(), NID_subject_alt_name, &place, nullptr)));
  if (!names && place != -1)
    return fail(ErrorCode::InvalidArgument, doing + ": its alternative names are damaged");
  std::vector<std::string_view> uris;
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    int type = 0;
    const void* value = ::GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names.get(), i), &type);
    if (type != GEN_URI) continue;
    uris.push_back(bytes_of(static_cast<const ASN1_STRING*>(value)));
  }
  if (uris.empty() || (uris.size() == 1 && !uris.front().starts_with(kUriScheme)))
    return fail(ErrorCode::InvalidArgument,
                doing + ": it has no name that starts with muster://; muster did not issue it");
  if (uris.size() > 1)
    return fail(ErrorCode::InvalidArgument,
                doing + ": it must have one name, and has " + std::to_string(uris.size()) + ", '" +
                    printable(uris[0]) + "' and '" + printable(uris[1]) + "' among them");
  auto identity = parse_identity(uris.front());
  if (!identity) return fail(std::move(identity.error()).in(doing));
  return identity;
}

bool Certificate::is_signed_by(const Certificate& ca) const {
  const OpenSslErrors errors;
  EVP_PKEY* key = ::X509_get0_pubkey(ca.get());
  return key != nullptr && ::X509_verify(get(), key) == 1;
}

Result<void> Certificate::check_time(WallTime now) const {
  const auto owner = identity();
  if (!owner) return fail(Error(owner.error()));
  return pki::check_time(*owner, not_before_, not_after_, now);
}

Result<void> check_time(const Identity& owner, WallTime not_before, WallTime not_after,
                        WallTime now) {
  const std::string fault = time_fault(owner, not_before, not_after, now);
  if (fault.empty()) return {};
  return fail(ErrorCode::NotAllowed,
              fault + std::string(kClockSays) + utc_text(now) +
                  (now < not_before ? ": set the clock"
                                    : "; a new one is made by `muster cert issue`, or set the "
                                      "clock, if it is wrong"));
}

std::string time_fault(const Identity& owner, WallTime not_before, WallTime not_after,
                       WallTime now) {
  const std::string who = "the certificate of " + text_of(owner);
  if (now < not_before) return who + " is valid from " + utc_text(not_before) + " on";
  if (now > not_after) return who + " ended at " + utc_text(not_after);
  return {};
}

std::string_view without_clock(std::string_view sentence) {
  return sentence.substr(0, sentence.find(kClockSays));
}

}  // namespace muster::pki
