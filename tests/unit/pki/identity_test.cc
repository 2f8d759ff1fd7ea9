#include "common/pki/identity.h"

#include <gtest/gtest.h>

#include "common/pki/printable.h"

namespace muster::pki {
namespace {

TEST(Identity, EachRoleHasItsUriAndComesBack) {
  const std::pair<Identity, std::string> rows[] = {
      {{.cluster = "c0ffee", .role = Role::Controller, .name = {}}, "muster://c0ffee/controller"},
      {{.cluster = "c0ffee", .role = Role::Node, .name = "gpu-17.rack_2"},
       "muster://c0ffee/node/gpu-17.rack_2"},
      {{.cluster = "0", .role = Role::User, .name = "Ann"}, "muster://0/user/Ann"},
      // a name may be the word of a role
      {{.cluster = "node", .role = Role::Node, .name = "controller"},
       "muster://node/node/controller"}};
  for (const auto& [identity, uri] : rows) {
    EXPECT_EQ(uri_of(identity), uri);
    const auto parsed = parse_identity(uri);
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(*parsed, identity);
  }
}

TEST(Identity, TheLongestNamesComeBackAndLongerOnesAreRefused) {
  const std::string cluster(64, 'a'), name(63, 'n');
  const auto longest = parse_identity("muster://" + cluster + "/node/" + name);
  ASSERT_TRUE(longest) << longest.error().message;
  EXPECT_EQ(longest->cluster, cluster);
  EXPECT_EQ(longest->name, name);
  EXPECT_FALSE(parse_identity("muster://" + cluster + "a/node/n"));
  EXPECT_FALSE(parse_identity("muster://a/node/n" + name));
}

TEST(Identity, OnlyTheExactFormIsOne) {
  using namespace std::string_view_literals;
  for (const std::string_view uri : {
           ""sv,
           "muster://"sv,
           "muster:///"sv,
           "muster:///controller"sv,
           "muster://c0ffee"sv,
           "muster://c0ffee/"sv,
           "muster://c0ffee//controller"sv,
           "muster://c0ffee/controller/"sv,
           "muster://c0ffee/controller/x"sv,
           "muster://c0ffee/controllers"sv,
           "muster://c0ffee/Controller"sv,
           "muster://c0ffee/node"sv,
           "muster://c0ffee/node/"sv,
           "muster://c0ffee/node//n1"sv,
           "muster://c0ffee/node/n1/"sv,
           "muster://c0ffee/node/n1/x"sv,
           "muster://c0ffee/node/."sv,
           "muster://c0ffee/node/.."sv,
           "muster://c0ffee/node/../user/ann"sv,
           "muster://c0ffee/../c0ffee/node/n1"sv,
           "muster://c0ffee/node/-n1"sv,
           "muster://c0ffee/node/_n1"sv,
           "muster://c0ffee/node/n 1"sv,
           "muster://c0ffee/node/n%31"sv,
           "muster://c0ffee/node/n1?x=y"sv,
           "muster://c0ffee/node/n1#x"sv,
           "muster://c0ffee/node/n1,DNS:x"sv,
           "muster://c0ffee/node/n1\n"sv,
           "muster://c0ffee/node/n1\0"sv,
           "muster://c0ffee/node/n1\0/x"sv,
           "muster://c0ffee\0/node/n1"sv,
           "muster://c0ffee/node/n\xc3\xa4"sv,
           "muster://c0ffee/user/"sv,
           "muster://c0ffee/USER/ann"sv,
           "muster://c0ffee/worker/w"sv,
           "muster://C0FFEE/node/n1"sv,
           "muster://c0-ffee/node/n1"sv,
           "muster://c0ffee:80/node/n1"sv,
           "muster://ann@c0ffee/node/n1"sv,
           "muster://c0%66fee/node/n1"sv,
           "MUSTER://c0ffee/node/n1"sv,
           "Muster://c0ffee/node/n1"sv,
           "muster:/c0ffee/node/n1"sv,
           "muster:c0ffee/node/n1"sv,
           "https://c0ffee/node/n1"sv,
           " muster://c0ffee/node/n1"sv,
           "muster://c0ffee/node/n1 "sv,
       }) {
    const auto parsed = parse_identity(uri);
    ASSERT_FALSE(parsed) << uri;
    EXPECT_EQ(parsed.error().code, ErrorCode::InvalidArgument);
  }
  EXPECT_EQ(
      parse_identity("muster://c0ffee/node/\x1b[31m\0"sv).error().message,
      "reading the name 'muster://c0ffee/node/?[31m?' of a certificate: it is not "
      "muster://CLUSTER/controller, muster://CLUSTER/node/NAME or muster://CLUSTER/user/NAME");
}

TEST(Identity, NamesHaveTheRuleOfNodes) {
  for (const char* name : {"n", "0", "N1", "a.b", "a-", "a_",
                           "012345678901234567890123456789012345678901234567890123456789012"})
    EXPECT_TRUE(parse_identity("muster://c/user/" + std::string(name))) << name;
  for (const char* name : {"", ".", "..", "-a", "_a", "a/b", "a b", "a:b", "\xe4",
                           "0123456789012345678901234567890123456789012345678901234567890123"})
    EXPECT_FALSE(parse_identity("muster://c/user/" + std::string(name))) << name;
  EXPECT_FALSE(parse_identity(std::string("muster://c/user/a\0", 18)));
}

TEST(Identity, IsShownToPeople) {
  EXPECT_EQ(text_of({.cluster = "a", .role = Role::Controller, .name = {}}), "the controller");
  EXPECT_EQ(text_of({.cluster = "a", .role = Role::Node, .name = "n1"}), "node 'n1'");
  EXPECT_EQ(text_of({.cluster = "a", .role = Role::User, .name = "ann"}), "user 'ann'");
  EXPECT_EQ(controller_host("c0ffee"), "controller.c0ffee.muster");
}

TEST(Printable, OtherBytesAreReplacedAndALongTextIsCut) {
  EXPECT_EQ(printable("a~ b"), "a~ b");
  EXPECT_EQ(printable(std::string_view("\0\x1b\x7f\xff\n", 5)), "?????");
  EXPECT_EQ(printable(std::string(160, 'x')), std::string(160, 'x'));
  EXPECT_EQ(printable(std::string(161, 'x')), std::string(160, 'x') + "...");
}

}  // namespace
}  // namespace muster::pki
