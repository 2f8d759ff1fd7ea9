// What rclone is told. tests/integration/stores_test.py lets a real one reach real ends with it.
#include "common/store/rclone.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

namespace muster::store {
namespace {

using testing::HasSubstr;

Result<Remote> remote(const std::string& text, const std::string& url, const Key& key = {}) {
  v1::StoreProfile profile;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &profile)) << text;
  return remote_of(profile, *parse_url(url), key, "/known");
}

TEST(Rclone, AnEndOfOnesOwnHasTheBucketInThePath) {
  const auto made = remote(
      R"(url: "s3://" endpoint: "http://10.0.0.1:9000" path_style: true user: "AK" secret: "k"
         proxy: "http://proxy:3128" ca: "PEM")",
      "s3://data/wiki", {.plain = "SK\nTOKEN\n", .obscured = {}});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->config,
            "[store]\ntype = s3\nprovider = Other\nendpoint = http://10.0.0.1:9000\n"
            "force_path_style = true\nenv_auth = false\nno_check_bucket = true\n"
            "access_key_id = AK\nsecret_access_key = SK\nsession_token = TOKEN\n");
  EXPECT_EQ(made->path, "data/wiki");
}

TEST(Rclone, ObsAndS3OfTheirMakers) {
  const auto obs =
      remote(R"(url: "obs://" endpoint: "https://obs.cn-north-4.myhuaweicloud.com")", "obs://data");
  EXPECT_THAT(obs->config, HasSubstr("provider = HuaweiOBS\n"));
  EXPECT_THAT(obs->config, testing::Not(HasSubstr("access_key_id"))) << "nobody logs in";
  EXPECT_EQ(obs->path, "data");
  EXPECT_THAT(remote(R"(url: "s3://" region: "eu-west-1")", "s3://data")->config,
              HasSubstr("provider = AWS\nregion = eu-west-1\n"));
}

TEST(Rclone, SftpByKeyAndByPassword) {
  const std::string profile =
      R"(url: "sftp://[fe80::1]:2222" user: "ann" secret: "k" host_key: "h ssh-ed25519 AAAA")";
  const std::string pem = "-----BEGIN OPENSSH PRIVATE KEY-----\nAAA=\n-----END\n";
  const auto by_key =
      remote(profile, "sftp://[fe80::1]:2222/srv/a", {.plain = pem, .obscured = {}});
  EXPECT_EQ(by_key->config,
            "[store]\ntype = sftp\nhost = fe80::1\nport = 2222\nuser = ann\n"
            "key_pem = -----BEGIN OPENSSH PRIVATE KEY-----\\nAAA=\\n-----END\\n\n"
            "known_hosts_file = /known\nuse_insecure_cipher = false\n"
            "shell_type = none\ndisable_hashcheck = true\n");
  EXPECT_EQ(by_key->path, "/srv/a");
  EXPECT_THAT(
      remote(profile, "sftp://[fe80::1]:2222/x", {.plain = "pw", .obscured = "OBS"})->config,
      HasSubstr("pass = OBS\n"));
}

TEST(Rclone, WebdavHttpAndDirectories) {
  const auto dav = remote(R"(url: "webdav://h" user: "ann" secret: "k")", "webdav://h/a",
                          {.plain = "pw", .obscured = "OBS"});
  EXPECT_EQ(dav->config,
            "[store]\ntype = webdav\nurl = https://h\nvendor = other\nuser = ann\npass = OBS\n");
  EXPECT_EQ(dav->path, "a");
  EXPECT_EQ(remote(R"(url: "http://h:80")", "http://h:80/a")->config,
            "[store]\ntype = http\nurl = http://h:80\n");
  const auto dir = remote(R"(url: "dir://d" endpoint: "/mnt/d")", "dir://d/a");
  EXPECT_EQ(dir->config, "[store]\ntype = local\ncopy_links = true\n");
  EXPECT_EQ(dir->path, "/mnt/d/a");
}

// rclone would read another value than was set.
TEST(Rclone, ValuesThatItsConfigurationCannotHaveAreRefused) {
  for (const char* key :
       {"\"quoted", "%(user)s", " blank", "a\tb", "beyond\u00a0", "\u3000ascii"}) {
    const auto made = remote(R"(url: "s3://" user: "AK" secret: "k")", "s3://data",
                             {.plain = key, .obscured = {}});
    ASSERT_FALSE(made) << key;
    EXPECT_THAT(made.error().message, HasSubstr("its secret_access_key has characters"));
  }
  const auto lines = remote(R"(url: "s3://" user: "AK" secret: "k")", "s3://data",
                            {.plain = "a\nb\nc", .obscured = {}});
  ASSERT_FALSE(lines);
  EXPECT_THAT(lines.error().message, HasSubstr("more than two lines"));
}

TEST(Rclone, OldReleasesAreNotUsed) {
  EXPECT_EQ(parse_version("rclone v1.60.1-DEV\n- os/version: debian 12\n"), "1.60.1");
  EXPECT_EQ(parse_version("sh: rclone: not found"), "");
  for (const char* good : {"1.60", "1.60.1", "1.65.2", "2.0"}) EXPECT_TRUE(is_new_enough(good));
  for (const char* old : {"", "1", "1.53.3", "1.6", "0.99"})
    EXPECT_FALSE(is_new_enough(old)) << old;
}

TEST(Rclone, OnlyPasswordsAreObscured) {
  const auto needs = [](const char* url, std::string_view plain) {
    v1::StoreProfile profile;
    profile.set_url(url);
    return needs_obscured(profile, plain);
  };
  EXPECT_TRUE(needs("webdav://h", "pw"));
  EXPECT_TRUE(needs("sftp://h", "pw"));
  EXPECT_FALSE(needs("sftp://h", "-----BEGIN OPENSSH PRIVATE KEY-----\n"));
  EXPECT_FALSE(needs("s3://data", "SK"));
  EXPECT_FALSE(needs("webdav://h", ""));
}

}  // namespace
}  // namespace muster::store
