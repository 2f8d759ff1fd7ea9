// Reaches one field of a JobSpec by its path ("runtime.limits.nofile"), by protobuf's reflection.
// The key table names fields by such paths. A Field lives on the stack and owns nothing.
#pragma once

#include <google/protobuf/descriptor.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "common/base/time.h"
#include "muster/v1/spec.pb.h"

namespace muster::spec {

// Nullptr: no field of JobSpec has this path.
const google::protobuf::FieldDescriptor* find_field(std::string_view path);

class Field {
 public:
  // The path must exist (find_field). `spec` must outlive the field.
  Field(v1::JobSpec& spec, std::string_view path);

  // Removes the value. Messages around it are not created.
  void clear();

  // Each creates the messages around the field. The field must have that type.
  void set_text(std::string text);  // of bytes, too
  void set_number(std::uint64_t number);
  void set_bool(bool value);
  // "resume-or-scratch" is START_AS_RESUME_OR_SCRATCH of the enum StartAs.
  void set_word(std::string_view word);
  void set_duration(Duration value);
  void set_message();  // present and empty, unless it is there
  void add_text(std::string text);
  void add_number(std::uint64_t number);
  void set_entries(const std::map<std::string, std::string>& entries);  // over those of a map

  [[nodiscard]] google::protobuf::FieldDescriptor::CppType type() const {
    return field_->cpp_type();
  }
  [[nodiscard]] int size() const;  // of a list

 private:
  google::protobuf::Message& owner();

  v1::JobSpec& spec_;
  std::string path_;
  const google::protobuf::FieldDescriptor* field_;
};

// The value of an enum that a word stands for; nullptr: none does.
const google::protobuf::EnumValueDescriptor* enum_value(
    const google::protobuf::EnumDescriptor& type, std::string_view word);

}  // namespace muster::spec
