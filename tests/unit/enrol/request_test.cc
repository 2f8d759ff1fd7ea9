#include "common/enrol/request.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/digest/sha256.h"
#include "common/enrol/frame.h"
#include "muster/v1/enrolment.pb.h"

namespace muster::enrol {
namespace {

const std::string kBinding(kBindingBytes, 'b');
const std::string kCa(64, 'c');

Token token() { return {.id = "t1", .secret = "planted-secret", .ca_digest = kCa}; }

TEST(EnrolProof, TheText) {
  EXPECT_EQ(proof_text(Purpose::Join, kBinding, "key", "n1"),
            "muster-enrol-1\njoin\n" + kBinding + sha256_hex("key") + "n1");
  EXPECT_EQ(proof_text(Purpose::Renew, kBinding, "key", "n1"),
            "muster-enrol-1\nrenew\n" + kBinding + sha256_hex("key") + "n1");
}

TEST(EnrolRequest, BackAndForth) {
  const pki::Key key = *pki::Key::generate(), registered = *pki::Key::generate();
  const auto join = parse_request(*join_request(token(), "n1", key, kBinding));
  ASSERT_TRUE(join) << join.error().message;
  EXPECT_EQ(join->purpose, Purpose::Join);
  EXPECT_EQ(join->node, "n1");
  EXPECT_EQ(join->token_id, "t1");
  EXPECT_EQ(join->secret, "planted-secret");
  EXPECT_EQ(join->key.public_digest(), key.public_digest());
  EXPECT_TRUE(check_proof(*join, kBinding));
  EXPECT_FALSE(check_proof(*join, std::string(kBindingBytes, 'c')));

  const auto renew = parse_request(*renew_request("n1", registered, key, kBinding));
  ASSERT_TRUE(renew) << renew.error().message;
  EXPECT_EQ(renew->purpose, Purpose::Renew);
  EXPECT_EQ(renew->registered_key->public_digest(), registered.public_digest());
  EXPECT_TRUE(check_proof(*renew, kBinding));
}

TEST(EnrolRequest, WhatIsUnsound) {
  const pki::Key key = *pki::Key::generate();
  const auto refused = [&](auto change) {
    v1::EnrolRequest request;
    EXPECT_TRUE(request.ParseFromString(*join_request(token(), "n1", key, kBinding)));
    change(request);
    const auto parsed = parse_request(request.SerializeAsString());
    EXPECT_FALSE(parsed);
    return parsed ? std::string() : parsed.error().message;
  };
  using Request = v1::EnrolRequest;
  EXPECT_TRUE(refused([](Request& r) { r.clear_ask(); }).contains("asks for nothing"));
  EXPECT_TRUE(refused([](Request& r) { r.mutable_join()->set_node("../n"); }).contains("no name"));
  EXPECT_TRUE(refused([](Request& r) { r.mutable_join()->clear_secret(); }).contains("token"));
  EXPECT_TRUE(refused([](Request& r) {
                r.mutable_join()->set_token_id(std::string(kTokenPartMost + 1, 'a'));
              }).contains("token"));
  EXPECT_TRUE(refused([](Request& r) {
                r.mutable_join()->mutable_public_key()->push_back('x');
              }).contains("bytes behind it"));
  EXPECT_TRUE(refused([](Request& r) {
                r.mutable_join()->clear_public_key();
              }).contains("does not decode"));
  EXPECT_FALSE(parse_request("\xff\xff"));
  EXPECT_FALSE(parse_request(std::string(kFrameBytesMost + 1, '\0')));
}

TEST(EnrolFrame, Lengths) {
  EXPECT_EQ(in_frame("abc"), std::string("\0\0\0\3abc", 7));
  EXPECT_EQ(length_in({0, 0, 0, 3}), 3U);
  EXPECT_EQ(length_in({0, 0, 0x40, 0}), kFrameBytesMost);
  EXPECT_EQ(length_in({0, 0, 0x40, 1}), std::nullopt);
  EXPECT_EQ(length_in({0, 0, 0, 0}), std::nullopt);
  EXPECT_EQ(length_in({0xff, 0xff, 0xff, 0xff}), std::nullopt);
}

TEST(EnrolToken, TheText) {
  const std::string text = "muster-join-1:t1:planted-secret:" + kCa;
  EXPECT_EQ(token_text(token()), text);
  EXPECT_EQ(*parse_token(" " + text + "\n"), token());
  for (const std::string& wrong :
       {std::string(), std::string("muster-join-1:t1:planted-secret"), text + "0",
        "muster-join-2" + text.substr(13), text + ":x", "muster-join-1::planted-secret:" + kCa,
        text + std::string(1, '\0'), std::string(10'000, 'x')}) {
    const auto parsed = parse_token(wrong);
    ASSERT_FALSE(parsed) << wrong;
    EXPECT_EQ(parsed.error().code, ErrorCode::InvalidArgument);
    EXPECT_FALSE(parsed.error().message.contains("planted-secret"));
  }
}

TEST(EnrolToken, TheFileMustBePrivate) {
  std::string dir = "/tmp/muster-token-XXXXXX";
  ASSERT_NE(::mkdtemp(dir.data()), nullptr);
  const std::filesystem::path path = std::filesystem::path(dir) / "token";
  std::ofstream(path) << token_text(token()) << "\n";
  ::chmod(path.c_str(), 0640);
  const auto open = read_token(path);
  ASSERT_FALSE(open);
  EXPECT_EQ(open.error().code, ErrorCode::NotAllowed);
  EXPECT_TRUE(open.error().message.contains("others may read it")) << open.error().message;
  ::chmod(path.c_str(), 0600);
  EXPECT_EQ(*read_token(path), token());
  std::filesystem::remove_all(dir);
  EXPECT_EQ(read_token(path).error().code, ErrorCode::NotFound);
}

}  // namespace
}  // namespace muster::enrol
