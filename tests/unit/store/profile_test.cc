#include "common/store/profile.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

namespace muster::store {
namespace {

std::string checked(const std::string& text) {
  v1::StoreProfile profile;
  if (!google::protobuf::TextFormat::ParseFromString(text, &profile)) return "no profile: " + text;
  const auto sound = check_profile(profile);
  return sound ? "" : sound.error().message;
}

TEST(StoreProfile, SoundOnesOfEveryScheme) {
  for (
      const char* text :
      {R"(url: "obs://" endpoint: "https://obs.cn-north-4.myhuaweicloud.com" user: "AK" secret: "k")",
       R"(url: "obs://bkt/d" endpoint: "http://10.0.0.1:9000/" region: "cn-north-4" path_style: true)",
       R"(url: "s3://bkt")",
       R"(url: "s3://bkt" proxy: "http://proxy:3128" ca: "-----BEGIN CERTIFICATE-----\nx")",
       R"(url: "sftp://h:22" user: "ann" secret: "k" host_key: "h ssh-ed25519 AAAA")",
       R"(url: "sftp://h" user: "ann" secret: "k" host_key: "h ssh-rsa A\nh ssh-ed25519 B")",
       R"(url: "webdav://h" endpoint: "http://h:8080" user: "ann" secret: "k")",
       R"(url: "webdav://" endpoint: "http://h:8080" user: "ann" secret: "k")",
       R"(url: "https://mirror.example.org")", R"(url: "dir://data" endpoint: "/mnt/data")"})
    EXPECT_EQ(checked(text), "") << text;
}

TEST(StoreProfile, WhatIsWrongIsNamedByItsField) {
  const std::pair<const char*, const char*> cases[] = {
      {R"(url: "data")",
       "url: begins with none of obs:// s3:// sftp:// webdav:// http:// https:// dir://"},
      {R"(url: "obs://bkt")",
       "endpoint: is missing; https://obs.REGION.myhuaweicloud.com, or the cluster's own"},
      {R"(url: "obs://bkt" endpoint: "obs.example.org")",
       "endpoint: begins with neither https:// nor http://"},
      {R"(url: "obs://bkt" endpoint: "https://h/path")",
       "endpoint: has a path behind the host; leave it out"},
      {R"(url: "obs://bkt" endpoint: "https://ann:pw@h")",
       "endpoint: a user, and above all a password, has no place in a URL; `muster store add` "
       "takes both"},
      {R"(url: "dir://data" endpoint: "data")",
       "endpoint: is the absolute path of the directory, the same on every node"},
      {R"(url: "https://h" endpoint: "https://h")", "endpoint: is the URL itself; leave it out"},
      {R"(url: "obs://bkt" endpoint: "https://http://h")",
       "endpoint: what follows the last ':' is not a port (1..65535)"},
      {R"(url: "dir://data/wiki" endpoint: "/mnt/wiki")", "url: is dir://NAME, without a path"},
      {R"(url: "webdav://" user: "ann" secret: "k")",
       "url: names no host; a store with a user is for one: webdav://HOST"},
      {R"(url: "sftp://" user: "ann" secret: "k" host_key: "h x y")",
       "url: names no host; a store with a user is for one: sftp://HOST"},
      {R"(url: "https://h" user: "ann")", "user: means nothing for https://; leave it out"},
      {R"(url: "s3://bkt" user: "AK")",
       "secret: is missing: the name of the secret with the secret access key"},
      {R"(url: "s3://bkt" secret: "k")", "user: is missing: the access key ID"},
      {R"(url: "s3://bkt" host_key: "h ssh-ed25519 AAAA")",
       "host_key: means nothing for s3://; leave it out"},
      {R"(url: "sftp://h" user: "ann" secret: "k")",
       "host_key: is missing; ssh-keyscan prints it, and the person who runs that host knows "
       "whether it is the right one"},
      {R"(url: "sftp://h" host_key: "h x y")", "user: is missing; sftp lets nobody in without"},
      {R"(url: "s3://bkt" ca: "text")", "ca: has no certificate (PEM)"},
      {R"(url: "s3://bkt" region: "a b")", "region: is no name of a region (cn-north-4)"},
  };
  for (const auto& [text, why] : cases) EXPECT_EQ(checked(text), why) << text;
  EXPECT_EQ(checked("url: \"s3://bkt\" ca: \"" + std::string(kCaBytesMost + 1, 'x') + "\""),
            "ca: has 16385 bytes, at most 16384; leave out certificates that the endpoint does not "
            "need");
  EXPECT_EQ(checked("url: \"s3://bkt\" region: \"" + std::string(kProfileBytesMost, 'x') + "\""),
            "profile: has 8205 bytes, at most 8192");
}

}  // namespace
}  // namespace muster::store
