#include "common/spec/strings.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "common/base/controls.h"
#include "common/spec/keys/values.h"

namespace muster::spec {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// These fields may contain a line end or a tab.
constexpr std::array<std::string_view, 6> kFree = {
    "muster.v1.JobSpec.description", "muster.v1.ObserveSpec.step",  "muster.v1.ObserveSpec.loss",
    "muster.v1.ObserveSpec.total",   "muster.v1.SuccessSpec.regex", "muster.v1.ConfigChange.value"};
// the only list of texts that holds names
constexpr std::string_view kHosts = "muster.v1.ResourceSpec.hosts";

bool has_nul(std::string_view, std::string_view text) {
  return text.find('\0') != std::string_view::npos;
}
bool is_no_line(std::string_view field, std::string_view text) {
  return std::ranges::find(kFree, field) == kFree.end() && has_controls(text);
}

struct Walk {
  bool (*wrong)(std::string_view field, std::string_view text);
  bool collections = true;  // maps and lists of texts, too
  std::vector<std::string> found;

  void message(const Message& message, const std::string& prefix) {
    const auto& reflection = *message.GetReflection();
    std::vector<const FieldDescriptor*> fields;
    reflection.ListFields(message, &fields);
    std::string scratch;
    for (const FieldDescriptor* field : fields) {
      const std::string key =
          prefix.empty() ? std::string(field->name()) : fmt::format("{}.{}", prefix, field->name());
      const std::string_view full = field->full_name();
      const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
      if (field->is_map()) {
        if (collections) map(message, *field, key);
      } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
        if (field->type() == FieldDescriptor::TYPE_BYTES && !collections) continue;
        if (field->is_repeated() && !collections && full != kHosts) continue;
        for (int i = 0; i < count; ++i) {
          const std::string& text =
              field->is_repeated()
                  ? reflection.GetRepeatedStringReference(message, field, i, &scratch)
                  : reflection.GetStringReference(message, field, &scratch);
          if (wrong(full, text))
            found.push_back(field->is_repeated() ? fmt::format("{}[{}]", key, i) : key);
        }
      } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        for (int i = 0; i < count; ++i)
          this->message(field->is_repeated() ? reflection.GetRepeatedMessage(message, field, i)
                                             : reflection.GetMessage(message, field),
                        key);
      }
    }
  }

  void map(const Message& message, const FieldDescriptor& field, const std::string& key) {
    const FieldDescriptor* name = field.message_type()->map_key();
    const FieldDescriptor* value = field.message_type()->map_value();
    for (int i = 0; i < message.GetReflection()->FieldSize(message, &field); ++i) {
      const Message& entry = message.GetReflection()->GetRepeatedMessage(message, &field, i);
      const std::string text = entry.GetReflection()->GetString(entry, name);
      if (wrong(name->full_name(), text) ||
          wrong(value->full_name(), entry.GetReflection()->GetString(entry, value)))
        found.push_back(fmt::format("{}.{}", key, shown(text)));
    }
  }
};

struct Texts {
  std::vector<std::pair<std::string, std::string>> found;

  void message(const Message& message, const std::string& prefix) {
    const auto& reflection = *message.GetReflection();
    std::vector<const FieldDescriptor*> fields;
    reflection.ListFields(message, &fields);
    std::string scratch;
    for (const FieldDescriptor* field : fields) {
      const std::string key =
          prefix.empty() ? std::string(field->name()) : fmt::format("{}.{}", prefix, field->name());
      const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
      for (int i = 0; i < count; ++i) {
        if (field->is_map()) {
          const Message& entry = reflection.GetRepeatedMessage(message, field, i);
          const auto text = [&](const FieldDescriptor* part) {
            return entry.GetReflection()->GetString(entry, part);
          };
          found.emplace_back(
              fmt::format("{}.{}", key, shown(text(field->message_type()->map_key()))),
              text(field->message_type()->map_value()));
        } else if (field->type() == FieldDescriptor::TYPE_STRING) {
          if (field->is_repeated())
            found.emplace_back(fmt::format("{}[{}]", key, i),
                               reflection.GetRepeatedStringReference(message, field, i, &scratch));
          else
            found.emplace_back(key, reflection.GetStringReference(message, field, &scratch));
        } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
          this->message(field->is_repeated() ? reflection.GetRepeatedMessage(message, field, i)
                                             : reflection.GetMessage(message, field),
                        key);
        }
      }
    }
  }
};

}  // namespace

std::vector<std::pair<std::string, std::string>> texts_of(const v1::JobSpec& spec) {
  Texts texts;
  texts.message(spec, "");
  return std::move(texts.found);
}

std::vector<std::string> strings_with_nul(const v1::JobSpec& spec) {
  Walk walk{.wrong = has_nul};
  walk.message(spec, "");
  return std::move(walk.found);
}

std::vector<std::string> lines_with_controls(const v1::JobSpec& spec) {
  Walk walk{.wrong = is_no_line, .collections = false};
  walk.message(spec, "");
  return std::move(walk.found);
}

}  // namespace muster::spec
