// URLs of the places that a job's data comes from and goes to. Pure.
//
//   obs://BUCKET/KEY             Huawei OBS
//   s3://BUCKET/KEY              S3, and ends that speak it (MinIO, Ceph)
//   sftp://HOST[:PORT]/PATH
//   webdav://HOST[:PORT]/PATH
//   http://HOST[:PORT]/PATH      also https; files alone, nothing is written there
//   dir://NAME/PATH              a directory that is on the nodes; a store says which
//
// A key is as the store has it: nothing is decoded, so "a%20b" has a percent sign.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace muster::store {

enum class Scheme : std::uint8_t { Obs, S3, Sftp, Webdav, Http, Https, Directory };

// "obs", without "://".
std::string_view name_of(Scheme scheme);

struct Url {
  Scheme scheme{};
  std::string place;  // bucket, HOST[:PORT] or name; empty only in the URL of a store: every place
  std::string path;   // below it, without a "/" at its begin or end; may be empty
  friend bool operator==(const Url&, const Url&) = default;
};

// Whether the text is meant as such a URL: it begins with a scheme and "://".
[[nodiscard]] bool is_url(std::string_view text);

// Errors are reasons without a context: InvalidArgument.
Result<Url> parse_url(std::string_view text);
// The URL that a store is for: the place may be missing, as in "obs://".
Result<Url> parse_store_url(std::string_view text);

// "obs://bucket/key"
[[nodiscard]] std::string text_of(const Url& url);

// How much of `url` the URL of a store names, so that the longest wins: 0 when it is not for it.
// "obs://data" is for "obs://data/wiki", and not for "obs://data2".
[[nodiscard]] std::size_t match(const Url& store, const Url& url);

}  // namespace muster::store
