#include "agent/link/sendable.h"

#include <google/protobuf/descriptor.h>

#include <string>
#include <vector>

#include "agent/core/utf8.h"

namespace muster::agent {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

void mend_messages(Message& message, const Reflection& reflection, const FieldDescriptor* field) {
  if (!field->is_repeated()) return make_sendable(*reflection.MutableMessage(&message, field));
  for (int i = 0; i < reflection.FieldSize(message, field); ++i)
    make_sendable(*reflection.MutableRepeatedMessage(&message, field, i));
}

void mend_strings(Message& message, const Reflection& reflection, const FieldDescriptor* field) {
  std::string room;
  if (!field->is_repeated()) {
    const std::string& text = reflection.GetStringReference(message, field, &room);
    if (!is_utf8(text)) reflection.SetString(&message, field, as_utf8(text));
    return;
  }
  for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
    const std::string& text = reflection.GetRepeatedStringReference(message, field, i, &room);
    if (!is_utf8(text)) reflection.SetRepeatedString(&message, field, i, as_utf8(text));
  }
}

}  // namespace

void make_sendable(Message& message) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> present;
  reflection.ListFields(message, &present);
  for (const FieldDescriptor* field : present) {
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE)
      mend_messages(message, reflection, field);
    if (field->type() == FieldDescriptor::TYPE_STRING) mend_strings(message, reflection, field);
  }
}

std::vector<RunKey> trim_heartbeat(v1::Heartbeat& heartbeat, std::size_t most) {
  std::vector<RunKey> trimmed;
  for (std::size_t size = heartbeat.ByteSizeLong(); size > most;) {
    v1::AttemptReading* longest = nullptr;
    std::size_t bytes = 0;
    for (v1::AttemptReading& reading : *heartbeat.mutable_readings()) {
      if (reading.shards().empty()) continue;
      if (const std::size_t has = reading.ByteSizeLong(); has > bytes) {
        longest = &reading;
        bytes = has;
      }
    }
    if (longest == nullptr) break;
    longest->clear_shards();
    trimmed.emplace_back(JobId(longest->job_id()), AttemptNo(longest->attempt()));
    size = heartbeat.ByteSizeLong();
  }
  return trimmed;
}

}  // namespace muster::agent
