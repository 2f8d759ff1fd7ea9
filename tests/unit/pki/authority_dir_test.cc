#include "common/pki/authority_dir.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/io/file.h"
#include "tests/unit/pki/made.h"

namespace muster::pki {
namespace {

namespace fs = std::filesystem;

class AuthorityDir : public testing::Test {
 protected:
  AuthorityDir() {
    std::string pattern = (fs::temp_directory_path() / "authority.XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
    dir_ = root_ / "state" / "pki";
  }
  ~AuthorityDir() override { fs::remove_all(root_); }

  [[nodiscard]] Result<Authority> open(WallTime now = kNow) const {
    return open_authority(dir_, "c0ffee", now);
  }
  [[nodiscard]] std::string refused() const { return refusal(open()); }
  [[nodiscard]] std::string doing() const { return "opening the CA in '" + dir_.string() + "': "; }
  [[nodiscard]] std::string path(const char* name) const { return (dir_ / name).string(); }
  [[nodiscard]] std::string bytes(const char* name) const {
    return must(io::read_file(dir_ / name, 1 << 20));
  }
  [[nodiscard]] static unsigned mode(const fs::path& path) {
    struct stat info{};
    EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
    return info.st_mode & 07777;
  }

  fs::path root_;
  fs::path dir_;
};

TEST_F(AuthorityDir, IsMadeOnceAndLoadedAfterwards) {
  const Authority made = must(open());
  EXPECT_EQ(mode(dir_), 0700U);
  EXPECT_EQ(mode(dir_ / "ca.key"), 0600U);
  EXPECT_EQ(bytes("ca.pem"), made.certificate().pem());
  EXPECT_EQ(bytes("ca.key"), must(made.key_pem()));
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_), fs::directory_iterator()), 2)
      << "a temporary file was left";
  const Authority loaded = must(open(kNow + 100 * kDay));
  EXPECT_EQ(loaded.certificate().pem(), made.certificate().pem());
  EXPECT_EQ(must(loaded.key_pem()), must(made.key_pem()));
}

TEST_F(AuthorityDir, ALinkIsRefused) {
  ASSERT_TRUE(io::make_dirs(root_ / "elsewhere", 0700));
  ASSERT_TRUE(io::make_dirs(root_ / "state", 0700));
  fs::create_directory_symlink(root_ / "elsewhere", dir_);
  EXPECT_EQ(refused(),
            doing() + "'" + dir_.string() + "' is a link; put the directory itself there");
  EXPECT_TRUE(fs::is_empty(root_ / "elsewhere"));
}

TEST_F(AuthorityDir, ADirectoryOfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make one";
  ASSERT_TRUE(io::make_dirs(dir_, 0700));
  ASSERT_EQ(::chown(dir_.c_str(), 12'345, 12'345), 0);
  EXPECT_EQ(refused(), doing() + "'" + dir_.string() +
                           "' belongs to user 12345, who may change what is in it; chown it to "
                           "user 0");
}

TEST_F(AuthorityDir, ADirectoryThatIsThereKeepsItsMode) {
  ASSERT_TRUE(io::make_dirs(dir_, 0755));
  EXPECT_TRUE(open());
  EXPECT_EQ(mode(dir_), 0755U);
}

// The crash came after ca.key was durable.
TEST_F(AuthorityDir, AKeyWithoutItsCertificateGetsANewOne) {
  const Authority before = must(open());
  fs::remove(dir_ / "ca.pem");
  const Authority after = must(open(kNow + kDay));
  EXPECT_EQ(after.certificate().public_digest(), before.certificate().public_digest());
  EXPECT_NE(after.certificate().serial(), before.certificate().serial());
  EXPECT_EQ(after.certificate().not_before(), kNow);
  EXPECT_EQ(bytes("ca.pem"), after.certificate().pem());
  EXPECT_EQ(must(open()).certificate().pem(), after.certificate().pem());
}

// The crash came before ca.key had its name.
TEST_F(AuthorityDir, ATemporaryFileIsNoKey) {
  ASSERT_TRUE(io::make_dirs(dir_, 0700));
  std::ofstream(dir_ / ".ca.key.17.0") << "-----BEGIN PRI";
  const Authority made = must(open());
  EXPECT_EQ(must(open()).certificate().pem(), made.certificate().pem());
}

TEST_F(AuthorityDir, ACertificateWithoutItsKeyStays) {
  const std::string certificate = must(open()).certificate().pem();
  fs::remove(dir_ / "ca.key");
  const auto opened = open();
  EXPECT_EQ(refusal(opened),
            doing() + "'" + path("ca.pem") + "' is there without its key '" + path("ca.key") +
                "'; restore the key from a backup, or remove '" + path("ca.pem") +
                "': then a new CA is made, and all certificates must be issued anew");
  EXPECT_EQ(opened.error().code, ErrorCode::DataLoss);
  EXPECT_EQ(bytes("ca.pem"), certificate);
  EXPECT_FALSE(fs::exists(dir_ / "ca.key"));
}

TEST_F(AuthorityDir, AKeyThatOthersMayReadIsRefused) {
  ASSERT_TRUE(open());
  for (const unsigned mode : {0640U, 0604U, 0644U}) {
    ASSERT_EQ(::chmod(path("ca.key").c_str(), mode), 0);
    const auto opened = open();
    EXPECT_EQ(refusal(opened), doing() + "reading the CA's key '" + path("ca.key") +
                                   "': others may read it; chmod 600 it");
    EXPECT_EQ(opened.error().code, ErrorCode::NotAllowed);
  }
  ASSERT_EQ(::chmod(path("ca.key").c_str(), 0600), 0);
  EXPECT_TRUE(open());
}

TEST_F(AuthorityDir, ADirectoryThatOthersMayWriteInIsRefused) {
  ASSERT_TRUE(open());
  for (const unsigned mode : {0770U, 0702U, 01777U}) {
    ASSERT_EQ(::chmod(dir_.c_str(), mode), 0);
    const auto opened = open();
    EXPECT_EQ(refusal(opened),
              doing() + "others may write in '" + dir_.string() + "'; chmod 700 it");
    EXPECT_EQ(opened.error().code, ErrorCode::NotAllowed);
  }
}

TEST_F(AuthorityDir, AnotherClustersIsRefused) {
  ASSERT_TRUE(open());
  const auto opened = open_authority(dir_, "beef", kNow);
  EXPECT_EQ(refusal(opened),
            doing() +
                "it is the CA of cluster 'c0ffee', this is 'beef'; give the controller its own "
                "state directory, or move '" +
                dir_.string() +
                "' away: then a new CA is made, and all certificates must be issued anew");
  EXPECT_EQ(opened.error().code, ErrorCode::Conflict);
}

TEST_F(AuthorityDir, AnotherOnesKeyIsRefused) {
  ASSERT_TRUE(open());
  ASSERT_TRUE(io::replace_file(dir_ / "ca.key", must(must(Key::generate()).private_pem()),
                               io::Durable::No));
  EXPECT_EQ(refused(), doing() + "'" + path("ca.pem") +
                           "': reading the CA's certificate 'muster c0ffee': the private key is "
                           "that of another one");
}

TEST_F(AuthorityDir, DamagedFilesAreRefusedByNameAndStay) {
  const Authority made = must(open());
  for (const char* name : {"ca.key", "ca.pem"}) {
    const std::string whole = bytes(name);
    for (const std::string& damaged : {std::string(), whole.substr(0, whole.size() / 2)}) {
      ASSERT_TRUE(io::replace_file(dir_ / name, damaged, io::Durable::No));
      EXPECT_TRUE(refused().starts_with(doing() + "'" + path(name) + "': reading the "))
          << refused();
      EXPECT_EQ(bytes(name), damaged);
    }
    ASSERT_TRUE(io::replace_file(dir_ / name, whole, io::Durable::No));
  }
  EXPECT_EQ(must(open()).certificate().pem(), made.certificate().pem());
}

TEST_F(AuthorityDir, FilesAreReadWithABound) {
  ASSERT_TRUE(open());
  for (const char* name : {"ca.key", "ca.pem"}) {
    const std::string whole = bytes(name);
    ASSERT_TRUE(
        io::replace_file(dir_ / name, whole + std::string(16 << 10, '\n'), io::Durable::No));
    EXPECT_EQ(open().error().code, ErrorCode::ResourceExhausted) << name;
    ASSERT_TRUE(io::replace_file(dir_ / name, whole, io::Durable::No));
  }
}

TEST_F(AuthorityDir, AFileInTheDirectorysPlaceIsAnError) {
  std::ofstream(root_ / "state") << "x";
  const auto opened = open();
  EXPECT_EQ(opened.error().code, ErrorCode::Io);
  EXPECT_TRUE(refusal(opened).starts_with(doing())) << refusal(opened);
}

TEST_F(AuthorityDir, AClusterWithoutASoundIdHasNoCa) {
  EXPECT_EQ(
      refusal(open_authority(dir_, "", kNow)),
      doing() + "making a CA for cluster '': a cluster id of a CA has 1 to 57 of a-z and 0-9");
}

TEST_F(AuthorityDir, TheControllersCertificateLivesAsLongAsTheCa) {
  const Authority authority = must(open());
  const Credentials own = must(issue_controller(authority, "c0ffee", kNow));
  EXPECT_EQ(own.identity, kController);
  EXPECT_EQ(own.not_after, authority.certificate().not_after());
  EXPECT_EQ(own.ca_pem, authority.certificate().pem());
  EXPECT_EQ(must(parse_credentials(own.key_pem + own.certificate_pem + own.ca_pem)), own);
  EXPECT_NE(must(issue_controller(authority, "c0ffee", kNow)).key_pem, own.key_pem);
  EXPECT_EQ(refusal(issue_controller(authority, "beef", kNow)),
            "issuing the controller's certificate: it is of cluster 'beef', and this is the CA of "
            "cluster 'c0ffee'");
}

}  // namespace
}  // namespace muster::pki
