// The messages, enums and services of proto/ are frozen as version 1. tests/dumps/FORMAT/v1 has
// them as text (schema.txt): a line for each field, enum value and method. Every line must hold for
// ever, and what is new must get a line in the same change (docs/compatibility.md).
#include <gmock/gmock.h>
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

// What a line is about: message, number, "" of a field; enum, number, "" of a value; service, -1,
// name of a method.
using Key = std::tuple<std::string, int, std::string>;
// Each line as it is in schema.txt, without its end.
using Lines = std::map<Key, std::string>;

Key key_of(const std::string& line) {
  std::istringstream words(line);
  std::string owner, number, name;
  words >> owner >> number >> name;
  if (number == "rpc") return {owner, -1, name};
  return {owner, std::stoi(number), ""};
}

Lines lines_of(const std::string& text) {
  Lines lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (!lines.emplace(key_of(line), line).second)
      ADD_FAILURE() << "schema.txt has this twice: " << line;
  }
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
  return label + " " + type_of(field);
}

void add(Lines& lines, const std::string& line) { lines.emplace(key_of(line), line); }
void add(Lines& lines, const EnumDescriptor& type) {
  for (int i = 0; i < type.value_count(); ++i)
    add(lines, type.full_name() + " " + std::to_string(type.value(i)->number()) + " " +
                   type.value(i)->name() + " value");
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
  for (int i = 0; i < file.message_type_count(); ++i) add(lines, *file.message_type(i));
  for (int i = 0; i < file.enum_type_count(); ++i) add(lines, *file.enum_type(i));
  for (int i = 0; i < file.service_count(); ++i) {
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

// "muster.v1" is in tests/dumps/wire/v1, "muster.journal.v1" in tests/dumps/journal/v1.
std::string folder_of(const std::string& package) {
  const std::size_t first = package.find('.'), last = package.rfind('.');
  return (first == last ? "wire" : package.substr(first + 1, last - first - 1)) +
         package.substr(last).replace(0, 1, "/");
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

TEST(FrozenSchema, EveryLineHoldsAndWhatIsNewHasOne) {
  const Schema schema;
  std::map<std::string, Lines> today;  // by folder of tests/dumps
  for (const FileDescriptor* file : schema.files())
    today[folder_of(file->package())].merge(lines_of(*file));
  for (const auto& format : std::filesystem::directory_iterator(checkout("tests/dumps")))
    if (std::filesystem::exists(format.path() / "v1/schema.txt"))
      today.try_emplace(format.path().filename().string() + "/v1");
  for (const auto& [folder, lines] : today) {
    SCOPED_TRACE(folder);
    const std::filesystem::path file = dumps() / folder / "schema.txt";
    const Lines frozen = lines_of(read_dump(file));
    const std::vector<std::string> sentences = broken(frozen, lines);
    for (const std::string& sentence : sentences) ADD_FAILURE() << sentence;
    const Lines news = added(frozen, lines);
    if (news.empty()) continue;
    if (!writes_dumps()) {
      ADD_FAILURE() << "proto/ has what " << folder << "/schema.txt of tests/dumps lacks:\n"
                    << text_of(news)
                    << "It must be frozen in the same change, because later nobody would see that "
                       "it changes. Run: "
                    << how_to_write("unit_proto");
    } else if (sentences.empty()) {
      Lines all = frozen;
      all.insert(news.begin(), news.end());
      std::filesystem::create_directories(file.parent_path());
      write_dump_file(file, text_of(all));
    }
  }
}

TEST(FrozenSchema, HasAFolderForEachPackage) {
  EXPECT_EQ(folder_of("muster.v1"), "wire/v1");
  EXPECT_EQ(folder_of("muster.journal.v1"), "journal/v1");
  EXPECT_EQ(folder_of("muster.rundir.v2"), "rundir/v2");
}

TEST(FrozenSchema, NamesWhatDoesNotHold) {
  const Lines frozen = lines_of(
      "a.Kind 1 KIND_A value\n"
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
  for (const char* changed :
       {"a.Kind 1 KIND_B value", "a.M 1 other single uint32", "a.M 1 one optional uint32",
        "a.M 1 one single uint64", "a.S rpc Do stream a.M to stream a.M"}) {
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

}  // namespace
}  // namespace muster::test
