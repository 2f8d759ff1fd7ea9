// Typed look-ups in a JSON object. Each function that reads one object creates a Fields on its
// stack. Pure, except that a look-up adds its problems, with their path, to Findings.
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
  // `where` is the path of `object`: "server_list[0]", or "" for the whole document.
  Fields(const Json& object, std::string where, Findings& found)
      : object_(object), where_(std::move(where)), found_(found) {}

  [[nodiscard]] std::string at(std::string_view key) const {
    return where_.empty() ? std::string(key) : where_ + "." + std::string(key);
  }
  [[nodiscard]] bool has(std::string_view key) const { return object_.get(key) != nullptr; }
  // Whether a look-up in this object has reported a problem.
  [[nodiscard]] bool spoiled() const { return spoiled_; }
  void problem(std::string_view key, std::string message);

  // Null if the key is missing (a problem if `required`) or its value is no string (always a
  // problem).
  const std::string* text(std::string_view key, bool required);
  // The value as a number; the value must be a string of digits.
  std::optional<std::uint32_t> number(std::string_view key, bool required);
  // The value as a list of objects that is not empty.
  const Json* objects(std::string_view key);
  // Checks that the value, if present, is a string from "1" to "65535".
  void port(std::string_view key);

 private:
  const Json& object_;
  std::string where_;
  Findings& found_;
  bool spoiled_ = false;
};

}  // namespace muster::ranktable
