#include "agent/link/sendable.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/core/utf8.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::MessageFactory;
using google::protobuf::Reflection;

// One byte that belongs to no character, between some valid characters.
const std::string kBad = "m\xc3\xbc\xff.";
const std::string kGood = "m\xc3\xbc?.";

void put_text(Message& message, const Reflection& reflection, const FieldDescriptor* field) {
  if (field->is_repeated()) {
    reflection.AddString(&message, field, kBad);
  } else {
    reflection.SetString(&message, field, kBad);
  }
}

// Every field that contains text, in as many messages as the choices (oneof) require: each choice
// occurs in one message.
std::vector<std::unique_ptr<Message>> filled(const Descriptor* type) {
  std::vector<std::unique_ptr<Message>> all;
  const auto fresh = [type] {
    return std::unique_ptr<Message>(MessageFactory::generated_factory()->GetPrototype(type)->New());
  };
  const auto whole = [&](std::size_t index) -> Message& {  // all fields outside of choices
    while (all.size() <= index) all.push_back(fresh());
    return *all[index];
  };
  whole(0);
  std::vector<std::unique_ptr<Message>> choices;
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    const bool chosen = field->containing_oneof() != nullptr;
    const auto in = [&](std::size_t index) -> Message& {
      return chosen ? *choices.emplace_back(fresh()) : whole(index);
    };
    if (field->is_map()) {
      Message& message = in(0);
      Message& entry = *message.GetReflection()->AddMessage(&message, field);
      for (const FieldDescriptor* one :
           {field->message_type()->map_key(), field->message_type()->map_value()}) {
        if (one->cpp_type() == FieldDescriptor::CPPTYPE_STRING)
          put_text(entry, *entry.GetReflection(), one);
      }
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      Message& message = in(0);
      put_text(message, *message.GetReflection(), field);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      std::size_t index = 0;
      for (const auto& one : filled(field->message_type())) {
        Message& message = in(field->is_repeated() ? 0 : index++);
        const Reflection& reflection = *message.GetReflection();
        Message* to = field->is_repeated() ? reflection.AddMessage(&message, field)
                                           : reflection.MutableMessage(&message, field);
        to->CopyFrom(*one);
      }
    }
  }
  for (auto& one : choices) all.push_back(std::move(one));
  return all;
}

// Calls `visit` for each text in the message.
void each_text(const Message& message,
               const std::function<void(const FieldDescriptor&, const std::string&)>& visit) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> present;
  reflection.ListFields(message, &present);
  for (const FieldDescriptor* field : present) {
    const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
        visit(*field, field->is_repeated() ? reflection.GetRepeatedString(message, field, i)
                                           : reflection.GetString(message, field));
      } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        each_text(field->is_repeated() ? reflection.GetRepeatedMessage(message, field, i)
                                       : reflection.GetMessage(message, field),
                  visit);
      }
    }
  }
}

// Regression: one byte in the name of a shard made the heartbeat unreadable. The stream ended, and
// after each reconnect the same heartbeat was sent first. Future fields are tested here
// automatically.
TEST(Sendable, NoFieldOfAnOutgoingMessageCanMakeItUnreadable) {
  const google::protobuf::LogSilencer quiet;
  for (const Descriptor* type :
       {v1::ConnectRequest::descriptor(), v1::PushLogsRequest::descriptor()}) {
    std::size_t texts = 0;
    for (const auto& message : filled(type)) {
      std::size_t strings = 0;
      each_text(*message, [&](const FieldDescriptor& field, const std::string&) {
        strings += field.type() == FieldDescriptor::TYPE_STRING ? 1U : 0U;
      });
      texts += strings;
      const std::unique_ptr<Message> heard(message->New());
      ASSERT_EQ(heard->ParsePartialFromString(message->SerializePartialAsString()), strings == 0)
          << message->ShortDebugString();
      make_sendable(*message);
      ASSERT_TRUE(heard->ParseFromString(message->SerializeAsString()))
          << message->ShortDebugString();
      each_text(*heard, [](const FieldDescriptor& field, const std::string& text) {
        EXPECT_EQ(text, field.type() == FieldDescriptor::TYPE_STRING ? kGood : kBad)
            << field.full_name();
      });
    }
    EXPECT_GT(texts, type == v1::ConnectRequest::descriptor() ? 20U : 5U)
        << "the test has met them all";
  }
}

// Regression: a save directory of 60,000 shards made a heartbeat larger than the bound of a
// message. The stream ended, was opened again, and ended at once.
TEST(TrimHeartbeat, OneJobsShardsGoAndTheOthersStay) {
  v1::Heartbeat heartbeat;
  const auto add = [&heartbeat](const char* job, int shards) {
    v1::AttemptReading& reading = *heartbeat.add_readings();
    reading.set_job_id(job);
    reading.set_attempt(1);
    reading.add_ranks()->set_step(7);
    for (int i = 0; i < shards; ++i) reading.add_shards()->set_path(std::string(100, 'x'));
  };
  add("a", 10);
  add("b", 1000);
  add("c", 50);
  const std::size_t whole = heartbeat.ByteSizeLong();
  EXPECT_TRUE(trim_heartbeat(heartbeat, whole).empty());
  EXPECT_EQ(heartbeat.ByteSizeLong(), whole);
  EXPECT_EQ(trim_heartbeat(heartbeat, whole - 1), std::vector{RunKey(JobId("b"), AttemptNo(1))});
  ASSERT_EQ(heartbeat.readings_size(), 3);
  EXPECT_EQ(heartbeat.readings(0).shards_size(), 10);
  EXPECT_EQ(heartbeat.readings(1).shards_size(), 0);
  EXPECT_EQ(heartbeat.readings(1).ranks(0).step(), 7) << "its progress is told all the same";
  EXPECT_EQ(heartbeat.readings(2).shards_size(), 50);
  EXPECT_EQ(trim_heartbeat(heartbeat, 100).size(), 2U);
}

TEST(Sendable, OnlyBytesOfNoCharacterAreReplaced) {
  for (const auto& [text, expected] : std::vector<std::pair<std::string, std::string>>{
           {"", ""},
           {"plain", "plain"},
           {"\xe6\xad\xa5\xf0\x9f\x9a\x80", "\xe6\xad\xa5\xf0\x9f\x9a\x80"},
           {"\xe6\xad", "??"},
           {"\xff\xe6\xad\xa5", "?\xe6\xad\xa5"}}) {
    EXPECT_EQ(as_utf8(text), expected);
    EXPECT_EQ(is_utf8(text), text == expected);
  }
}

}  // namespace
}  // namespace muster::agent
