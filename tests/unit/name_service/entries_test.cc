// The texts of tables, sound and hostile.
#include "common/name_service/entries.h"

#include <gtest/gtest.h>

namespace muster::name_service {
namespace {

using Ids = std::vector<std::uint32_t>;
using Texts = std::vector<std::string>;

const User kAnn{.name = "ann", .uid = 1000, .gid = 100, .home = "/home/ann", .shell = "/bin/bash"};

TEST(Users, OneLine) {
  EXPECT_EQ(parse_user("ann:x:1000:100:Ann:/home/ann:/bin/bash"), kAnn);
  EXPECT_EQ(parse_user("ann:x:1000:100:\xC4nn, in latin-1:/home/ann:/bin/bash"), kAnn)
      << "nobody uses the person's name";
  EXPECT_EQ(parse_user("DOMAIN\\ann b:*:4294967294:0:::"),
            (User{.name = "DOMAIN\\ann b", .uid = 4294967294, .gid = 0, .home = "", .shell = ""}));
}

TEST(Users, HostileLines) {
  for (const std::string line : {
           "",
           ":x:1:1::/:",
           "ann:x:1000:100:Ann:/home/ann",
           "ann:x:1000:100:Ann:/home/ann:/bin/bash:more",
           "ann:x::100:Ann:/home/ann:/bin/bash",
           "ann:x:-1:100:Ann:/home/ann:/bin/bash",
           "ann:x:+1:100:Ann:/home/ann:/bin/bash",
           "ann:x: 1:100:Ann:/home/ann:/bin/bash",
           "ann:x:0x10:100:Ann:/home/ann:/bin/bash",
           "ann:x:1000 :100:Ann:/home/ann:/bin/bash",
           "ann:x:4294967295:100:Ann:/home/ann:/bin/bash",
           "ann:x:4294967296:100:Ann:/home/ann:/bin/bash",
           "ann:x:1000:18446744073709551616:Ann:/home/ann:/bin/bash",
           "ann:x:1000:100:Ann:/home/\x1B[2J:/bin/bash",
           "ann:x:1000:100:Ann:/home/ann:/bin/bash\r",
           "a\nn:x:1000:100:Ann:/home/ann:/bin/bash",
           "\xFF\xFE:x:1000:100:Ann:/home/ann:/bin/bash",
           "+::::::",
       })
    EXPECT_FALSE(parse_user(line)) << line;
  EXPECT_FALSE(parse_user(std::string("ann\0:x:1:1::/:", 14)));
}

TEST(Users, InAFile) {
  const std::string passwd =
      "# a comment\n\n+@admins::::::\nann:x:none:100:Ann:/home/bad:/bin/sh\n"
      "ann:x:1000:100:Ann:/home/ann:/bin/bash\nann:x:1:1:Ann:/second:/bin/sh\n"
      "bob:x:1000:100:Bob:/home/bob:/bin/sh";
  EXPECT_EQ(user_in(passwd, "ann"), kAnn) << "the first sound one";
  EXPECT_EQ(user_in(passwd, 1000U), kAnn);
  EXPECT_EQ(user_in(passwd, "bob")->home, "/home/bob") << "the last line has no end";
  EXPECT_FALSE(user_in(passwd, "an"));
  EXPECT_FALSE(user_in(passwd, 2U));
  EXPECT_FALSE(user_in("", 0U));
}

TEST(Groups, InAFile) {
  const std::string group =
      "# a comment\nroot:x:0:\nusers:x:100:ann\ncards:x:200:bob,ann,carl\nbad:x:-1:ann\n"
      "twice:x:200:ann,ann\nlike:x:300:anna,joann\nfields:x:400:ann:more\nlast:x:4294967294:ann";
  EXPECT_EQ(groups_in(group, "ann"), (Ids{100, 200, 4294967294}));
  EXPECT_EQ(groups_in(group, "carl"), Ids{200});
  EXPECT_EQ(groups_in(group, ""), Ids{});
  EXPECT_EQ(groups_in("", "ann"), Ids{});
}

TEST(Groups, AsGetentPrintsThem) {
  EXPECT_EQ(parse_groups("ann                   100 200\n", "ann"), (Ids{100, 200}));
  EXPECT_EQ(parse_groups("ann                  \n", "ann"), Ids{});
  EXPECT_EQ(parse_groups("ann\n", "ann"), Ids{});
  EXPECT_EQ(parse_groups("a b c                 7\n", "a b c"), Ids{7});
  for (const std::string answer :
       {"", "\n", "bob 100\n", "anna 100\n", "ann 100 x\n", "ann 100 -1\n", "ann 4294967295\n",
        "ann 100\nann 200\n", "ann 100\n\n", "ann 100,200\n", "an"})
    EXPECT_FALSE(parse_groups(answer, "ann")) << answer;
}

TEST(Addresses, OnlyNumericOnes) {
  for (const std::string text :
       {"127.0.0.1", "0.0.0.0", "::", "::1", "fe80::1%eth0", "fe80::1%2", "::ffff:1.2.3.4"})
    EXPECT_TRUE(is_address(text)) << text;
  for (const std::string text :
       {"", "localhost", "127.1", "0x7f.0.0.1", "1.2.3.4.5", "1.2.3.256", "1.2.3.4%eth0",
        "fe80::1%", "%eth0", "fe80::1%a-name-that-is-too-long", "fe80::1%a b", "fe80::1%a%b",
        "[::1]", " ::1", "1.2.3.4\n"})
    EXPECT_FALSE(is_address(text)) << text;
  EXPECT_FALSE(is_address(std::string("1.2.3.4\0x", 9)));
}

TEST(Addresses, InAFile) {
  const std::string hosts =
      "127.0.0.1 localhost\n#10.0.0.9 node7\n\t10.0.0.7\tNode7.example  node7 # node8\n"
      "node7 node7\n10.0.0.7 node7\nfe80::7%eth0 node7\n10.0.0.300 node7\n10.0.0.8 node70";
  EXPECT_EQ(addresses_in(hosts, "node7"), (Texts{"10.0.0.7", "fe80::7%eth0"}));
  EXPECT_EQ(addresses_in(hosts, "NODE7.EXAMPLE"), Texts{"10.0.0.7"});
  EXPECT_EQ(addresses_in(hosts, "node70"), Texts{"10.0.0.8"});
  EXPECT_EQ(addresses_in(hosts, "node8"), Texts{}) << "a comment";
  EXPECT_EQ(addresses_in(hosts, "10.0.0.8"), Texts{});
  EXPECT_EQ(addresses_in("", "node7"), Texts{});
}

TEST(Addresses, AsGetentPrintsThem) {
  EXPECT_EQ(parse_addresses("10.0.0.7        STREAM node7.example\n10.0.0.7        DGRAM  \n"
                            "10.0.0.7        RAW    \nfe80::7%eth0    STREAM \n"
                            "10.0.0.7        STREAM \n"),
            (Texts{"10.0.0.7", "fe80::7%eth0"}));
  for (const std::string answer :
       {"", "\n", "10.0.0.7 DGRAM\n", "node7 STREAM 10.0.0.7\n",
        "10.0.0.7 STREAM node7\n-oProxyCommand=x STREAM\n", "10.0.0.7 STREAM\n\n"})
    EXPECT_FALSE(parse_addresses(answer)) << answer;
}

}  // namespace
}  // namespace muster::name_service
