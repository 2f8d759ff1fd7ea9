#include "agent/store/rclone_verdict.h"

#include <gtest/gtest.h>

namespace muster::agent {
namespace {

Verdict of(std::string_view message, bool has_own_ca = false) {
  return verdict_of(message, "/inputs/cache/partial/f", has_own_ca);
}

TEST(RcloneVerdict, WhatTheStoreRefusesIsFinal) {
  for (const char* message :
       {"AccessDenied: Access Denied\n\tstatus code: 403", "NoSuchBucket: it is not there",
        "ssh: handshake failed: ssh: unable to authenticate, attempted methods [none password]",
        "ssh: handshake failed: knownhosts: key mismatch", "couldn't list files: 401 Unauthorized",
        "open /data/wiki/a: permission denied"})
    EXPECT_EQ(of(message), Verdict::Refused) << message;
}

TEST(RcloneVerdict, AnOutageIsNot) {
  for (const char* message :
       {"dial tcp 127.0.0.1:9000: connect: connection refused", "unexpected EOF",
        "SlowDown: please reduce your request rate", "", "context deadline exceeded"})
    EXPECT_EQ(of(message), Verdict::TryAgain) << message;
}

// Regression: the name of an object decided what had happened.
TEST(RcloneVerdict, WordsInAUrlDoNotCount) {
  EXPECT_EQ(of("Get \"https://end/b/AccessDenied/permission denied?x=1\": EOF"), Verdict::TryAgain);
  EXPECT_EQ(of("Get \"https://end/NoSuchKey\": dial tcp: i/o timeout"), Verdict::TryAgain);
}

TEST(RcloneVerdict, OfANodesOwnTroubleAnotherNodeMayBeFree) {
  EXPECT_EQ(of("open /inputs/cache/partial/f/a: permission denied"), Verdict::NodeFault);
  EXPECT_EQ(of("mkdir /inputs/cache/partial/f/x: read-only file system"), Verdict::NodeFault);
  EXPECT_EQ(of("RequestTimeTooSkewed: the difference is too large\n\tstatus code: 403"),
            Verdict::NodeFault);
  const std::string_view unknown_ca = "x509: certificate signed by unknown authority";
  EXPECT_EQ(of(unknown_ca), Verdict::NodeFault);
  EXPECT_EQ(of(unknown_ca, true), Verdict::Refused);
  EXPECT_EQ(of("write /inputs/cache/partial/f/a: no space left on device"), Verdict::DiskFull);
}

TEST(RcloneVerdict, AbsenceIsNoRefusal) {
  EXPECT_EQ(of("directory not found"), Verdict::Absent);
  EXPECT_EQ(of("NoSuchKey: The specified key does not exist"), Verdict::Absent);
  EXPECT_EQ(of("is a directory not a file"), Verdict::Directory);
}

}  // namespace
}  // namespace muster::agent
