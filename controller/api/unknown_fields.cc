#include "controller/api/unknown_fields.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/unknown_field_set.h>

#include <set>

namespace muster::controller {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

void walk(const Message& message, const std::string& prefix, std::vector<std::string>& found) {
  const auto& reflection = *message.GetReflection();
  const auto& unknown = reflection.GetUnknownFields(message);
  std::set<int> numbers;
  for (int i = 0; i < unknown.field_count(); ++i) numbers.insert(unknown.field(i).number());
  for (const int number : numbers) found.push_back(prefix + "field " + std::to_string(number));
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string name = prefix + std::string(field->name());
    const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        walk(field->is_repeated() ? reflection.GetRepeatedMessage(message, field, i)
                                  : reflection.GetMessage(message, field),
             name + ".", found);
      } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
        const int value = field->is_repeated() ? reflection.GetRepeatedEnumValue(message, field, i)
                                               : reflection.GetEnumValue(message, field);
        if (field->enum_type()->FindValueByNumber(value) == nullptr)
          found.push_back(name + " value " + std::to_string(value));
      }
    }
  }
}

}  // namespace

std::vector<std::string> unknown_fields(const Message& message) {
  std::vector<std::string> found;
  walk(message, "", found);
  return found;
}

}  // namespace muster::controller
