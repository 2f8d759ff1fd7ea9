#include "controller/secrets/vault.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <utime.h>

#include <fstream>
#include <iterator>
#include <string>

namespace muster::controller {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

class VaultTest : public testing::Test {
 protected:
  VaultTest() {
    std::string pattern = testing::TempDir() + "vault-XXXXXX";
    dir_ = ::mkdtemp(pattern.data());
  }
  ~VaultTest() override { fs::remove_all(dir_); }

  [[nodiscard]] Result<Vault> opened() const { return Vault::open(items(), key()); }
  [[nodiscard]] fs::path items() const { return dir_ / "secrets"; }
  [[nodiscard]] fs::path key() const { return dir_ / "secrets.key"; }
  static std::string bytes_of(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void write(const fs::path& file, const std::string& bytes) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
  }
  static mode_t mode_of(const fs::path& file) {
    struct stat status{};
    return ::stat(file.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
  }

  fs::path dir_;
};

TEST_F(VaultTest, AValueComesBackAndStandsNowhere) {
  const std::string value = "hunter2-\xc3\xa4\n-----BEGIN KEY-----\nAAAA\n";
  std::string item;
  {
    const auto vault = opened();
    ASSERT_TRUE(vault) << vault.error().message;
    const auto put = vault->put(value);
    ASSERT_TRUE(put) << put.error().message;
    item = *put;
    EXPECT_NE(*vault->put(value), item) << "each has a name of its own";
  }
  const auto again = opened();
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again->get(item), value);
  EXPECT_EQ(mode_of(items()), 0700U);
  EXPECT_EQ(mode_of(items() / item), 0600U);
  EXPECT_EQ(mode_of(key()), 0600U);
  for (const auto& file : fs::recursive_directory_iterator(dir_)) {
    if (!file.is_regular_file()) continue;
    EXPECT_THAT(bytes_of(file.path()), Not(HasSubstr("hunter2"))) << file.path();
    EXPECT_THAT(bytes_of(file.path()), Not(HasSubstr("BEGIN KEY"))) << file.path();
  }
  ASSERT_TRUE(again->remove(item));
  EXPECT_EQ(again->get(item).error().code, ErrorCode::NotFound);
  EXPECT_TRUE(again->remove(item)) << "it is gone already";
}

TEST_F(VaultTest, WhatWasChangedOrPutInAnothersPlaceDoesNotOpen) {
  const auto vault = opened();
  ASSERT_TRUE(vault);
  const std::string one = *vault->put("of ann"), other = *vault->put("of bob");
  const std::string sealed = bytes_of(items() / one);
  for (std::size_t at = 0; at < sealed.size(); ++at) {
    std::string changed = sealed;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    write(items() / one, changed);
    const auto got = vault->get(one);
    ASSERT_FALSE(got) << at;
    EXPECT_EQ(got.error().code, ErrorCode::DataLoss) << at;
  }
  for (const std::string& cut :
       {sealed.substr(0, sealed.size() - 1), std::string(), sealed.substr(0, 20), sealed + "x"}) {
    write(items() / one, cut);
    EXPECT_FALSE(vault->get(one));
  }
  write(items() / one, bytes_of(items() / other));
  EXPECT_EQ(vault->get(one).error().code, ErrorCode::DataLoss);
  write(items() / one, sealed);
  EXPECT_EQ(*vault->get(one), "of ann");
  for (const char* name : {"", "..", "../secrets.key", "0", "/etc/passwd"})
    EXPECT_EQ(vault->get(name).error().code, ErrorCode::InvalidArgument) << name;
}

TEST_F(VaultTest, WithoutItsKeyItIsNotMadeAnew) {
  std::string item;
  {
    const auto vault = opened();
    ASSERT_TRUE(vault);
    item = *vault->put("value");
  }
  const std::string text = bytes_of(key());
  fs::rename(key(), dir_ / "elsewhere");
  const auto missing = opened();
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::DataLoss);
  EXPECT_THAT(missing.error().message, HasSubstr("put it back (--secrets-key)"));
  EXPECT_FALSE(fs::exists(key())) << "a new key would open nothing, and hide the loss";
  const auto found = Vault::open(items(), dir_ / "elsewhere");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(*found->get(item), "value");
  write(key(), "muster-secrets-key-1:0123\n");
  ::chmod(key().c_str(), 0600);
  EXPECT_EQ(opened().error().code, ErrorCode::InvalidArgument);
  write(key(), text);
  ::chmod(key().c_str(), 0640);
  const auto open_to_others = opened();
  ASSERT_FALSE(open_to_others);
  EXPECT_EQ(open_to_others.error().code, ErrorCode::NotAllowed);
  EXPECT_THAT(open_to_others.error().message, Not(HasSubstr(text.substr(25, 16))));
}

TEST_F(VaultTest, OldItemsThatNothingNamesGo) {
  const auto vault = opened();
  ASSERT_TRUE(vault);
  const std::string named = *vault->put("1"), fresh = *vault->put("2"), old = *vault->put("3");
  const WallTime now = system_clock().now().wall;
  const auto written = [&](const std::string& item, Duration before) {
    const std::time_t at =
        std::chrono::duration_cast<std::chrono::seconds>((now - before).time_since_epoch()).count();
    const utimbuf times{.actime = at, .modtime = at};
    ASSERT_EQ(::utime((items() / item).c_str(), &times), 0);
  };
  written(named, std::chrono::hours(24 * 100));
  written(fresh, std::chrono::hours(24 * 29));
  written(old, std::chrono::hours(24 * 31));
  write(items() / "notes.txt", "not ours");
  vault->remove_unnamed({named}, now);
  EXPECT_TRUE(vault->get(named));
  EXPECT_TRUE(vault->get(fresh)) << "a journal that is put back may name it";
  EXPECT_EQ(vault->get(old).error().code, ErrorCode::NotFound);
  EXPECT_TRUE(fs::exists(items() / "notes.txt"));
}

}  // namespace
}  // namespace muster::controller
