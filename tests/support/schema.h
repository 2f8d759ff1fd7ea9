// Schema has the messages and services of proto/, as the files of the checkout define them. A test
// owns it and uses it on one thread.
//
// It reads these files itself. Generated code is not enough, because that of muster.rundir.v1
// (LITE_RUNTIME) has no descriptors.
//
// samples() makes messages in which every field is set, and text() prints the bytes of a message.
#pragma once

#include <google/protobuf/compiler/importer.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor_database.h>
#include <google/protobuf/duration.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/timestamp.pb.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/checkout.h"

namespace muster::test {

// Returns the same bytes for the same message, also if it has maps.
inline std::string serialized(const google::protobuf::Message& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream out(&stream);
    out.SetSerializationDeterministic(true);
    if (!message.SerializeToCodedStream(&out)) throw std::runtime_error("serializing");
  }
  return bytes;
}

class Schema {
 public:
  using Descriptor = google::protobuf::Descriptor;
  using FieldDescriptor = google::protobuf::FieldDescriptor;
  using FileDescriptor = google::protobuf::FileDescriptor;
  using Message = google::protobuf::Message;

  Schema() {
    // Links them, so that the pool of generated files has them.
    (void)google::protobuf::Duration::descriptor();
    (void)google::protobuf::Timestamp::descriptor();
    const std::filesystem::path root = checkout("proto");
    tree_.MapPath("", root.string());
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root))
      if (entry.path().extension() == ".proto")
        names.push_back(std::filesystem::relative(entry.path(), root).string());
    std::ranges::sort(names);
    for (const std::string& name : names) {
      files_.push_back(pool_.FindFileByName(name));
      if (files_.back() == nullptr) throw std::runtime_error("reading proto/" + name);
    }
  }

  // All files of proto/, sorted by name.
  [[nodiscard]] const std::vector<const FileDescriptor*>& files() const { return files_; }
  [[nodiscard]] const google::protobuf::DescriptorPool& pool() const { return pool_; }
  [[nodiscard]] const Descriptor& type(const std::string& name) const {
    const Descriptor* found = pool_.FindMessageTypeByName(name);
    if (found == nullptr) throw std::runtime_error("proto/ has no message " + name);
    return *found;
  }

  // Returns serialized messages of this type. Together they set every field of the type and of all
  // types inside it: one message for each member of a oneof. A type inside itself is left out.
  [[nodiscard]] std::vector<std::string> samples(const std::string& name) {
    const Descriptor& wanted = type(name);
    std::vector<std::string> made;
    for (std::size_t variant = 0; variant < variants(wanted, {}); ++variant) {
      const std::unique_ptr<Message> message(factory_.GetPrototype(&wanted)->New());
      fill(*message, variant, {});
      made.push_back(serialized(*message));
    }
    return made;
  }

  // Returns the message as text. A field that proto/ does not have is printed by its number.
  [[nodiscard]] std::string text(const std::string& name, std::string_view bytes) {
    const std::unique_ptr<Message> message(factory_.GetPrototype(&type(name))->New());
    if (!message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
      return "does not parse as " + name + "\n";
    std::string text;
    google::protobuf::TextFormat::Printer().PrintToString(*message, &text);
    return text;
  }

 private:
  // The types that contain the present one, and this one itself.
  using Path = std::vector<const Descriptor*>;

  // True for a message that is already on the path.
  static bool recursive(const FieldDescriptor& field, const Path& path) {
    return field.message_type() != nullptr &&
           std::ranges::find(path, field.message_type()) != path.end();
  }
  // Returns the number of messages that set every field.
  static std::size_t variants(const Descriptor& type, Path path) {
    path.push_back(&type);
    std::size_t most = 1;
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      if (!field.is_repeated() && field.real_containing_oneof() == nullptr)
        most = std::max(most, variants(field, path));
    }
    for (int i = 0; i < type.real_oneof_decl_count(); ++i)
      most = std::max(most, variants(*type.oneof_decl(i), path));
    return most;
  }
  static std::size_t variants(const FieldDescriptor& field, const Path& path) {
    return field.message_type() == nullptr || recursive(field, path)
               ? 1
               : variants(*field.message_type(), path);
  }
  static std::size_t variants(const google::protobuf::OneofDescriptor& oneof, const Path& path) {
    std::size_t sum = 0;
    for (int i = 0; i < oneof.field_count(); ++i) sum += variants(*oneof.field(i), path);
    return sum;
  }

  static void fill(Message& message, std::size_t variant, Path path) {
    const Descriptor& type = *message.GetDescriptor();
    path.push_back(&type);
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      if (field.real_containing_oneof() == nullptr)
        set(message, field, variant % variants(field, path), path);
    }
    for (int i = 0; i < type.real_oneof_decl_count(); ++i) {
      const google::protobuf::OneofDescriptor& oneof = *type.oneof_decl(i);
      std::size_t left = variant % variants(oneof, path);
      int member = 0;
      for (; left >= variants(*oneof.field(member), path); ++member)
        left -= variants(*oneof.field(member), path);
      set(message, *oneof.field(member), left, path);
    }
  }

  static void set(Message& message, const FieldDescriptor& field, std::size_t variant,
                  const Path& path) {
    if (recursive(field, path)) return;
    const google::protobuf::Reflection& reflection = *message.GetReflection();
    const bool many = field.is_repeated();
    const int number = 300 + field.number();
    const auto as_unsigned = static_cast<std::uint32_t>(number);
    const std::string word = "v" + std::to_string(field.number());
    Message* const to = &message;
    const FieldDescriptor* const at = &field;
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        many ? reflection.AddInt32(to, at, number) : reflection.SetInt32(to, at, number);
        break;
      case FieldDescriptor::CPPTYPE_INT64:
        many ? reflection.AddInt64(to, at, number) : reflection.SetInt64(to, at, number);
        break;
      case FieldDescriptor::CPPTYPE_UINT32:
        many ? reflection.AddUInt32(to, at, as_unsigned)
             : reflection.SetUInt32(to, at, as_unsigned);
        break;
      case FieldDescriptor::CPPTYPE_UINT64:
        many ? reflection.AddUInt64(to, at, as_unsigned)
             : reflection.SetUInt64(to, at, as_unsigned);
        break;
      case FieldDescriptor::CPPTYPE_DOUBLE:
        many ? reflection.AddDouble(to, at, number + 0.5)
             : reflection.SetDouble(to, at, number + 0.5);
        break;
      case FieldDescriptor::CPPTYPE_FLOAT:
        many ? reflection.AddFloat(to, at, static_cast<float>(number))
             : reflection.SetFloat(to, at, static_cast<float>(number));
        break;
      case FieldDescriptor::CPPTYPE_BOOL:
        many ? reflection.AddBool(to, at, true) : reflection.SetBool(to, at, true);
        break;
      case FieldDescriptor::CPPTYPE_ENUM: {
        // The same one after a value was added.
        const auto* first = field.enum_type()->value(field.enum_type()->value_count() > 1 ? 1 : 0);
        many ? reflection.AddEnum(to, at, first) : reflection.SetEnum(to, at, first);
        break;
      }
      case FieldDescriptor::CPPTYPE_STRING:
        many ? reflection.AddString(to, at, word) : reflection.SetString(to, at, word);
        break;
      case FieldDescriptor::CPPTYPE_MESSAGE:
        if (!many) {
          fill(*reflection.MutableMessage(to, at), variant, path);
          break;
        }
        for (std::size_t each = 0; each < variants(field, path); ++each)
          fill(*reflection.AddMessage(to, at), each, path);
        break;
    }
  }

  google::protobuf::compiler::DiskSourceTree tree_;
  // google/protobuf/*.proto come from generated code.
  google::protobuf::DescriptorPoolDatabase generated_{
      *google::protobuf::DescriptorPool::generated_pool()};
  google::protobuf::compiler::SourceTreeDescriptorDatabase database_{&tree_, &generated_};
  google::protobuf::DescriptorPool pool_{&database_};
  google::protobuf::DynamicMessageFactory factory_{&pool_};
  std::vector<const FileDescriptor*> files_;
};

}  // namespace muster::test
