#include "deploy/ssh/known_hosts.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <thread>

#include "common/io/file.h"
#include "deploy/ssh/host_key.h"
#include "deploy/ssh/host_names.h"
#include "deploy/ssh/known_hosts_file.h"

namespace muster::ssh {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string key(const std::string& type, const std::string& text) {
  return string_bytes(type) + string_bytes(text);
}
const std::string kEd = key("ssh-ed25519", "one"), kEdTwo = key("ssh-ed25519", "two"),
                  kEcdsa = key("ecdsa-sha2-nistp256", "three"), kRsa = key("ssh-rsa", "four");

std::string line(const std::string& names, const std::string& blob) {
  return names + " " + key_type(blob) + " " + to_base64(blob) + "\n";
}
KnownHosts hosts(const std::string& text) {
  KnownHosts known;
  known.add("kh", text);
  return known;
}

TEST(KnownHosts, NamesArePatternsWithNegationsAndPorts) {
  const KnownHosts known = hosts("# a comment\n\n" + line("n1,n2,10.0.0.1", kEd) +
                                 line("*.lab,!bad.lab,gpu-??", kEcdsa) + line("[n1]:2222", kEdTwo));
  EXPECT_EQ(known.check("n2", 22, kEd).state, KeyState::Known);
  EXPECT_EQ(known.check("N1", 22, kEd).state, KeyState::Known);
  EXPECT_EQ(known.check("a.lab", 22, kEcdsa).state, KeyState::Known);
  EXPECT_EQ(known.check("gpu-01", 22, kEcdsa).state, KeyState::Known);
  EXPECT_EQ(known.check("gpu-001", 22, kEcdsa).state, KeyState::Unknown);
  EXPECT_EQ(known.check("bad.lab", 22, kEcdsa).state, KeyState::Unknown);
  EXPECT_EQ(known.check("n1", 2222, kEdTwo).state, KeyState::Known);
  EXPECT_EQ(known.check("n1", 22, kEdTwo).state, KeyState::Changed);
  EXPECT_EQ(known.check("n3", 22, kEd).state, KeyState::Unknown);
  EXPECT_EQ(known.problems().size(), 0U);
}

TEST(KnownHosts, AChangedKeyNamesTheRecordedOneOfItsType) {
  const KnownHosts known = hosts(line("n1", kEcdsa) + line("n1", kEd));
  const KeyAnswer answer = known.check("n1", 22, kEdTwo);
  EXPECT_EQ(answer.state, KeyState::Changed);
  EXPECT_EQ(answer.at.text(), "kh:2");
  EXPECT_EQ(answer.recorded_type, "ssh-ed25519");
  // As with ssh(1), a key of another type is no new host.
  EXPECT_EQ(known.check("n1", 22, kRsa).state, KeyState::Changed);
  EXPECT_THAT(known.types("n1", 22), ElementsAre("ecdsa-sha2-nistp256", "ssh-ed25519"));
}

TEST(KnownHosts, ANameWithoutPortCountsForOtherPortsToo) {
  const KnownHosts known = hosts(line("n1", kEd));
  EXPECT_EQ(known.check("n1", 2222, kEd).state, KeyState::Known);
  EXPECT_EQ(known.check("n1", 2222, kEdTwo).state, KeyState::Unknown);
  EXPECT_THAT(known.types("n1", 2222), ElementsAre("ssh-ed25519"));
}

TEST(KnownHosts, ARevokedKeyIsNeverAccepted) {
  const KnownHosts known = hosts(line("n1", kEd) + "@revoked " + line("*", kEd));
  const KeyAnswer answer = known.check("n1", 22, kEd);
  EXPECT_EQ(answer.state, KeyState::Revoked);
  EXPECT_EQ(answer.at.text(), "kh:2");
  EXPECT_EQ(hosts("@revoked " + line("n1", kEd)).check("n1", 22, kEdTwo).state, KeyState::Unknown);
  EXPECT_EQ(hosts("@revoked " + line("n1", kEd)).check("n1", 22, kEd).state, KeyState::Revoked);
}

TEST(KnownHosts, HashedNamesAreHmacSha1) {
  // The hash is by Python's hmac; session_test.cc reads a file of ssh-keygen -H.
  const std::string salt = "12345678901234567890";
  const std::string hashed = hashed_entry("n1", salt), ported = hashed_entry("[n1]:2222", salt);
  EXPECT_EQ(hashed, "|1|MTIzNDU2Nzg5MDEyMzQ1Njc4OTA=|Q8e3gnl4O1xRQW+A5f/ZmibVEiQ=");
  const KnownHosts known = hosts(line(hashed, kEd) + line(ported, kEdTwo));
  EXPECT_EQ(known.check("N1", 22, kEd).state, KeyState::Known);
  EXPECT_EQ(known.check("n2", 22, kEd).state, KeyState::Unknown);
  EXPECT_EQ(known.check("n1", 2222, kEdTwo).state, KeyState::Known);
}

TEST(KnownHosts, BadLinesAreSkippedWithTheirPlace) {
  const std::string good = line("n1", kEd);
  const KnownHosts known = hosts(
      "n1\nn1 ssh-ed25519\nn1 ssh-ed25519 AAAA\nn1 ssh-rsa " + to_base64(kEd) +
      "\n@marker x y z\n@cert-authority " + good + "|1|AAAA|BBBB ssh-ed25519 " + to_base64(kEd) +
      "\nn1 ssh-ed25519 ***=\n" + std::string(kLineBytesMost + 1, 'x') + "\n" + good);
  EXPECT_THAT(known.problems(),
              ElementsAre("kh:1: the line has no key; it is skipped",
                          "kh:2: the line has no key; it is skipped",
                          "kh:3: the key cannot be read; it is skipped",
                          "kh:4: the key is not of the type named; it is skipped",
                          "kh:5: the marker is unknown; it is skipped",
                          "kh:6: certificates of hosts are not used; it is skipped",
                          "kh:7: the hashed name cannot be read; it is skipped",
                          "kh:8: the key cannot be read; it is skipped",
                          "kh:9: the line has more than 64 KiB; it is skipped"));
  EXPECT_EQ(known.check("n1", 22, kEd).at.text(), "kh:10");
  std::string many;
  for (std::size_t i = 0; i < 100; ++i) many += "x\n";
  EXPECT_EQ(hosts(many).problems().size(), kProblemsMost + 1);
  EXPECT_EQ(hosts(many).problems().back(), "80 more lines are skipped");
}

TEST(KnownHosts, ALineForANewKeyIsReadBack) {
  for (const std::string& salt : {std::string(), std::string(kSaltBytes, 's')}) {
    for (const std::uint16_t port : {22, 2200}) {
      const auto text = known_hosts_line("Host.Name", port, kEd, salt);
      ASSERT_TRUE(text.has_value());
      EXPECT_EQ(hosts(*text).check("host.name", port, kEd).state, KeyState::Known) << *text;
    }
  }
  EXPECT_EQ(*known_hosts_line("n1", 22, kEd, {}), line("n1", kEd));
  for (const char* name : {"", "a b", "a,b", "*", "!a", "|1|", "#a", "@a", "a\nb"})
    EXPECT_FALSE(known_hosts_line(name, 22, kEd, {}).has_value()) << name;
}

class KnownHostsFile : public ::testing::Test {
 protected:
  KnownHostsFile() {
    std::string path = std::filesystem::temp_directory_path() / "known-hosts.XXXXXX";
    folder_ = ::mkdtemp(path.data());
  }
  ~KnownHostsFile() override { std::filesystem::remove_all(folder_); }
  std::string folder_;
};

TEST_F(KnownHostsFile, ANewKeyIsAppendedAndNothingIsReplaced) {
  const std::string file = folder_ + "/ssh/known_hosts";
  const auto record = [&](const std::string& name, const std::string& blob) {
    const auto before = record_key(file, {.name = name, .port = 22, .blob = blob});
    return before ? before->state : KeyState::Revoked;
  };
  EXPECT_EQ(record("n1", kEd), KeyState::Unknown);
  EXPECT_EQ(record("n1", kEd), KeyState::Known);
  EXPECT_EQ(record("n1", kEdTwo), KeyState::Changed);
  EXPECT_EQ(*io::read_file(file, kFileBytesMost), line("n1", kEd));
  struct stat info{};
  ASSERT_EQ(::stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  // A last line without its end is not joined with the new one.
  ASSERT_TRUE(io::replace_file(file, "# no end", io::Durable::No).has_value());
  EXPECT_EQ(record("n2", kEcdsa), KeyState::Unknown);
  EXPECT_EQ(*io::read_file(file, kFileBytesMost), "# no end\n" + line("n2", kEcdsa));
}

TEST_F(KnownHostsFile, WritersAtTheSameTimeRecordAHostOnce) {
  const std::string file = folder_ + "/known_hosts";
  std::vector<std::jthread> writers;
  for (int i = 0; i < 8; ++i)
    writers.emplace_back([&] {
      for (const char* name : {"n1", "n2", "n3"})
        EXPECT_TRUE(record_key(file, {.name = name, .port = 22, .blob = kEd}).has_value());
    });
  writers.clear();
  EXPECT_EQ(io::read_file(file, kFileBytesMost)->size(), 3 * line("n1", kEd).size());
}

TEST_F(KnownHostsFile, FilesThatDoNotExistAreEmptyAndOthersMustBeReadable) {
  ASSERT_TRUE(io::replace_file(folder_ + "/b", line("n1", kEd), io::Durable::No).has_value());
  const auto known = read_known_hosts({folder_ + "/a", folder_ + "/b"});
  ASSERT_TRUE(known.has_value());
  EXPECT_EQ(known->check("n1", 22, kEd).at.text(), folder_ + "/b:1");
  EXPECT_FALSE(read_known_hosts({folder_}).has_value());
}

}  // namespace
}  // namespace muster::ssh
