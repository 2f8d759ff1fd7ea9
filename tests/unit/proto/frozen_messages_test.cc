// Messages of version 1 of the wire are understood for ever. tests/dumps/wire/v1/messages.txt has
// requests and responses of every method, with every field set. Generated code must read all of
// them and write the same bytes again. The messages.txt of further folders have members of oneofs
// that were added later.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "muster/v1/agent_service.pb.h"
#include "muster/v1/certificate_service.pb.h"
#include "muster/v1/job_service.pb.h"
#include "muster/v1/node_service.pb.h"
#include "muster/v1/secret_service.pb.h"
#include "muster/v1/store_service.pb.h"
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
  (void)v1::IssueCertificateRequest::descriptor();
  (void)v1::SubmitJobRequest::descriptor();
  (void)v1::ListNodesRequest::descriptor();
  (void)v1::SetSecretRequest::descriptor();
  (void)v1::SetStoreRequest::descriptor();
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
// Returns those that are members of oneofs.
std::set<std::string> members_of_oneofs(const Schema& schema, const std::set<std::string>& fields) {
  std::set<std::string> members;
  for (const std::string& name : fields) {
    const FieldDescriptor* field = schema.pool().FindFieldByName(name);
    if (field != nullptr && field->real_containing_oneof() != nullptr) members.insert(name);
  }
  return members;
}
// What the samples of a message must show: the message itself, and each member of the oneofs in it.
std::set<std::string> parts_of(const Schema& schema, const std::string& name) {
  std::set<std::string> fields;
  reach(schema.type(name), fields);
  std::set<std::string> parts = members_of_oneofs(schema, fields);
  parts.insert(name);
  return parts;
}
std::set<std::string> parts_in(const Schema& schema, const std::string& name,
                               const std::string& bytes) {
  const std::unique_ptr<Message> message = generated(name);
  if (message == nullptr || !message->ParseFromString(bytes)) return {};
  std::set<std::string> fields;
  collect(*message, fields);
  std::set<std::string> parts = members_of_oneofs(schema, fields);
  parts.insert(name);
  return parts;
}

using Parts = std::map<std::string, std::set<std::string>>;  // by the name of the message

// Checks each line, and removes from `missing` what it shows.
void read_messages(const Schema& schema, const std::string& text, Parts& missing) {
  std::istringstream lines(text);
  for (std::string name, digits; lines >> name >> digits;) {
    SCOPED_TRACE(name);
    const std::string bytes = bytes_of(digits == "-" ? "" : digits);
    EXPECT_EQ(misread(name, bytes), "")
        << "programs of an older release send these bytes: " << digits;
    for (const std::string& part : parts_in(schema, name, bytes)) missing[name].erase(part);
  }
}

TEST(FrozenMessages, AreReadAndWrittenAsTheyWere) {
  const DumpFiles messages = {"messages.txt"};
  Schema schema;
  Parts missing;
  for (const std::string& name : method_types(schema)) missing[name] = parts_of(schema, name);
  for (const auto& folder : dumps_with("wire", messages))
    read_messages(schema, read_dump(folder / "messages.txt"), missing);
  std::string text;
  for (const auto& [name, parts] : missing) {
    for (const std::string& bytes :
         parts.empty() ? std::vector<std::string>() : schema.samples(name)) {
      const std::set<std::string> shown = parts_in(schema, name, bytes);
      if (std::ranges::any_of(parts, [&](const std::string& one) { return shown.contains(one); }))
        text += name + " " + (bytes.empty() ? "-" : hex(bytes)) + "\n";
    }
  }
  if (writes_dumps() && !text.empty()) {
    write_dump_file(next_dump("wire", messages) / "messages.txt", text);
    read_messages(schema, text, missing);
  }
  for (const auto& [name, parts] : missing)
    for (const std::string& part : parts)
      ADD_FAILURE() << "no messages.txt has a " << name << " with " << part
                    << "; run: " << how_to_write("unit_proto");
}

TEST(FrozenMessages, ShowEveryMemberOfAOneof) {
  const Schema schema;
  const std::string name = "muster.v1.ConnectRequest";
  const std::set<std::string> parts = parts_of(schema, name);
  EXPECT_TRUE(parts.contains(name));
  EXPECT_TRUE(parts.contains("muster.v1.ConnectRequest.hello"));
  EXPECT_TRUE(parts.contains("muster.v1.Fact.exited")) << "at every depth";
  v1::ConnectRequest heartbeat;
  heartbeat.mutable_heartbeat();
  Parts missing = {{name, parts}};
  read_messages(schema, name + " " + hex(heartbeat.SerializeAsString()), missing);
  EXPECT_FALSE(missing[name].contains("muster.v1.ConnectRequest.heartbeat"));
  EXPECT_TRUE(missing[name].contains("muster.v1.ConnectRequest.hello"))
      << "one sample of the message does not stand for all of them";
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
