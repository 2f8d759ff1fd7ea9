// Messages of version 1 of the wire are understood for ever. tests/dumps/wire/v1/messages.txt has
// requests and responses of every method, with every field set. Generated code must read all of
// them and write the same bytes again.
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "muster/v1/agent_service.pb.h"
#include "muster/v1/job_service.pb.h"
#include "muster/v1/node_service.pb.h"
#include "tests/support/dumps.h"
#include "tests/support/schema.h"

namespace muster::test {
namespace {

using google::protobuf::Descriptor, google::protobuf::FieldDescriptor, google::protobuf::Message;

std::string hex(std::string_view bytes) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    text += kDigits[value >> 4U];
    text += kDigits[value & 15U];
  }
  return text;
}
std::string bytes_of(std::string_view text) {
  std::string bytes;
  for (std::size_t at = 0; at + 1 < text.size(); at += 2)
    bytes += static_cast<char>(std::stoi(std::string(text.substr(at, 2)), nullptr, 16));
  return bytes;
}

// Requests and responses of all methods.
std::set<std::string> method_types(const Schema& schema) {
  std::set<std::string> names;
  for (const auto* file : schema.files()) {
    for (int i = 0; i < file->service_count(); ++i) {
      for (int j = 0; j < file->service(i)->method_count(); ++j) {
        names.insert(file->service(i)->method(j)->input_type()->full_name());
        names.insert(file->service(i)->method(j)->output_type()->full_name());
      }
    }
  }
  return names;
}

// An empty message of generated code. Null: this program has no such type.
std::unique_ptr<Message> generated(const std::string& name) {
  // Makes sure that the linker keeps the code of all services.
  (void)v1::ConnectRequest::descriptor();
  (void)v1::SubmitJobRequest::descriptor();
  (void)v1::ListNodesRequest::descriptor();
  const Descriptor* type =
      google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(name);
  if (type == nullptr) return nullptr;
  return std::unique_ptr<Message>(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
}

// Returns why this build does not understand the message; empty: it does.
std::string misread(const std::string& name, const std::string& bytes) {
  const std::unique_ptr<Message> message = generated(name);
  if (message == nullptr) return "this test has no generated code of this message";
  if (!message->ParseFromString(bytes)) return "it does not parse";
  const std::size_t size = message->ByteSizeLong();
  message->DiscardUnknownFields();
  if (message->ByteSizeLong() != size) return "it has unknown fields";
  if (serialized(*message) != bytes) return "serialized again, it has other bytes";
  return {};
}

TEST(FrozenMessages, AreReadAndWrittenAsTheyWere) {
  Schema schema;
  std::set<std::string> missing = method_types(schema);
  const std::filesystem::path file = dumps() / "wire/v1/messages.txt";
  std::string text = read_dump(file);
  std::istringstream lines(text);
  for (std::string name, digits; lines >> name >> digits;) {
    SCOPED_TRACE(name);
    EXPECT_EQ(misread(name, bytes_of(digits == "-" ? "" : digits)), "")
        << "programs of an older release send these bytes: " << digits;
    missing.erase(name);
  }
  if (!writes_dumps()) {
    for (const std::string& name : missing)
      ADD_FAILURE() << "messages.txt has no " << name << "; run: " << how_to_write("unit_proto");
    return;
  }
  for (const std::string& name : missing) {
    for (const std::string& bytes : schema.samples(name)) {
      EXPECT_EQ(misread(name, bytes), "") << name;
      text += name + " " + (bytes.empty() ? "-" : hex(bytes)) + "\n";
    }
  }
  std::filesystem::create_directories(file.parent_path());
  write_dump_file(file, text);
}

TEST(FrozenMessages, WouldShowAChange) {
  v1::FactAck ack;
  ack.set_sequence(7);
  const std::string bytes = ack.SerializeAsString();
  EXPECT_EQ(misread("muster.v1.FactAck", bytes), "");
  EXPECT_EQ(misread("muster.v1.FactAck", bytes + "\x78\x01"), "it has unknown fields");
  EXPECT_EQ(misread("muster.v1.FactAck", bytes + "\x08"), "it does not parse");
  EXPECT_EQ(misread("muster.v1.FactAck", std::string("\x08\x00", 2)),
            "serialized again, it has other bytes");
  EXPECT_EQ(misread("muster.v1.NoSuchMessage", bytes),
            "this test has no generated code of this message");
  EXPECT_EQ(bytes_of(hex("\x01\xfe")), "\x01\xfe");
}

// Collects the fields that the message and all messages inside it have set.
void collect(const Message& message, std::set<std::string>& names) {
  std::vector<const FieldDescriptor*> fields;
  const auto& reflection = *message.GetReflection();
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    names.insert(field->full_name());
    if (field->message_type() == nullptr) continue;
    if (!field->is_repeated()) collect(reflection.GetMessage(message, field), names);
    for (int i = 0; field->is_repeated() && i < reflection.FieldSize(message, field); ++i)
      collect(reflection.GetRepeatedMessage(message, field, i), names);
  }
}
void reach(const Descriptor& type, std::set<std::string>& names) {
  for (int i = 0; i < type.field_count(); ++i) {
    if (names.insert(type.field(i)->full_name()).second && type.field(i)->message_type() != nullptr)
      reach(*type.field(i)->message_type(), names);
  }
}

// Proves that what is written into messages.txt has every field.
TEST(FrozenMessages, SamplesSetEveryField) {
  Schema schema;
  for (const std::string& name : method_types(schema)) {
    SCOPED_TRACE(name);
    std::set<std::string> there, set;
    reach(schema.type(name), there);
    for (const std::string& bytes : schema.samples(name)) {
      const std::unique_ptr<Message> message = generated(name);
      ASSERT_NE(message, nullptr);
      ASSERT_TRUE(message->ParseFromString(bytes));
      collect(*message, set);
    }
    EXPECT_EQ(set, there);
  }
}

}  // namespace
}  // namespace muster::test
