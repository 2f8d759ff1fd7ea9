#include "common/spec/field.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/assert.h"
#include "common/proto/proto_time.h"

namespace muster::spec {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// The fields along a path, from the outermost. Empty: the path does not exist.
std::vector<const FieldDescriptor*> fields_along(std::string_view path) {
  std::vector<const FieldDescriptor*> fields;
  const Descriptor* type = v1::JobSpec::descriptor();
  while (type != nullptr) {
    const std::size_t end = std::min(path.find('.'), path.size());
    const FieldDescriptor* field = type->FindFieldByName(std::string(path.substr(0, end)));
    if (field == nullptr) return {};
    fields.push_back(field);
    if (end == path.size()) return fields;
    path.remove_prefix(end + 1);
    type = field->is_repeated() ? nullptr : field->message_type();
  }
  return {};
}

}  // namespace

const FieldDescriptor* find_field(std::string_view path) {
  const auto fields = fields_along(path);
  return fields.empty() ? nullptr : fields.back();
}

Field::Field(v1::JobSpec& spec, std::string_view path)
    : spec_(spec), path_(path), field_(find_field(path)) {
  MUSTER_ASSERT(field_ != nullptr, "the key table names a field that does not exist");
}

Message& Field::owner() {
  Message* message = &spec_;
  for (const FieldDescriptor* field : fields_along(path_)) {
    if (field == field_) break;
    message = message->GetReflection()->MutableMessage(message, field);
  }
  return *message;
}

void Field::clear() {
  Message* message = &spec_;
  for (const FieldDescriptor* field : fields_along(path_)) {
    const auto& reflection = *message->GetReflection();
    if (field == field_) return reflection.ClearField(message, field);
    if (!reflection.HasField(*message, field)) return;
    message = reflection.MutableMessage(message, field);
  }
}

void Field::set_text(std::string text) {
  Message& message = owner();
  message.GetReflection()->SetString(&message, field_, std::move(text));
}

void Field::set_number(std::uint64_t number) {
  Message& message = owner();
  const auto& reflection = *message.GetReflection();
  if (type() == FieldDescriptor::CPPTYPE_UINT32)
    reflection.SetUInt32(&message, field_, static_cast<std::uint32_t>(number));
  else if (type() == FieldDescriptor::CPPTYPE_INT64)
    reflection.SetInt64(&message, field_, static_cast<std::int64_t>(number));
  else
    reflection.SetUInt64(&message, field_, number);
}

void Field::set_bool(bool value) {
  Message& message = owner();
  message.GetReflection()->SetBool(&message, field_, value);
}

void Field::set_word(std::string_view word) {
  Message& message = owner();
  message.GetReflection()->SetEnum(&message, field_, enum_value(*field_->enum_type(), word));
}

void Field::set_duration(Duration value) {
  Message& message = owner();
  static_cast<google::protobuf::Duration&>(
      *message.GetReflection()->MutableMessage(&message, field_)) = to_proto(value);
}

void Field::set_message() {
  Message& message = owner();
  message.GetReflection()->MutableMessage(&message, field_);
}

void Field::add_text(std::string text) {
  Message& message = owner();
  message.GetReflection()->AddString(&message, field_, std::move(text));
}

void Field::add_number(std::uint64_t number) {
  Message& message = owner();
  message.GetReflection()->AddUInt32(&message, field_, static_cast<std::uint32_t>(number));
}

int Field::size() const {
  const Message* message = &spec_;
  for (const FieldDescriptor* field : fields_along(path_)) {
    if (field == field_) break;
    message = &message->GetReflection()->GetMessage(*message, field);
  }
  return message->GetReflection()->FieldSize(*message, field_);
}

void Field::set_entries(const std::map<std::string, std::string>& entries) {
  Message& message = owner();
  const auto& reflection = *message.GetReflection();
  const FieldDescriptor* key = field_->message_type()->map_key();
  const FieldDescriptor* value = field_->message_type()->map_value();
  std::map<std::string, std::string> all = entries;
  for (int i = 0; i < reflection.FieldSize(message, field_); ++i) {
    const Message& entry = reflection.GetRepeatedMessage(message, field_, i);
    all.try_emplace(entry.GetReflection()->GetString(entry, key),
                    entry.GetReflection()->GetString(entry, value));
  }
  reflection.ClearField(&message, field_);
  for (auto& [name, text] : all) {
    Message* entry = reflection.AddMessage(&message, field_);
    entry->GetReflection()->SetString(entry, key, name);
    entry->GetReflection()->SetString(entry, value, text);
  }
}

const google::protobuf::EnumValueDescriptor* enum_value(
    const google::protobuf::EnumDescriptor& type, std::string_view word) {
  // The first value is PREFIX_UNSPECIFIED.
  constexpr std::string_view kUnset = "UNSPECIFIED";
  std::string name(type.value(0)->name());
  name.resize(name.size() - kUnset.size());
  for (const char c : word)
    name += c == '-' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return type.FindValueByName(name);
}

}  // namespace muster::spec
