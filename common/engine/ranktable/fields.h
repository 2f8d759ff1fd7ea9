// Typed look-ups in a JSON object, each reporting what it misses with its place. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/engine/ranktable/findings.h"
#include "common/engine/ranktable/json_tree.h"

namespace muster::ranktable {

class Fields {
 public:
  // `where` is the place of `object`: "server_list[0]", or "" for the whole.
  Fields(const Json& object, std::string where, Findings& found)
      : object_(object), where_(std::move(where)), found_(found) {}

  [[nodiscard]] std::string at(std::string_view key) const {
    return where_.empty() ? std::string(key) : where_ + "." + std::string(key);
  }
  [[nodiscard]] bool has(std::string_view key) const { return object_.get(key) != nullptr; }
  // Whether this object has reported anything.
  [[nodiscard]] bool spoiled() const { return spoiled_; }
  void problem(std::string_view key, std::string message);

  // Null when it is not there (a problem if `required`) or no string (always a problem).
  const std::string* text(std::string_view key, bool required);
  // A string of digits.
  std::optional<std::uint32_t> number(std::string_view key, bool required);
  // A list that is not empty, of objects.
  const Json* objects(std::string_view key);
  // "1".."65535", where it is there at all.
  void port(std::string_view key);

 private:
  const Json& object_;
  std::string where_;
  Findings& found_;
  bool spoiled_ = false;
};

}  // namespace muster::ranktable
