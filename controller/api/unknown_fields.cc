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
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const std::string below = prefix + std::string(field->name()) + ".";
    if (!field->is_repeated()) {
      walk(reflection.GetMessage(message, field), below, found);
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i)
      walk(reflection.GetRepeatedMessage(message, field, i), below, found);
  }
}

}  // namespace

std::vector<std::string> unknown_fields(const Message& message) {
  std::vector<std::string> found;
  walk(message, "", found);
  return found;
}

}  // namespace muster::controller
