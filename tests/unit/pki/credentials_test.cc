#include "common/pki/credentials.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/pki/made.h"

namespace muster::pki {
namespace {

namespace fs = std::filesystem;

class CredentialsTest : public testing::Test {
 protected:
  CredentialsTest() {
    std::string pattern = (fs::temp_directory_path() / "credentials.XXXXXX").string();
    dir_ = ::mkdtemp(pattern.data());
  }
  ~CredentialsTest() override { fs::remove_all(dir_); }

  std::string file(const std::string& text, unsigned mode = 0600) {
    const fs::path path = dir_ / "file";
    std::ofstream(path) << text;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path.string();
  }

  const Authority authority_ = must(Authority::make("c0ffee", kNow));
  fs::path dir_;
};

TEST_F(CredentialsTest, ComeBackFromTheirFile) {
  const Credentials made = must(parse_credentials(credentials_of(authority_, kNode)));
  EXPECT_EQ(made.identity, kNode);
  EXPECT_EQ(made.not_before, kNow - kDay);
  EXPECT_EQ(made.not_after, kNow + 30 * kDay);
  EXPECT_EQ(made.ca_pem, authority_.certificate().pem());
  ASSERT_TRUE(create_credentials(dir_ / "n1.pem", made));
  struct stat info{};
  ASSERT_EQ(::stat((dir_ / "n1.pem").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  EXPECT_EQ(must(read_credentials(dir_ / "n1.pem")), made);
}

TEST_F(CredentialsTest, AFileThatIsThereStays) {
  const Credentials made = must(parse_credentials(credentials_of(authority_, kNode)));
  const std::string path = file("mine");
  const auto created = create_credentials(path, made);
  EXPECT_EQ(refusal(created), "writing credentials to '" + path +
                                  "': the file is there already; name another one, or remove it");
  EXPECT_EQ(created.error().code, ErrorCode::Conflict);
  EXPECT_EQ(fs::file_size(path), 4U);
  const auto absent = check_creatable(path, "credentials");
  EXPECT_EQ(refusal(absent), refusal(created));
  EXPECT_EQ(absent.error().code, ErrorCode::Conflict);
  EXPECT_TRUE(check_creatable(dir_ / "other", "credentials"));
  fs::create_symlink(dir_ / "nowhere", dir_ / "link");
  EXPECT_FALSE(check_creatable(dir_ / "link", "credentials"));
  EXPECT_FALSE(create_credentials(dir_ / "link", made));
  const auto nowhere = create_credentials(dir_ / "none" / "x", made);
  EXPECT_EQ(nowhere.error().code, ErrorCode::NotFound);
  EXPECT_TRUE(refusal(nowhere).starts_with("writing credentials to ")) << refusal(nowhere);
}

TEST_F(CredentialsTest, SeveralCasCountAndOtherTextDoesNot) {
  const Authority older = must(Authority::make("c0ffee", kNow - kDay));
  const std::string text = "# of n1\r\n" + credentials_of(authority_, kNode) + "# the older CA\n" +
                           older.certificate().pem();
  EXPECT_EQ(must(parse_credentials(text)).ca_pem,
            authority_.certificate().pem() + older.certificate().pem());
}

// Regression: the file was accepted, and every connection failed.
TEST_F(CredentialsTest, ACaInThemMustHaveSignedTheCertificate) {
  const Authority namesake = must(Authority::make("c0ffee", kNow));
  const Key key = must(Key::generate());
  const std::string own =
      must(key.private_pem()) + must(authority_.issue(key, kNode, kNow, kDay)).pem();
  const auto parsed = parse_credentials(own + namesake.certificate().pem());
  EXPECT_EQ(refusal(parsed),
            "reading credentials: no CA in it has signed the certificate of node 'n1'");
  EXPECT_EQ(parsed.error().code, ErrorCode::InvalidArgument);
  EXPECT_TRUE(
      parse_credentials(own + namesake.certificate().pem() + authority_.certificate().pem()));
}

TEST_F(CredentialsTest, ADirectoryThatIsNotThereIsFoundBeforeAndAfter) {
  const Credentials made = must(parse_credentials(credentials_of(authority_, kNode)));
  const std::string begin =
      "writing credentials to '" + (dir_ / "none" / "n1.pem").string() + "': ";
  const auto missing = check_creatable(dir_ / "none" / "n1.pem", "credentials");
  EXPECT_EQ(refusal(missing), begin + "there is no directory '" + (dir_ / "none").string() +
                                  "'; make it, or name another file");
  EXPECT_EQ(missing.error().code, ErrorCode::NotFound);
  EXPECT_TRUE(refusal(create_credentials(dir_ / "none" / "n1.pem", made)).starts_with(begin));
  EXPECT_EQ(check_creatable(file("mine") + "/n1.pem", "credentials").error().code,
            ErrorCode::NotFound);
  EXPECT_TRUE(check_creatable("no-such-file.pem", "credentials")) << "in the working directory";
  if (::geteuid() == 0) return;  // may write everywhere
  EXPECT_EQ(check_creatable("/n1.pem", "credentials").error().code, ErrorCode::NotAllowed);
}

TEST_F(CredentialsTest, CountInTheTimeOfTheirCertificate) {
  const Credentials made = must(parse_credentials(credentials_of(authority_, kUser)));
  EXPECT_TRUE(made.check_time(kNow));
  EXPECT_EQ(
      refusal(made.check_time(kNow - 2 * kDay)),
      "the certificate of user 'ann' is valid from 2026-11-25T10:00:00Z on, and this machine's "
      "clock says 2026-11-24T10:00:00Z: set the clock");
  EXPECT_EQ(refusal(made.check_time(kNow + 31 * kDay)),
            "the certificate of user 'ann' ended at 2026-12-26T10:00:00Z, and this machine's clock "
            "says 2026-12-27T10:00:00Z; a new one is made by `muster cert issue`, or set the "
            "clock, if it is wrong");
}

TEST_F(CredentialsTest, WhatIsNotWholeIsRefused) {
  const Key key = must(Key::generate());
  const std::string key_pem = must(key.private_pem()), ca = authority_.certificate().pem(),
                    own = must(authority_.issue(key, kNode, kNow, kDay)).pem(),
                    anonymous = forged_pem({}, key),
                    other_key = must(must(Key::generate()).private_pem());
  const std::pair<std::string, std::string> rows[] = {
      {"", "there must be one private key, and there are 0"},
      {own + ca, "there must be one private key, and there are 0"},
      {key_pem + other_key + own + ca, "there must be one private key, and there are 2"},
      {key_pem,
       "there must be two certificates at least, the owner's and then the CA's, and there "
       "are 0"},
      {key_pem + own,
       "there must be two certificates at least, the owner's and then the CA's, and "
       "there are 1"},
      {key_pem + own + ca + must(key.public_pem()),
       "a PEM block 'PUBLIC KEY' does not belong there"},
      {key_pem + own + ca.substr(0, 100), "the PEM block 'CERTIFICATE' has no end"},
      {other_key + own + ca, "the private key is not that of the certificate of node 'n1'"},
      {key_pem + own + own, "certificate 2, 'node n1', is not that of a CA"},
      {key_pem + own + ca + anonymous, "certificate 3, 'forged', is not that of a CA"},
      {key_pem + anonymous + ca,
       "reading the certificate 'forged': it has no name that starts with muster://; muster did "
       "not issue it"},
      {key_pem + ca + own,
       "reading the certificate 'muster c0ffee': it has no name that starts with muster://; muster "
       "did not issue it"}};
  for (const auto& [text, why] : rows) {
    const auto parsed = parse_credentials(text);
    EXPECT_EQ(refusal(parsed), "reading credentials: " + why);
    EXPECT_EQ(parsed.error().code, ErrorCode::InvalidArgument);
  }
  std::string damaged = own;
  damaged.erase(damaged.find('\n') + 1, 4);
  EXPECT_TRUE(refusal(parse_credentials(key_pem + damaged + ca))
                  .starts_with("reading credentials: reading the certificate: it does not decode"));
  EXPECT_TRUE(refusal(parse_credentials(key_pem + own + damaged))
                  .starts_with("reading credentials: reading the certificate: it does not decode"));
  EXPECT_TRUE(
      refusal(parse_credentials(private_pem_of(key.get(), ::EVP_aes_256_cbc()) + own + ca))
          .starts_with("reading credentials: reading the private key: it has a passphrase"));
}

// A file is cut at each place, and the errors of the cut text are read for bytes of the key.
TEST_F(CredentialsTest, NoErrorShowsTheKey) {
  const std::string text = credentials_of(authority_, kNode);
  const std::size_t secret_at = text.find('\n') + 1;
  for (std::size_t length = 0; length < text.size(); length += 7) {
    const auto parsed = parse_credentials(std::string_view(text).substr(0, length));
    if (parsed) {
      EXPECT_GE(length, text.size() - 1) << "only the last line end may be missing";
      continue;
    }
    for (std::size_t at = secret_at; at + 8 < text.find("-----END"); at += 8)
      EXPECT_EQ(parsed.error().message.find(text.substr(at, 8)), std::string::npos);
  }
}

TEST_F(CredentialsTest, AFileThatOthersMayReadIsRefused) {
  const std::string text = credentials_of(authority_, kNode);
  for (const unsigned mode : {0640U, 0604U, 0620U, 0660U, 0644U}) {
    const std::string path = file(text, mode);
    const auto read = read_credentials(path);
    EXPECT_EQ(refusal(read), "reading the credentials file '" + path +
                                 "': others may read it; chmod 600 it, or make a new one");
    EXPECT_EQ(read.error().code, ErrorCode::NotAllowed);
  }
  EXPECT_TRUE(read_credentials(file(text, 0600)));
  EXPECT_TRUE(read_credentials(file(text, 0400)));
}

// Regression: whoever owns the file may exchange the key.
TEST_F(CredentialsTest, AnotherUsersFileIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may give files away";
  const std::string path = file(credentials_of(authority_, kNode));
  ASSERT_EQ(::chown(path.c_str(), 12'345, 0), 0);
  const auto read = read_credentials(path);
  EXPECT_EQ(refusal(read),
            "reading the credentials file '" + path +
                "': it belongs to user 12345, who may change it; it must belong to root");
  EXPECT_EQ(read.error().code, ErrorCode::NotAllowed);
  ASSERT_EQ(::chown(path.c_str(), 0, 0), 0);
  EXPECT_TRUE(read_credentials(path));
}

TEST_F(CredentialsTest, AFileIsReadWithABoundAndNamed) {
  const auto missing = read_credentials(dir_ / "none");
  EXPECT_EQ(missing.error().code, ErrorCode::NotFound);
  EXPECT_TRUE(refusal(missing).starts_with("reading the credentials file: opening '"))
      << refusal(missing);
  EXPECT_EQ(read_credentials(file(std::string((64 << 10) + 1, '\n'))).error().code,
            ErrorCode::ResourceExhausted);
  const std::string path = file("x");
  EXPECT_EQ(refusal(read_credentials(path)),
            "in the file '" + path +
                "': reading credentials: there must be one private key, and there are 0");
  EXPECT_EQ(::mkfifo((dir_ / "fifo").c_str(), 0600), 0);
  EXPECT_EQ(read_credentials(dir_ / "fifo").error().code, ErrorCode::Io) << "it must not wait";
}

}  // namespace
}  // namespace muster::pki
