// Formats API messages as JSON, JSON lines and YAML for programs. Pure.
//
// Names are in lowerCamelCase, times in ISO 8601, and durations in seconds ("30s"). Enums are short
// lower-case words ("running"), and 64-bit integers are numbers. Every document has apiVersion and
// kind.
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
enum class Names : std::uint8_t { Yes, No };  // No: the verb has no names to print
// Accepts "table|wide|json|jsonl|yaml|name".
Result<Format> parse_format(std::string_view text, Names names = Names::Yes);

nlohmann::ordered_json to_json(const google::protobuf::Message& message);
// Formats one object, for Json, Jsonl (one line) and Yaml. `items`, if there are any, become the
// field whose name is `list`.
std::string document(const google::protobuf::Message& message, std::string_view kind, Format format,
                     std::string_view list = {},
                     const std::vector<const google::protobuf::Message*>& items = {});
// Formats a list. Json: {"apiVersion", "kind": "JobList", "items": [...]}. Jsonl: one object a
// line. Yaml: like Json.
std::string document_list(const std::vector<const google::protobuf::Message*>& items,
                          std::string_view kind, Format format);
template <class Messages>
std::string document_list(const Messages& messages, std::string_view kind, Format format) {
  std::vector<const google::protobuf::Message*> items;
  for (const auto& message : messages) items.push_back(&message);
  return document_list(items, kind, format);
}
std::string yaml_text(const nlohmann::ordered_json& value);
// For Json and Jsonl; control characters become \u009b and the like.
std::string json_text(const nlohmann::ordered_json& value, Format format);

}  // namespace muster::render
