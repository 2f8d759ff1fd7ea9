// API messages as JSON, JSON lines and YAML for programs: names in lowerCamelCase, times in ISO
// 8601, durations in seconds ("30s"), enums as their short lower-case word ("running"), 64-bit
// integers as numbers. Every document carries apiVersion and kind.
#pragma once

#include <google/protobuf/message.h>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace muster::render {

enum class Format : std::uint8_t { Table, Wide, Json, Jsonl, Yaml, Name };
// "table|wide|json|jsonl|yaml|name".
enum class Names : std::uint8_t { Yes, No };  // No: what is shown has no name to print
Result<Format> parse_format(std::string_view text, Names names = Names::Yes);

nlohmann::ordered_json to_json(const google::protobuf::Message& message);
// One object; for Json and Jsonl (one line) and Yaml. `items`, unless there are none, stand in it
// as `list`.
std::string document(const google::protobuf::Message& message, std::string_view kind, Format format,
                     std::string_view list = {},
                     const std::vector<const google::protobuf::Message*>& items = {});
// A list: Json {"apiVersion", "kind": "JobList", "items": [...]}, Jsonl one object a line, Yaml as
// Json.
std::string document_list(const std::vector<const google::protobuf::Message*>& items,
                          std::string_view kind, Format format);
template <class Messages>
std::string document_list(const Messages& messages, std::string_view kind, Format format) {
  std::vector<const google::protobuf::Message*> items;
  for (const auto& message : messages) items.push_back(&message);
  return document_list(items, kind, format);
}
std::string yaml_text(const nlohmann::ordered_json& value);
// Json, Jsonl; control characters as \u009b
std::string json_text(const nlohmann::ordered_json& value, Format format);

}  // namespace muster::render
