#include "controller/journal/unknown.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/unknown_field_set.h>

#include <utility>
#include <vector>

namespace muster::journal {
namespace {

using google::protobuf::FieldDescriptor, google::protobuf::Message;

std::vector<const FieldDescriptor*> fields_set(const Message& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  return fields;
}
bool is_known(const FieldDescriptor& field, int value) {
  return field.enum_type()->FindValueByNumber(value) != nullptr;
}

std::string unknown_value(const Message& message, const FieldDescriptor* field) {
  const auto& reflection = *message.GetReflection();
  const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
  for (int i = 0; i < count; ++i) {
    const int value = field->is_repeated() ? reflection.GetRepeatedEnumValue(message, field, i)
                                           : reflection.GetEnumValue(message, field);
    if (!is_known(*field, value)) return fmt::format("{}: value {}", field->name(), value);
  }
  return {};
}
void leave_out_values(Message& message, const FieldDescriptor* field) {
  const auto& reflection = *message.GetReflection();
  if (!field->is_repeated()) {
    if (!is_known(*field, reflection.GetEnumValue(message, field)))
      reflection.ClearField(&message, field);
    return;
  }
  std::vector<int> known;
  for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
    const int value = reflection.GetRepeatedEnumValue(message, field, i);
    if (is_known(*field, value)) known.push_back(value);
  }
  if (std::cmp_equal(known.size(), reflection.FieldSize(message, field))) return;
  reflection.ClearField(&message, field);
  for (const int value : known) reflection.AddEnumValue(&message, field, value);
}

}  // namespace

std::string first_unknown(const Message& message) {
  const auto& reflection = *message.GetReflection();
  const auto& unknown = reflection.GetUnknownFields(message);
  if (!unknown.empty()) return fmt::format("field {}", unknown.field(0).number());
  for (const FieldDescriptor* field : fields_set(message)) {
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
      if (std::string found = unknown_value(message, field); !found.empty()) return found;
    }
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      const std::string found =
          first_unknown(field->is_repeated() ? reflection.GetRepeatedMessage(message, field, i)
                                             : reflection.GetMessage(message, field));
      if (found.empty()) continue;
      // "spec" + "launch.per: value 9", "spec" + "field 77"
      return fmt::format("{}{}{}", field->name(), found.starts_with("field ") ? ": " : ".", found);
    }
  }
  return {};
}

void leave_out_unknown(Message& message) {
  const auto& reflection = *message.GetReflection();
  reflection.MutableUnknownFields(&message)->Clear();
  for (const FieldDescriptor* field : fields_set(message)) {
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM) leave_out_values(message, field);
    // Types of values in maps are plain in all of proto/, so map entries have nothing unknown.
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || field->is_map()) continue;
    if (!field->is_repeated()) {
      leave_out_unknown(*reflection.MutableMessage(&message, field));
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i)
      leave_out_unknown(*reflection.MutableRepeatedMessage(&message, field, i));
  }
}

}  // namespace muster::journal
