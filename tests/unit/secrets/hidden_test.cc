#include "controller/secrets/hidden.h"

#include <gtest/gtest.h>

#include <string>

namespace muster::controller {
namespace {

TEST(Hidden, EachPlaceIsReplaced) {
  Hidden hidden;
  EXPECT_EQ(hidden.hide("nothing is hidden"), "nothing is hidden");
  hidden.add("hf", "s3cr3t-token");
  EXPECT_EQ(hidden.hide("login s3cr3t-token:s3cr3t-tokens3cr3t-token failed"),
            "login [secret hf]:[secret hf][secret hf] failed");
  EXPECT_EQ(hidden.hide("the s3cr3t-toke is a part"), "the s3cr3t-toke is a part");
  EXPECT_EQ(hidden.hide(""), "");
}

TEST(Hidden, Base64OfItToo) {
  Hidden hidden;
  hidden.add("hf", "user:pa?>ss\xff");  // echo -n | base64: dXNlcjpwYT8+c3P/
  EXPECT_EQ(hidden.hide("Authorization: Basic dXNlcjpwYT8+c3P/ x"),
            "Authorization: Basic [secret hf] x");
  EXPECT_EQ(hidden.hide("token=dXNlcjpwYT8-c3P_&x"), "token=[secret hf]&x");
  Hidden padded;
  padded.add("one", "abcd");  // YWJjZA==
  EXPECT_EQ(padded.hide("YWJjZA== YWJjZA"), "[secret one]== [secret one]");
}

TEST(Hidden, EachLineOfAValueOfSeveralLines) {
  Hidden hidden;
  hidden.add("key", "-----BEGIN KEY-----\r\n  MIIEvQIBAD\nab\n-----END KEY-----\n");
  EXPECT_EQ(hidden.hide("at MIIEvQIBAD: -----BEGIN KEY----- ab"),
            "at [secret key]: [secret key] ab");
}

// Regression story: with the shorter one first, the rest of the longer one stood there.
TEST(Hidden, TheLongerOneGoesFirstInWhateverOrder) {
  Hidden one, other;
  one.add("a", "pass");
  one.add("b", "password1");
  other.add("b", "password1");
  other.add("a", "pass");
  for (const Hidden* hidden : {&one, &other})
    EXPECT_EQ(hidden->hide("password1 pass"), "[secret b] [secret a]");
}

TEST(Hidden, ShortValuesWouldHideEverything) {
  Hidden hidden;
  hidden.add("tiny", "abc");
  EXPECT_EQ(hidden.hide("abc"), "abc");
}

// Regression story: agents keep the first 1,024 bytes of a line, and a token may be longer.
TEST(Hidden, PartsAtTheEndsOfALineToo) {
  Hidden hidden;
  hidden.add("jwt", "eyJhbGciOi.eyJzdWIiOi.s1gn4tur3");
  EXPECT_EQ(hidden.hide("401 for Bearer eyJhbGciOi.eyJzdW"), "401 for Bearer [secret jwt]");
  EXPECT_EQ(hidden.hide("s1gn4tur3 was not accepted"), "[secret jwt] was not accepted");
  EXPECT_EQ(hidden.hide("eyJhbGciOi.eyJzdWIiOi.s1gn4tur3"), "[secret jwt]");
  EXPECT_EQ(hidden.hide("ends with eyJhbGc"), "ends with eyJhbGc") << "too short to be told apart";
}

TEST(Hidden, WhereAValueIsNotKnownALineIsLeftOut) {
  Hidden hidden;
  hidden.add("hf", "s3cr3t");
  hidden.hide_all();
  EXPECT_EQ(hidden.hide("anything").find("anything"), std::string::npos);
  EXPECT_EQ(hidden.hide(""), "") << "there is nothing to leave out";
}

}  // namespace
}  // namespace muster::controller
