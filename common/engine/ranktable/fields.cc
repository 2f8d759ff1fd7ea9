#include "common/engine/ranktable/fields.h"

#include <fmt/format.h>

#include "common/engine/ranktable/words.h"

namespace muster::ranktable {

void Fields::problem(std::string_view key, std::string message) {
  spoiled_ = true;
  found_.problem(at(key), std::move(message));
}

const std::string* Fields::text(std::string_view key, bool required) {
  const Json* value = object_.get(key);
  if (value == nullptr) {
    if (required) problem(key, "is missing");
    return nullptr;
  }
  if (value->is(Json::Kind::String)) return &value->text;
  if (value->is(Json::Kind::Number))
    problem(key,
            fmt::format("is the number {}; every value of a rank table is a string: write \"{}\"",
                        shown(value->text), shown(value->text)));
  else
    problem(key,
            fmt::format("is {}; every value of a rank table is a string", kind_name(value->kind)));
  return nullptr;
}

std::optional<std::uint32_t> Fields::number(std::string_view key, bool required) {
  const std::string* value = text(key, required);
  if (value == nullptr) return std::nullopt;
  const auto number = parse_number(*value);
  if (!number) problem(key, fmt::format("'{}' is not a decimal number", shown(*value)));
  return number;
}

const Json* Fields::objects(std::string_view key) {
  const Json* value = object_.get(key);
  if (value == nullptr) {
    problem(key, "is missing");
    return nullptr;
  }
  if (!value->is(Json::Kind::Array)) {
    problem(key, fmt::format("is {}; it must be a list of objects", kind_name(value->kind)));
    return nullptr;
  }
  if (value->items.empty()) {
    problem(key, "is empty");
    return nullptr;
  }
  for (std::size_t i = 0; i < value->items.size(); ++i) {
    if (value->items[i].is(Json::Kind::Object)) continue;
    problem(fmt::format("{}[{}]", key, i),
            fmt::format("is {}; it must be an object", kind_name(value->items[i].kind)));
    return nullptr;
  }
  return value;
}

void Fields::port(std::string_view key) {
  const auto value = number(key, false);
  if (value && (*value == 0 || *value > 65535))
    problem(key, fmt::format("'{}' is not a port (1 to 65535)", *value));
}

}  // namespace muster::ranktable
