#include "client/render/json_text.h"

#include <fmt/format.h>
#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "client/render/text.h"
#include "common/base/controls.h"
#include "muster/v1/node.pb.h"

namespace muster::render {
namespace {

using Json = nlohmann::ordered_json;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr std::string_view kApiVersion = "muster/v1";

// Changes JOB_PHASE_RUNNING to "running": the name without the enum's own name in front.
std::string enum_word(const google::protobuf::EnumValueDescriptor& value) {
  std::string prefix;
  for (const char c : value.type()->name()) {
    if (c >= 'A' && c <= 'Z' && !prefix.empty()) prefix += '_';
    prefix += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  std::string word = value.name();
  if (word.starts_with(prefix + "_")) word.erase(0, prefix.size() + 1);
  std::ranges::transform(word, word.begin(), [](char c) {
    return c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  return word;
}

Json message_json(const Message& message);

Json scalar(const Message& message, const Reflection& reflection, const FieldDescriptor& field,
            int index) {
  const bool many = index >= 0;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return many ? reflection.GetRepeatedInt32(message, &field, index)
                  : reflection.GetInt32(message, &field);
    case FieldDescriptor::CPPTYPE_INT64:
      return many ? reflection.GetRepeatedInt64(message, &field, index)
                  : reflection.GetInt64(message, &field);
    case FieldDescriptor::CPPTYPE_UINT32:
      return many ? reflection.GetRepeatedUInt32(message, &field, index)
                  : reflection.GetUInt32(message, &field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return many ? reflection.GetRepeatedUInt64(message, &field, index)
                  : reflection.GetUInt64(message, &field);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return many ? reflection.GetRepeatedDouble(message, &field, index)
                  : reflection.GetDouble(message, &field);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return many ? reflection.GetRepeatedFloat(message, &field, index)
                  : reflection.GetFloat(message, &field);
    case FieldDescriptor::CPPTYPE_BOOL:
      return many ? reflection.GetRepeatedBool(message, &field, index)
                  : reflection.GetBool(message, &field);
    case FieldDescriptor::CPPTYPE_STRING:
      return many ? reflection.GetRepeatedString(message, &field, index)
                  : reflection.GetString(message, &field);
    case FieldDescriptor::CPPTYPE_ENUM:
      return enum_word(many ? *reflection.GetRepeatedEnum(message, &field, index)
                            : *reflection.GetEnum(message, &field));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return message_json(many ? reflection.GetRepeatedMessage(message, &field, index)
                               : reflection.GetMessage(message, &field));
  }
  return nullptr;
}

Json map_json(const Message& message, const Reflection& reflection, const FieldDescriptor& field) {
  std::vector<std::pair<std::string, Json>> entries;
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    const Message& entry = reflection.GetRepeatedMessage(message, &field, i);
    const auto* key = entry.GetDescriptor()->map_key();
    const auto* value = entry.GetDescriptor()->map_value();
    const Json name = scalar(entry, *entry.GetReflection(), *key, -1);
    entries.emplace_back(name.is_string() ? name.get<std::string>() : name.dump(),
                         scalar(entry, *entry.GetReflection(), *value, -1));
  }
  std::ranges::sort(entries, {}, &std::pair<std::string, Json>::first);
  Json out = Json::object();
  for (auto& [name, value] : entries) out[name] = std::move(value);
  return out;
}

// These fields have no presence in the protocol; an empty text or a certain number means "none". A
// document leaves the field out, so that no reader has to know that number.
struct NoneIs {
  std::string_view field;
  std::int64_t value;
};
constexpr auto kNone = std::to_array<NoneIs>({{"muster.v1.Event.attempt", 0},
                                              {"muster.v1.Job.attempt", 0},
                                              {"muster.v1.Progress.total", 0},
                                              {"muster.v1.Progress.step_seconds", 0},
                                              {"muster.v1.RankExit.code", -1},
                                              {"muster.v1.RankExit.signal", 0},
                                              {"muster.v1.NetworkSpec.master_port", 0},
                                              {"muster.v1.LimitSpec.memory_bytes", 0},
                                              {"muster.v1.LimitSpec.millicpus", 0}});
// Documents have these in MiB, under another name.
struct InMib {
  std::string_view field, name;
};
constexpr auto kInMib =
    std::to_array<InMib>({{"muster.v1.Device.memory_bytes", "memoryMib"},
                          {"muster.v1.DeviceReading.memory_used_bytes", "memoryUsedMib"},
                          {"muster.v1.DeviceOccupant.memory_bytes", "memoryMib"}});
// A field that is set to its default is still set.
constexpr auto kEmptySays = std::to_array<std::string_view>(
    {"muster.v1.EnvValue.value", "muster.v1.FileChange.value", "muster.v1.ConfigChange.value"});
constexpr std::string_view kMemlock = "muster.v1.LimitSpec.memlock";

std::optional<std::int64_t> whole_number(const Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  const auto type = field.cpp_type();
  if (type == FieldDescriptor::CPPTYPE_INT32) return reflection.GetInt32(message, &field);
  if (type == FieldDescriptor::CPPTYPE_INT64) return reflection.GetInt64(message, &field);
  if (type == FieldDescriptor::CPPTYPE_UINT32) return reflection.GetUInt32(message, &field);
  if (type == FieldDescriptor::CPPTYPE_UINT64)
    return static_cast<std::int64_t>(reflection.GetUInt64(message, &field));
  if (type == FieldDescriptor::CPPTYPE_DOUBLE && reflection.GetDouble(message, &field) == 0)
    return 0;
  return std::nullopt;
}

// For a field without presence.
bool is_absent(const Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
    const auto& value = *reflection.GetEnum(message, &field);
    return value.number() == 0 && value.name().ends_with("_UNSPECIFIED");
  }
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING)
    return reflection.GetString(message, &field).empty() &&
           std::ranges::find(kEmptySays, field.full_name()) == kEmptySays.end();
  const auto none = std::ranges::find(kNone, field.full_name(), &NoneIs::field);
  return none != kNone.end() && whole_number(message, field) == none->value;
}

Json message_json(const Message& message) {
  if (const auto* stamp = dynamic_cast<const google::protobuf::Timestamp*>(&message))
    return iso_text(*stamp);
  if (const auto* span = dynamic_cast<const google::protobuf::Duration*>(&message)) {
    return fmt::format(
        "{:g}s", static_cast<double>(span->seconds()) + static_cast<double>(span->nanos()) / 1e9);
  }
  if (const auto* unknown = dynamic_cast<const v1::UnknownAttempt*>(&message))
    return fmt::format("{}.{}", unknown->job_id(), unknown->attempt());
  Json out = Json::object();
  const Reflection& reflection = *message.GetReflection();
  const auto* descriptor = message.GetDescriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor& field = *descriptor->field(i);
    if (field.is_map()) {
      if (reflection.FieldSize(message, &field) > 0)
        out[field.json_name()] = map_json(message, reflection, field);
    } else if (field.is_repeated()) {
      if (reflection.FieldSize(message, &field) == 0) continue;
      Json items = Json::array();
      for (int k = 0; k < reflection.FieldSize(message, &field); ++k)
        items.push_back(scalar(message, reflection, field, k));
      out[field.json_name()] = std::move(items);
    } else if (field.full_name() == kMemlock && reflection.HasField(message, &field) &&
               reflection.GetUInt64(message, &field) == UINT64_MAX) {
      out[field.json_name()] = "unlimited";  // the same word as in the spec
    } else if (const auto mib = std::ranges::find(kInMib, field.full_name(), &InMib::field);
               mib != kInMib.end()) {
      const std::uint64_t bytes = reflection.GetUInt64(message, &field);
      if (bytes > 0 || reflection.HasField(message, &field)) out[mib->name] = bytes >> 20U;
    } else if (field.has_presence()) {
      if (reflection.HasField(message, &field))
        out[field.json_name()] = scalar(message, reflection, field, -1);
    } else if (!is_absent(message, field)) {
      out[field.json_name()] = scalar(message, reflection, field, -1);
    }
  }
  return out;
}

Json headed(const Message& message, std::string_view kind) {
  Json out = {{"apiVersion", kApiVersion}, {"kind", kind}};
  out.update(message_json(message));
  return out;
}

void emit(YAML::Emitter& out, const Json& value) {
  if (value.is_object()) {
    out << YAML::BeginMap;
    for (const auto& [name, inner] : value.items()) {
      out << YAML::Key;
      if (has_controls(name)) out << YAML::DoubleQuoted;
      out << name << YAML::Value;
      emit(out, inner);
    }
    out << YAML::EndMap;
  } else if (value.is_array()) {
    out << YAML::BeginSeq;
    for (const auto& inner : value) emit(out, inner);
    out << YAML::EndSeq;
  } else if (value.is_string()) {
    out << YAML::DoubleQuoted << value.get<std::string>();
  } else {
    out << value.dump();
  }
}

// Logs and names may have any bytes. Bytes that are not UTF-8 are replaced, so that they never
// cause an exception. JSON itself escapes only C0, YAML C1 as well. The other characters go into
// double quotes, where both formats read \u009b.
std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = text[at] == '\n' ? 0 : control_length(text.substr(at));
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
    if (length == 1) out += fmt::format("\\u{:04x}", byte(0));
    if (length == 2) out += fmt::format("\\u{:04x}", (byte(0) & 0x1FU) << 6U | (byte(1) & 0x3FU));
    if (length == 3)
      out += fmt::format("\\u{:04x}",
                         (byte(0) & 0x0FU) << 12U | (byte(1) & 0x3FU) << 6U | (byte(2) & 0x3FU));
    if (length == 0) out += text[at];
    at += std::max<std::size_t>(1, length);
  }
  return out;
}

std::string dump(const Json& value, int indent) {
  return escaped(value.dump(indent, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

std::string json_text(const nlohmann::ordered_json& value, Format format) {
  return dump(value, format == Format::Jsonl ? -1 : 2) + "\n";
}

Result<Format> parse_format(std::string_view text, Names names) {
  if (text == "table") return Format::Table;
  if (text == "wide") return Format::Wide;
  if (text == "json") return Format::Json;
  if (text == "jsonl") return Format::Jsonl;
  if (text == "yaml") return Format::Yaml;
  if (text == "name" && names == Names::Yes) return Format::Name;
  return fail(ErrorCode::InvalidArgument,
              fmt::format("output format '{}': not offered here; use table, wide, json, jsonl{}",
                          text, names == Names::Yes ? ", yaml or name" : " or yaml"));
}

nlohmann::ordered_json to_json(const Message& message) { return message_json(message); }

std::string document(const Message& message, std::string_view kind, Format format,
                     std::string_view list, const std::vector<const Message*>& items) {
  Json value = headed(message, kind);
  for (const Message* item : items) value[std::string(list)].push_back(message_json(*item));
  if (format == Format::Yaml) return yaml_text(value);
  return json_text(value, format);
}

std::string document_list(const std::vector<const Message*>& items, std::string_view kind,
                          Format format) {
  if (format == Format::Jsonl) {
    std::string out;
    for (const Message* item : items) out += dump(headed(*item, kind), -1) + "\n";
    return out;
  }
  Json list = {
      {"apiVersion", kApiVersion}, {"kind", std::string(kind) + "List"}, {"items", Json::array()}};
  for (const Message* item : items) list["items"].push_back(message_json(*item));
  return format == Format::Yaml ? yaml_text(list) : dump(list, 2) + "\n";
}

std::string yaml_text(const nlohmann::ordered_json& value) {
  YAML::Emitter out;
  emit(out, value);
  return escaped(out.c_str()) + "\n";
}

}  // namespace muster::render
