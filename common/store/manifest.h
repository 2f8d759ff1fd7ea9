// What is at the URL of an input: its objects, listed once before they are fetched and once after.
// Pure.
//
// Names are as rclone writes them (its "standard encoding", https://rclone.org/overview/#encoding):
// a line end in a key is the one character U+240A. rclone does not do so for a web server, whose
// names with control characters are refused. So every name fits in a line. local_name() says what
// rclone's local backend calls the file; two names of a list never become one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/store/selection.h"

namespace muster::store {

// More is refused: a node keeps the whole list in memory while it fetches.
inline constexpr std::size_t kObjectsMost = 1'000'000;

struct Object {
  std::string name;  // "a/b.bin", below the URL
  std::uint64_t size = 0;
  std::string md5;       // 32 hexadecimal digits; empty: the store does not say
  std::string modified;  // the store's own time, in UTC; empty: the store does not say
  friend bool operator==(const Object&, const Object&) = default;
};

struct Manifest {
  bool is_file = false;            // the URL names an object, and `objects` has it alone
  std::vector<Object> objects;     // in the order of their names
  std::vector<std::string> empty;  // directories without an object below, in the order of names

  // The most that fits, if the sizes are more than that together.
  [[nodiscard]] std::uint64_t bytes() const;
};

// The sum, or the most that fits.
std::uint64_t sum_of(std::uint64_t a, std::uint64_t b);

// Whether a node could have such files: the names of objects and of empty directories, each once
// and in order. InvalidArgument, with the name.
Result<void> check_names(const Manifest& manifest);

// From the output of `rclone lsjson -R`: an array with one entry in a line, between lines of its
// log, which are left out. InvalidArgument, with the name: a node could not have such files (a file
// where a directory is, too; a part that is too long), rclone could not fetch one by its name, or
// the store does not say how long one is; or there are more than kObjectsMost. DataLoss: the output
// is none. Directories that a node could not have are left out.
//
// Only what `wanted` has is looked at, of directories then none.
Result<Manifest> parse_listing(std::string_view output, const Selection* wanted = nullptr);

// What has changed between two lists, for the end of a sentence: "'a/b' has another size (5, was
// 4)". Empty: nothing.
std::string change_between(const Manifest& before, const Manifest& after);

// Of one run of rclone, which lists the directories of its objects.
inline constexpr std::uint64_t kBatchBytes = 4ULL << 30;
inline constexpr std::size_t kBatchCount = 10'000;

// Objects for one run of rclone: after each, what has come is checked and kept. Their order stays.
std::vector<std::vector<Object>> batches(std::span<const Object> objects, std::uint64_t bytes_most,
                                         std::size_t count_most);

// The file's name below the directory that rclone's local backend copies to.
std::string local_name(std::string_view name);

}  // namespace muster::store
