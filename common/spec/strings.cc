#include "common/spec/strings.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include "common/spec/values.h"

namespace muster::spec {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

bool has_nul(const std::string& text) { return text.find('\0') != std::string::npos; }

void walk(const Message& message, const std::string& prefix, std::vector<std::string>& found) {
  const auto& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  std::string scratch;
  for (const FieldDescriptor* field : fields) {
    const std::string key = prefix.empty() ? std::string(field->name()) : fmt::format("{}.{}", prefix, field->name());
    const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    if (field->is_map()) {
      const FieldDescriptor* name = field->message_type()->map_key();
      const FieldDescriptor* value = field->message_type()->map_value();
      for (int i = 0; i < count; ++i) {
        const Message& entry = reflection.GetRepeatedMessage(message, field, i);
        const std::string text = entry.GetReflection()->GetString(entry, name);
        if (has_nul(text) || has_nul(entry.GetReflection()->GetString(entry, value))) found.push_back(fmt::format("{}.{}", key, shown(text)));
      }
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      for (int i = 0; i < count; ++i) {
        const std::string& text =
            field->is_repeated() ? reflection.GetRepeatedStringReference(message, field, i, &scratch) : reflection.GetStringReference(message, field, &scratch);
        if (has_nul(text)) found.push_back(field->is_repeated() ? fmt::format("{}[{}]", key, i) : key);
      }
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      for (int i = 0; i < count; ++i)
        walk(field->is_repeated() ? reflection.GetRepeatedMessage(message, field, i) : reflection.GetMessage(message, field), key, found);
    }
  }
}

}  // namespace

std::vector<std::string> strings_with_nul(const v1::JobSpec& spec) {
  std::vector<std::string> found;
  walk(spec, "", found);
  return found;
}

}  // namespace muster::spec
