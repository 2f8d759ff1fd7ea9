#include "common/store/store_url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::store {
namespace {

using testing::HasSubstr;

TEST(StoreUrl, IsTakenApart) {
  EXPECT_EQ(*parse_url("obs://data/wiki/train.mindrecord"),
            (Url{.scheme = Scheme::Obs, .place = "data", .path = "wiki/train.mindrecord"}));
  EXPECT_EQ(*parse_url("s3://my.bucket/"),
            (Url{.scheme = Scheme::S3, .place = "my.bucket", .path = ""}));
  EXPECT_EQ(*parse_url("sftp://[fe80::1]:2222//srv/a b/"),
            (Url{.scheme = Scheme::Sftp, .place = "[fe80::1]:2222", .path = "srv/a b"}));
  EXPECT_EQ(parse_url("obs://data/a%20b")->path, "a%20b") << "nothing is decoded";
  EXPECT_EQ(text_of(*parse_url("obs://data/a/b/")), "obs://data/a/b");
  EXPECT_EQ(text_of(*parse_store_url("obs://")), "obs://");
}

TEST(StoreUrl, WhatIsNoneIsRefusedWithTheReason) {
  const auto why = [](std::string_view text) {
    const auto url = parse_url(text);
    return url ? "taken as " + text_of(*url) : url.error().message;
  };
  EXPECT_EQ(why("/data"),
            "begins with none of obs:// s3:// sftp:// webdav:// http:// https:// dir://");
  EXPECT_EQ(why("gs://bucket/x"), why("/data"));
  EXPECT_THAT(why("obs://"), HasSubstr("names no bucket"));
  EXPECT_THAT(why("obs:///key"), HasSubstr("names no bucket"));
  EXPECT_THAT(why("obs://a b/x"), HasSubstr("is no name of a bucket"));
  EXPECT_THAT(why("obs://bucket/a/../b"), HasSubstr("its path has '..'"));
  EXPECT_THAT(why("obs://bucket/a//b"), HasSubstr("its path has '//'"));
  EXPECT_THAT(why("obs://bucket/a\nb"), HasSubstr("control characters"));
  EXPECT_THAT(why("sftp://ann:pw@host/x"), HasSubstr("has no place in a URL"));
  EXPECT_THAT(why("sftp://host:70000/x"), HasSubstr("is not a port"));
  EXPECT_THAT(why("https://ho st/x"), HasSubstr("is no HOST"));
  EXPECT_THAT(why("obs://bucket/" + std::string(3'000, 'x')), HasSubstr("at most 2048"));
}

TEST(StoreUrl, TheLongestStoreThatIsForItWins) {
  const Url url = *parse_url("obs://data/wiki/train");
  const auto matched = [&](std::string_view store) { return match(*parse_store_url(store), url); };
  EXPECT_EQ(matched("s3://data"), 0U);
  EXPECT_EQ(matched("obs://data2"), 0U);
  EXPECT_EQ(matched("obs://data/wik"), 0U);
  EXPECT_EQ(matched("obs://data/wiki/train/x"), 0U);
  EXPECT_GT(matched("obs://"), 0U);
  EXPECT_GT(matched("obs://data"), matched("obs://"));
  EXPECT_GT(matched("obs://data/wiki"), matched("obs://data"));
  EXPECT_GT(matched("obs://data/wiki/train"), matched("obs://data/wiki"));
}

}  // namespace
}  // namespace muster::store
