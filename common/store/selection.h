// Which objects below a URL are wanted, by patterns of their names. Pure.
//
// A pattern without "/" fits the last part of a name, wherever it is: "*.bin". One with "/" fits
// the whole name below the URL: "train/*.bin". One that ends with "/" fits all below that
// directory. "*" stands for any characters but "/", "**" for any, "?" for one but "/", and
// "\\" before a character takes that as it is. "[", "]", "{" and "}" have to be written so.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace muster::store {

inline constexpr std::size_t kPatternsMost = 64, kPatternBytesMost = 1024;

class Selection {
 public:
  // InvalidArgument: what is wrong with which one. Quick: for a check of a spec.
  static Result<void> check(std::span<const std::string> patterns);
  // Without patterns everything is wanted. Errors: as of check().
  static Result<Selection> make(std::span<const std::string> patterns);
  ~Selection();
  Selection(Selection&&) noexcept;
  Selection& operator=(Selection&&) noexcept;

  [[nodiscard]] bool has_everything() const { return patterns_ == nullptr; }
  [[nodiscard]] bool has(std::string_view name) const;

 private:
  struct Patterns;
  explicit Selection(std::unique_ptr<const Patterns> patterns);
  std::unique_ptr<const Patterns> patterns_;  // nullptr: everything
};

// A pattern that fits this name alone.
std::string exact_pattern(std::string_view name);

}  // namespace muster::store
