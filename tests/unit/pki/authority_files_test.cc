#include "common/pki/authority_files.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/io/file.h"
#include "common/pki/authority_dir.h"
#include "tests/unit/pki/made.h"

namespace muster::pki {
namespace {

namespace fs = std::filesystem;

// A CA as a company makes one: named by itself, with these extensions.
struct Outside {
  std::string certificate, key;
};
Outside outside(const std::vector<std::pair<int, const char*>>& extensions,
                Duration life = 400 * kDay) {
  const Key key = must(Key::generate());
  const CertificateOwner made(::X509_new());
  X509* x509 = made.get();
  ::X509_set_version(x509, X509_VERSION_3);
  ::ASN1_INTEGER_set(::X509_get_serialNumber(x509), 7);
  const auto at = [](WallTime time) {
    return std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
  };
  ::ASN1_TIME_set(::X509_getm_notBefore(x509), at(kNow - kDay));
  ::ASN1_TIME_set(::X509_getm_notAfter(x509), at(kNow + life));
  ::X509_NAME_add_entry_by_txt(::X509_get_subject_name(x509), "O", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("Company"), -1, -1, 0);
  ::X509_set_issuer_name(x509, ::X509_get_subject_name(x509));
  ::X509_set_pubkey(x509, key.get());
  for (const auto& [nid, value] : extensions) {
    X509V3_CTX context{};
    ::X509V3_set_ctx(&context, x509, x509, nullptr, nullptr, 0);
    X509_EXTENSION* one = ::X509V3_EXT_conf_nid(nullptr, &context, nid, value);
    EXPECT_NE(one, nullptr) << value;
    ::X509_add_ext(x509, one, -1);
    ::X509_EXTENSION_free(one);
  }
  ::X509_sign(x509, key.get(), ::EVP_sha256());
  const BioOwner bio = empty_bio();
  ::PEM_write_bio_X509(bio.get(), x509);
  return {.certificate = text_in(bio.get()), .key = must(key.private_pem())};
}
const std::vector<std::pair<int, const char*>> kSound = {
    {NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
    {NID_key_usage, "critical,keyCertSign,cRLSign"},
    {NID_subject_key_identifier, "hash"}};

class AuthorityFiles : public testing::Test {
 protected:
  AuthorityFiles() {
    std::string pattern = (fs::temp_directory_path() / "authorities.XXXXXX").string();
    dir_ = ::mkdtemp(pattern.data());
    first_ = digest(must(open_authority(dir_, kId, kNow)));
  }
  ~AuthorityFiles() override { fs::remove_all(dir_); }

  static std::string digest(const Authority& authority) { return authority.certificate().digest(); }
  [[nodiscard]] AuthoritySet settle(const AuthorityPlan& plan) const {
    return must(settle_authorities(dir_, kId, plan, kNow));
  }
  // Publishes another one, and returns its digest.
  std::string publish() {
    const Authority next = must(Authority::make(kId, kNow));
    EXPECT_TRUE(keep_next(dir_, next));
    return digest(next);
  }
  [[nodiscard]] std::string bytes(const char* name) const {
    return must(io::read_file(dir_ / name, 1 << 20));
  }
  [[nodiscard]] bool has(const char* name) const { return fs::exists(dir_ / name); }
  void write(const char* name, const std::string& text) const {
    EXPECT_TRUE(io::replace_file(dir_ / name, text, io::Durable::No));
  }

  static constexpr const char* kId = "c0ffee";
  fs::path dir_;
  std::string first_;
};

TEST_F(AuthorityFiles, AChangeStepByStep) {
  const std::string second = publish();
  struct stat info{};
  ASSERT_EQ(::stat((dir_ / "next.pem").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600U);
  AuthorityPlan plan{.signing = first_, .next = second, .old = {}, .dropped = {}};
  {
    const AuthoritySet set = settle(plan);
    EXPECT_EQ(digest(set.signing), first_);
    ASSERT_TRUE(set.next);
    EXPECT_EQ(digest(*set.next), second);
    EXPECT_FALSE(set.old);
  }
  plan = {.signing = second, .next = {}, .old = first_, .dropped = {}};
  for (int times = 0; times < 2; ++times) {  // the second one changes nothing
    const AuthoritySet set = settle(plan);
    EXPECT_EQ(digest(set.signing), second);
    ASSERT_TRUE(set.old);
    EXPECT_EQ(digest(*set.old), first_);
    EXPECT_FALSE(has("next.pem"));
    ASSERT_EQ(::stat((dir_ / "old.pem").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0600U);
    // An older release reads these two files alone.
    EXPECT_EQ(digest(must(open_authority(dir_, kId, kNow))), second);
  }
  plan = {.signing = second, .next = {}, .old = {}, .dropped = {first_}};
  EXPECT_FALSE(settle(plan).old);
  EXPECT_FALSE(has("old.pem")) << "the old key is still there";
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_), fs::directory_iterator()), 2);
}

// Each state in which a crash can leave the files after the second step was decided.
TEST_F(AuthorityFiles, ACrashInTheMiddleOfTheChangeOfKeys) {
  const std::string first_key = bytes("ca.key"), first_pem = bytes("ca.pem");
  const std::string second = publish();
  const std::string next = bytes("next.pem");
  const AuthorityPlan plan{.signing = second, .next = {}, .old = first_, .dropped = {}};
  (void)settle(plan);
  const std::string second_key = bytes("ca.key"), second_pem = bytes("ca.pem"),
                    old = bytes("old.pem");
  struct Left {
    std::string key, pem, next, old;
  };
  for (const Left& left :
       {Left{first_key, first_pem, next, ""}, Left{first_key, first_pem, next, old},
        Left{second_key, first_pem, next, old}, Left{second_key, second_pem, next, old},
        Left{second_key, second_pem, "", old}}) {
    for (const char* name : {"ca.key", "ca.pem", "next.pem", "old.pem"}) fs::remove(dir_ / name);
    write("ca.key", left.key);
    write("ca.pem", left.pem);
    if (!left.next.empty()) write("next.pem", left.next);
    if (!left.old.empty()) write("old.pem", left.old);
    const AuthoritySet set = settle(plan);
    EXPECT_EQ(digest(set.signing), second);
    ASSERT_TRUE(set.old);
    EXPECT_EQ(digest(*set.old), first_);
    EXPECT_EQ(bytes("ca.key"), second_key);
    EXPECT_EQ(bytes("ca.pem"), second_pem);
    EXPECT_EQ(bytes("old.pem"), old);
    EXPECT_FALSE(has("next.pem"));
  }
}

// A journal whose end was lost is behind the files by one step. The CA that had begun to sign is
// the next one again, and certificates that it signed count as before.
TEST_F(AuthorityFiles, AJournalThatHasLostThatTheNextOneSigns) {
  const std::string second = publish();
  (void)settle({.signing = second, .next = {}, .old = first_, .dropped = {}});
  const AuthorityPlan plan{.signing = first_, .next = second, .old = {}, .dropped = {}};
  for (int times = 0; times < 2; ++times) {
    const AuthoritySet set = settle(plan);
    EXPECT_EQ(digest(set.signing), first_);
    ASSERT_TRUE(set.next) << "its key is in no file any more";
    EXPECT_EQ(digest(*set.next), second);
    EXPECT_EQ(digest(must(open_authority(dir_, kId, kNow))), first_);
  }
  const AuthoritySet again = settle({.signing = second, .next = {}, .old = first_, .dropped = {}});
  EXPECT_EQ(digest(again.signing), second);
}

// Regression: it was behind by two steps, a finished change, and the controller did not start.
TEST_F(AuthorityFiles, AJournalThatHasLostThatTheChangeIsFinished) {
  const std::string second = publish();
  (void)settle({.signing = second, .next = {}, .old = first_, .dropped = {}});
  (void)settle({.signing = second, .next = {}, .old = {}, .dropped = {first_}});
  for (int times = 0; times < 2; ++times) {  // before the ledger says so, too
    const AuthoritySet set =
        settle({.signing = first_, .next = second, .old = {}, .dropped = {"x"}});
    EXPECT_EQ(digest(set.signing), second);
    EXPECT_FALSE(set.next);
    EXPECT_FALSE(set.old);
  }
  // Of the last step alone: the old one is gone, whatever the journal says.
  const AuthoritySet set = settle({.signing = second, .next = {}, .old = first_, .dropped = {}});
  EXPECT_EQ(digest(set.signing), second);
  EXPECT_FALSE(set.old);
}

// An imported one that the journal knows nothing of any more.
TEST_F(AuthorityFiles, AJournalThatHasLostAnImportedCaSaysWhatToDo) {
  const Outside sound = outside(kSound);
  const Authority adopted = must(Authority::adopt(sound.certificate, sound.key, kId));
  EXPECT_TRUE(keep_next(dir_, adopted));
  (void)settle({.signing = digest(adopted), .next = {}, .old = first_, .dropped = {}});
  (void)settle({.signing = digest(adopted), .next = {}, .old = {}, .dropped = {first_}});
  const std::string why = refusal(settle_authorities(
      dir_, kId, {.signing = first_, .next = {}, .old = {}, .dropped = {}}, kNow));
  EXPECT_TRUE(why.contains("CA " + first_ +
                           " signs the certificates, and is in no file; restore the files of this "
                           "directory from a backup"))
      << why;
  EXPECT_EQ(
      digest(
          settle({.signing = first_, .next = digest(adopted), .old = {}, .dropped = {}}).signing),
      digest(adopted));
}

TEST_F(AuthorityFiles, WhatWasNeverDecidedGoes) {
  (void)publish();
  EXPECT_EQ(digest(settle({}).signing), first_);
  EXPECT_FALSE(has("next.pem"));
  const std::string second = publish();
  (void)settle({.signing = first_, .next = {}, .old = {}, .dropped = {second}});
  EXPECT_FALSE(has("next.pem")) << "the key of one that was aborted is still there";
}

TEST_F(AuthorityFiles, ALostKeyIsNamedAndANewCaTakesItsPlace) {
  const AuthorityPlan plan{.signing = first_, .next = {}, .old = {}, .dropped = {}};
  fs::remove(dir_ / "ca.key");
  const std::string why = refusal(settle_authorities(dir_, kId, plan, kNow));
  EXPECT_TRUE(why.contains("the key of CA " + first_ +
                           ", which signs the certificates, is in no "
                           "file; restore the files of this directory from a backup"))
      << why;
  fs::remove(dir_ / "ca.pem");
  const std::string fresh = digest(settle(plan).signing);
  EXPECT_NE(fresh, first_);
  EXPECT_EQ(digest(settle(plan).signing), fresh) << "before that was recorded";
  // The files of one that was dropped are no such CA.
  EXPECT_TRUE(
      refusal(settle_authorities(
                  dir_, kId, {.signing = first_, .next = {}, .old = {}, .dropped = {fresh}}, kNow))
          .contains("the files are of CA " + fresh));
}

TEST_F(AuthorityFiles, AnImportedCaNeedsItsKeyAndTheRightToSign) {
  const Outside sound = outside(kSound);
  const Authority adopted = must(Authority::adopt(sound.certificate, sound.key, kId));
  EXPECT_EQ(adopted.cluster(), kId);
  EXPECT_TRUE(check_usable(adopted, kNow));
  EXPECT_TRUE(keep_next(dir_, adopted));
  const AuthoritySet set =
      settle({.signing = digest(adopted), .next = {}, .old = first_, .dropped = {}});
  EXPECT_EQ(digest(set.signing), digest(adopted));

  const auto why = [](const Outside& one) {
    return refusal(Authority::adopt(one.certificate, one.key, kId));
  };
  const Outside other = outside(kSound);
  EXPECT_TRUE(why({.certificate = sound.certificate, .key = other.key})
                  .contains("the private key is that of another one"));
  EXPECT_TRUE(why(outside({{NID_basic_constraints, "critical,CA:FALSE"},
                           {NID_key_usage, "critical,keyCertSign"},
                           {NID_subject_key_identifier, "hash"}}))
                  .contains("not the certificate of a CA"));
  EXPECT_TRUE(why(outside({{NID_basic_constraints, "critical,CA:TRUE"},
                           {NID_subject_key_identifier, "hash"}}))
                  .contains("keyUsage must have keyCertSign"));
  EXPECT_TRUE(why(outside({{NID_basic_constraints, "critical,CA:TRUE"},
                           {NID_key_usage, "critical,keyCertSign"}}))
                  .contains("it has no subjectKeyIdentifier"));
}

TEST_F(AuthorityFiles, AnImportedCaIsTried) {
  auto constrained = kSound;
  constrained.emplace_back(NID_name_constraints, "critical,permitted;DNS:.company.example");
  const Outside narrow = outside(constrained);
  EXPECT_TRUE(
      refusal(check_usable(must(Authority::adopt(narrow.certificate, narrow.key, kId)), kNow))
          .contains("do not pass the checks of TLS"));
  const Outside brief = outside(kSound, 20 * kDay);
  EXPECT_TRUE(refusal(check_usable(must(Authority::adopt(brief.certificate, brief.key, kId)), kNow))
                  .contains("no certificate outlives its CA"));
  auto talkative = kSound;
  const std::string comment(4'000, 'x');
  talkative.emplace_back(NID_netscape_comment, comment.c_str());
  const Outside big = outside(talkative);
  EXPECT_TRUE(refusal(check_usable(must(Authority::adopt(big.certificate, big.key, kId)), kNow))
                  .contains("and may have 4096"));
}

}  // namespace
}  // namespace muster::pki
