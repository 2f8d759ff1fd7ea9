// The messages, enums and services of proto/ are frozen as version 1. tests/dumps/FORMAT/v1 has
// them as text (schema.txt): a line for each field, enum value and method, and for the file of each
// message, enum and service. Every line must hold for ever, and what is new must get a line in the
// same change (docs/compatibility.md): in the schema.txt of another folder.
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.pb.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <tuple>

#include "tests/support/dumps.h"
#include "tests/support/schema.h"

namespace muster::test {
namespace {

using google::protobuf::Descriptor, google::protobuf::EnumDescriptor,
    google::protobuf::FieldDescriptor, google::protobuf::FileDescriptor;
using testing::ElementsAre, testing::HasSubstr;

// What a line is about: message, number, "" of a field; enum, number, "" of a value; enum, number,
// name of a second name of a value; service, -1, name of a method; type, -2, "" of a file.
using Key = std::tuple<std::string, int, std::string>;
// Each line as it is in schema.txt, without its end.
using Lines = std::map<Key, std::string>;

Key key_of(const std::string& line) {
  std::istringstream words(line);
  std::string owner, number, name, kind;
  words >> owner >> number >> name >> kind;
  if (number == "file") return {owner, -2, ""};
  if (number == "rpc") return {owner, -1, name};
  return {owner, std::stoi(number), kind == "alias" ? name : ""};
}

void add_lines(Lines& lines, const std::string& text) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (!lines.emplace(key_of(line), line).second)
      ADD_FAILURE() << "schema.txt has this twice: " << line;
  }
}
Lines lines_of(const std::string& text) {
  Lines lines;
  add_lines(lines, text);
  return lines;
}
std::string text_of(const Lines& lines) {
  std::string text;
  for (const auto& [key, line] : lines) text += line + "\n";
  return text;
}

std::string type_of(const FieldDescriptor& field) {
  if (field.message_type() != nullptr) return "message " + field.message_type()->full_name();
  if (field.enum_type() != nullptr) return "enum " + field.enum_type()->full_name();
  return field.type_name();
}
std::string text_of(const FieldDescriptor& field) {
  std::string label = "single";
  if (field.is_map())
    return "map " + type_of(*field.message_type()->map_key()) + " to " +
           type_of(*field.message_type()->map_value());
  if (field.is_repeated()) label = field.is_packed() ? "packed" : "repeated";
  if (field.has_optional_keyword()) label = "optional";
  if (field.real_containing_oneof() != nullptr)
    label = "oneof " + field.real_containing_oneof()->name();
  label += " " + type_of(field);
  return field.has_json_name() ? label + " json " + field.json_name() : label;
}

void add(Lines& lines, const std::string& line) { lines.emplace(key_of(line), line); }
// A second name of a number (allow_alias) is "alias".
void add(Lines& lines, const EnumDescriptor& type) {
  for (int i = 0; i < type.value_count(); ++i) {
    const auto& value = *type.value(i);
    const bool first = type.FindValueByNumber(value.number()) == &value;
    add(lines, type.full_name() + " " + std::to_string(value.number()) + " " + value.name() +
                   (first ? " value" : " alias"));
  }
}
void add(Lines& lines, const Descriptor& type) {
  if (type.options().map_entry()) return;
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    add(lines, type.full_name() + " " + std::to_string(field.number()) + " " + field.name() + " " +
                   text_of(field));
  }
  for (int i = 0; i < type.nested_type_count(); ++i) add(lines, *type.nested_type(i));
  for (int i = 0; i < type.enum_type_count(); ++i) add(lines, *type.enum_type(i));
}
Lines lines_of(const FileDescriptor& file) {
  Lines lines;
  const auto add_all = [&lines, &file](const auto& type) {
    add(lines, type.full_name() + " file " + file.name());
    add(lines, type);
  };
  for (int i = 0; i < file.message_type_count(); ++i) add_all(*file.message_type(i));
  for (int i = 0; i < file.enum_type_count(); ++i) add_all(*file.enum_type(i));
  for (int i = 0; i < file.service_count(); ++i) {
    add(lines, file.service(i)->full_name() + " file " + file.name());
    for (int j = 0; j < file.service(i)->method_count(); ++j) {
      const auto& method = *file.service(i)->method(j);
      add(lines, file.service(i)->full_name() + " rpc " + method.name() + " " +
                     (method.client_streaming() ? "stream " : "") +
                     method.input_type()->full_name() + " to " +
                     (method.server_streaming() ? "stream " : "") +
                     method.output_type()->full_name());
    }
  }
  return lines;
}

// "muster.v1" is in tests/dumps/wire, "muster.journal.v1" in tests/dumps/journal.
std::string format_of(const std::string& package) {
  const std::size_t first = package.find('.'), last = package.rfind('.');
  return first == last ? "wire" : package.substr(first + 1, last - first - 1);
}

// Returns a sentence for each line of the frozen schema that does not hold.
std::vector<std::string> broken(const Lines& frozen, const Lines& today) {
  std::vector<std::string> sentences;
  for (const auto& [key, line] : frozen) {
    const auto now = today.find(key);
    if (now == today.end())
      sentences.push_back(
          "proto/ does not have this any more, and version 1 has it for ever: '" + line +
          "'. Put it back. Programs may stop to use it; what is wanted instead gets a new number");
    else if (now->second != line)
      sentences.push_back("version 1 has '" + line + "', and proto/ has '" + now->second +
                          "'. Change it back. What is wanted instead is a new field, value or "
                          "method with the next number or a new name");
  }
  return sentences;
}
// Returns the lines that only today's schema has.
Lines added(const Lines& frozen, const Lines& today) {
  Lines lines;
  for (const auto& [key, line] : today)
    if (!frozen.contains(key)) lines.emplace(key, line);
  return lines;
}

const DumpFiles kSchema = {"schema.txt"};

// Writes lines that no folder of the format has. Without v1/schema.txt nothing is known to be
// frozen, so it is written only if nothing but v1 exists.
void write_lines(const std::string& format, const Lines& news) {
  const std::filesystem::path root = dumps() / format;
  std::error_code none;
  for (const auto& folder : std::filesystem::directory_iterator(root, none))
    if (folder.path().filename() != "v1" && !std::filesystem::exists(root / "v1/schema.txt"))
      throw std::runtime_error("restore v1/schema.txt with git: " + root.native());
  write_dump_file(next_dump(format, kSchema) / "schema.txt", text_of(news));
}

TEST(FrozenSchema, EveryLineHoldsAndWhatIsNewHasOne) {
  const Schema schema;
  std::map<std::string, Lines> today;  // by format
  for (const FileDescriptor* file : schema.files())
    today[format_of(file->package())].merge(lines_of(*file));
  std::error_code none;
  for (const auto& format : std::filesystem::directory_iterator(dumps(), none))
    if (format.is_directory()) today.try_emplace(format.path().filename().string());
  for (const auto& [format, lines] : today) {
    SCOPED_TRACE(format);
    Lines frozen;
    for (const auto& folder : dumps_with(format, kSchema))
      add_lines(frozen, read_dump(folder / "schema.txt"));
    const std::vector<std::string> sentences = broken(frozen, lines);
    for (const std::string& sentence : sentences) ADD_FAILURE() << sentence;
    const Lines news = added(frozen, lines);
    if (news.empty()) continue;
    if (!writes_dumps()) {
      ADD_FAILURE() << "proto/ has what no schema.txt of tests/dumps/" << format << " has:\n"
                    << text_of(news)
                    << "It must be frozen in the same change, because later nobody would see that "
                       "it changes. Run: "
                    << how_to_write("unit_proto");
    } else if (sentences.empty()) {
      write_lines(format, news);
    }
  }
}

TEST(FrozenSchema, HasAFormatForEachPackage) {
  EXPECT_EQ(format_of("muster.v1"), "wire");
  EXPECT_EQ(format_of("muster.journal.v1"), "journal");
  EXPECT_EQ(format_of("muster.rundir.v2"), "rundir");
}

TEST(FrozenSchema, NamesWhatDoesNotHold) {
  const Lines frozen = lines_of(
      "a.Kind 1 KIND_A value\n"
      "a.Kind 1 KIND_OLD alias\n"
      "a.M file a/m.proto\n"
      "a.M 1 one single uint32\n"
      "a.M 2 two map string to bytes\n"
      "a.M 12 three optional int64\n"
      "a.S rpc Do a.M to stream a.M\n");
  EXPECT_THAT(broken(frozen, frozen), ElementsAre());
  Lines today = frozen;
  add(today, "a.M 3 new oneof what message a.N");
  EXPECT_THAT(broken(frozen, today), ElementsAre());
  EXPECT_EQ(text_of(added(frozen, today)), "a.M 3 new oneof what message a.N\n");

  today = frozen;
  today.erase(key_of("a.M 2 two"));
  EXPECT_THAT(broken(frozen, today), ElementsAre(HasSubstr("any more, and version 1 has it for "
                                                           "ever: 'a.M 2 two map string to bytes'. "
                                                           "Put it back.")));
  today = frozen;
  today.erase(key_of("a.Kind 1 KIND_OLD alias"));
  EXPECT_THAT(broken(frozen, today), ElementsAre(HasSubstr("'a.Kind 1 KIND_OLD alias'")));
  for (const char* changed :
       {"a.Kind 1 KIND_B value", "a.M 1 other single uint32", "a.M 1 one optional uint32",
        "a.M 1 one single uint64", "a.M 1 one single uint32 json One", "a.M file a/other.proto",
        "a.S rpc Do stream a.M to stream a.M"}) {
    today = frozen;
    today[key_of(changed)] = changed;
    EXPECT_THAT(broken(frozen, today),
                ElementsAre(HasSubstr(std::string("and proto/ has '") + changed +
                                      "'. Change it "
                                      "back.")));
  }
}

TEST(FrozenSchema, IsSortedByMessageAndNumber) {
  EXPECT_EQ(text_of(lines_of("a.M 12 c single bool\na.M 2 b single bool\na.L 3 a single bool\n"
                             "a.L rpc Do a.M to a.M\n")),
            "a.L rpc Do a.M to a.M\na.L 3 a single bool\na.M 2 b single bool\na.M 12 c single "
            "bool\n");
}

// What generated code and JSON show of a file, beside numbers and types.
TEST(FrozenSchema, HasNamesInJsonSecondNamesAndFiles) {
  google::protobuf::FileDescriptorProto file;
  file.set_name("a/m.proto");
  file.set_package("a");
  file.set_syntax("proto3");
  auto& kind = *file.add_enum_type();
  kind.set_name("Kind");
  kind.mutable_options()->set_allow_alias(true);
  using Named = std::pair<const char*, int>;
  for (const auto& [name, number] : {Named("NONE", 0), Named("NEW", 1), Named("OLD", 1)}) {
    kind.add_value()->set_name(name);
    kind.mutable_value(kind.value_size() - 1)->set_number(number);
  }
  auto& message = *file.add_message_type();
  message.set_name("M");
  for (const char* name : {"one", "two"}) {
    auto& field = *message.add_field();
    field.set_name(name);
    field.set_number(message.field_size());
    field.set_label(google::protobuf::FieldDescriptorProto::LABEL_OPTIONAL);
    field.set_type(google::protobuf::FieldDescriptorProto::TYPE_BOOL);
  }
  message.mutable_field(1)->set_json_name("second");
  google::protobuf::DescriptorPool pool;
  const FileDescriptor* built = pool.BuildFile(file);
  ASSERT_NE(built, nullptr);
  EXPECT_EQ(text_of(lines_of(*built)),
            "a.Kind file a/m.proto\n"
            "a.Kind 0 NONE value\n"
            "a.Kind 1 NEW value\n"
            "a.Kind 1 OLD alias\n"
            "a.M file a/m.proto\n"
            "a.M 1 one single bool\n"
            "a.M 2 two single bool json second\n");
}

}  // namespace
}  // namespace muster::test
