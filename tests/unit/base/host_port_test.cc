// HOST:PORT is taken apart in one way everywhere.
#include "common/base/host_port.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(HostPort, AHostAndAPort) {
  struct Row {
    const char* text;
    const char* host;
    std::uint16_t port;
  };
  for (const Row& row : {Row{"head:7070", "head", 7070}, Row{"10.0.0.1:0", "10.0.0.1", 0},
                         Row{"[fd00::1]:65535", "fd00::1", 65'535}, Row{"::1:70", "::1", 70}}) {
    const auto parsed = parse_host_port(row.text);
    ASSERT_TRUE(parsed) << row.text;
    EXPECT_EQ(parsed->host, row.host);
    EXPECT_EQ(parsed->port, row.port);
  }
}

TEST(HostPort, WhatIsNone) {
  for (const char* text : {"", "head", ":70"})
    EXPECT_EQ(parse_host_port(text).error().message, "it is not HOST:PORT") << text;
  for (const char* text : {"head:", "head:7x", "head:70000", "head:-1", "head: 7", "[::1]"})
    EXPECT_EQ(parse_host_port(text).error().message,
              "what follows the last ':' is not a port (0..65535)")
        << text;
  EXPECT_EQ(parse_host_port("head:0", 1).error().message,
            "what follows the last ':' is not a port (1..65535)");
}

}  // namespace
}  // namespace muster
