// The types of keys with one value.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "common/spec/field.h"
#include "common/spec/keys/key_type.h"
#include "common/spec/keys/names.h"
#include "common/spec/keys/values.h"
#include "common/spec/read_spec.h"
#include "common/spec/rules/rules.h"

namespace muster::spec {
namespace {

using google::protobuf::FieldDescriptor;

Field field(SpecReader& in, const KeyRow& row) { return {in.spec(), first_field(row)}; }

// The default word means that the key is absent; complete() fills in what it comes to.
bool is_default(SpecReader& in, const KeyRow& row, const std::string& value) {
  // A scalar "null" has quotes: it is a text. And the table writes an empty text with quotes.
  const bool is_word = !row.fallback.empty() && row.fallback != "null" && row.fallback[0] != '"';
  if (!is_word || value != row.fallback) return false;
  field(in, row).clear();
  return true;
}

// --- text ----------------------------------------------------------------------------------------
void read_text(SpecReader& in, const Node& node, const KeyRow& row) {
  const std::string* value = in.text(node, row);
  if (value != nullptr && !is_default(in, row, *value)) field(in, row).set_text(*value);
}

void read_full_text(SpecReader& in, const Node& node, const KeyRow& row) {
  const std::string* value = in.text(node, row);
  if (value == nullptr) return;
  if (value->empty())
    return in.problem(node, key_of(row), fmt::format("is empty ({})", row.accepted));
  if (!is_default(in, row, *value)) field(in, row).set_text(*value);
}

void read_out_path(SpecReader& in, const Node& node, const KeyRow& row) {
  const std::string* value = in.text(node, row);
  if (value == nullptr || is_default(in, row, *value)) return;
  if (value->empty())
    return in.problem(node, key_of(row), fmt::format("is empty ({})", row.accepted));
  const bool whole = value->starts_with('/') || value->starts_with("${out}");
  field(in, row).set_text(whole ? *value : "${out}/" + *value);
}

bool has_code(SpecReader& in) { return !in.spec().code().at().empty(); }

void read_code_from(SpecReader& in, const Node& node, const KeyRow& row) {
  const std::string* value = in.text(node, row);
  if (value == nullptr) return;
  const bool remote = value->find("://") != std::string::npos ||
                      (value->starts_with("git@") && value->find(':') != std::string::npos);
  if (remote)
    return in.problem(
        node, key_of(row),
        "code from git or an object store is known but not in this release (a directory)");
  if (value->empty()) return in.problem(node, key_of(row), "is empty (a directory)");
  if (has_code(in))
    return in.problem(node, key_of(row),
                      "code.at says already where the code is; leave one of the two out");
  field(in, row).set_text(in.below_base(*value));
}

void read_code_at(SpecReader& in, const Node& node, const KeyRow& row) {
  const std::string* value = in.text(node, row);
  if (value == nullptr || *value == row.fallback) return;
  if (!value->starts_with('/'))
    return in.problem(node, key_of(row),
                      fmt::format("'{}' is not absolute ({})", shown(*value), row.accepted));
  if (has_code(in))
    return in.problem(node, key_of(row),
                      "code.from says already where the code is; leave one of the two out");
  field(in, row).set_text(*value);
}

void read_start_from(SpecReader& in, const Node& node, const KeyRow& row) {
  const std::string* value = in.text(node, row);
  if (value == nullptr || is_default(in, row, *value)) return;
  if (value->empty())
    return in.problem(node, key_of(row), fmt::format("is empty ({})", row.accepted));
  if (!may_be_job(*value)) return field(in, row).set_text(*value);
  in.problem(
      node, key_of(row),
      fmt::format(
          "'{0}' is not accepted; a job is written job:{0}{1} ({2})", *value,
          is_stage_name(*value) ? fmt::format(", a stage of this spec stage:{}", *value) : "",
          row.accepted));
}

// --- words ---------------------------------------------------------------------------------------
bool is_yes(std::string_view word) { return word == "true" || word == "yes"; }
bool is_no(std::string_view word) { return word == "false" || word == "no"; }

void read_choice(SpecReader& in, const Node& node, const KeyRow& row) {
  const std::string* value = in.text(node, row);
  if (value == nullptr) return;
  const auto accepted = choices(row.accepted), later = choices(row.later);
  if (std::ranges::find(accepted, *value) != accepted.end()) {
    if (is_default(in, row, *value)) return;
    Field to = field(in, row);
    if (to.type() == FieldDescriptor::CPPTYPE_BOOL)
      to.set_bool(*value != "off");
    else if (to.type() == FieldDescriptor::CPPTYPE_ENUM)
      to.set_word(*value);
    else
      to.set_text(*value);
  } else if (std::ranges::find(later, *value) != later.end()) {
    in.problem(node, key_of(row),
               fmt::format("'{}' is known but not in this release ({})", *value, row.accepted));
  } else {
    in.not_accepted(node, row, *value);
    // The later checks depend on which engine was meant.
    if (row.key == "engine") field(in, row).set_text(*value);
  }
}

void read_switch(SpecReader& in, const Node& node, const KeyRow& row) {
  const std::string* value = in.text(node, row);
  if (value == nullptr || is_default(in, row, *value)) return;
  if (is_yes(*value) || is_no(*value))
    field(in, row).set_bool(is_yes(*value));
  else
    in.not_accepted(node, row, *value);
}

// --- numbers -------------------------------------------------------------------------------------
void read_number(SpecReader& in, const Node& node, const KeyRow& row) {
  const std::string* value = in.text(node, row);
  if (value == nullptr) return;
  if (auto number = parse_number(*value, row.least, row.most))
    field(in, row).set_number(*number);
  else
    in.problem(node, key_of(row), number.error().message);
}

// `noun`: what it is not, for the message.
void read_number_or_word(SpecReader& in, const Node& node, const KeyRow& row,
                         std::string_view noun) {
  const std::string* value = in.text(node, row);
  if (value == nullptr || is_default(in, row, *value)) return;
  if (auto number = parse_number(*value, row.least, row.most))
    field(in, row).set_number(*number);
  else
    in.problem(node, key_of(row),
               fmt::format("'{}' is not {} ({})", shown(*value), noun, row.accepted));
}
void read_port(SpecReader& in, const Node& node, const KeyRow& row) {
  read_number_or_word(in, node, row, "a port");
}
void read_step(SpecReader& in, const Node& node, const KeyRow& row) {
  read_number_or_word(in, node, row, "a step");
}

void read_duration(SpecReader& in, const Node& node, const KeyRow& row) {
  const std::string* value = in.text(node, row);
  if (value == nullptr) return;
  if (auto duration = parse_duration(*value))
    field(in, row).set_duration(*duration);
  else
    in.problem(node, key_of(row), duration.error().message);
}

void read_size(SpecReader& in, const Node& node, const KeyRow& row) {
  const std::string* value = in.text(node, row);
  if (value == nullptr) return;
  const auto size = parse_size(*value);
  if (size && *size > 0)
    field(in, row).set_number(*size);
  else
    in.problem(node, key_of(row),
               size ? fmt::format("must be more than 0 ({})", row.accepted) : size.error().message);
}

void read_lockable(SpecReader& in, const Node& node, const KeyRow& row) {
  if (node.kind == Node::Kind::Scalar && node.text == "unlimited")
    return field(in, row).set_number(std::numeric_limits<std::uint64_t>::max());
  read_size(in, node, row);
}

void read_cpus(SpecReader& in, const Node& node, const KeyRow& row) {
  const std::string* value = in.text(node, row);
  if (value == nullptr) return;
  if (const auto thousandths = parse_thousandths(*value);
      thousandths && *thousandths > 0 && *thousandths <= kMillicpusMax)
    field(in, row).set_number(*thousandths);
  else
    in.problem(node, key_of(row),
               fmt::format("'{}' is not a number of processors ({})", shown(*value), row.accepted));
}

// --- schemas -------------------------------------------------------------------------------------
Schema text_schema(const KeyRow&) { return scalar_schema(); }
Schema full_text_schema(const KeyRow&) {
  return {{"type", {"string", "number", "boolean"}}, {"minLength", 1}};
}
Schema code_from_schema(const KeyRow& row) {
  Schema schema = full_text_schema(row);
  schema["not"] = {{"type", "string"}, {"pattern", "://|^git@.*:"}};
  return schema;
}
Schema code_at_schema(const KeyRow& row) {
  return {{"type", "string"}, {"pattern", fmt::format("^(/|{}$)", row.fallback)}};
}

// What a reader of YAML 1.1 makes of an unquoted word is accepted, too.
void add_word(Schema& words, std::string_view word) {
  words.push_back(word);
  const bool yes = word == "true" || word == "yes" || word == "on";
  if (yes || word == "false" || word == "no" || word == "off") words.push_back(yes);
}
Schema choice_schema(const KeyRow& row) {
  Schema words = Schema::array();
  for (const std::string_view word : choices(row.accepted)) add_word(words, word);
  return {{"enum", words}};
}
Schema switch_schema(const KeyRow& row) {
  Schema words = Schema::array({row.fallback, "true", true, "false", false, "yes", "no"});
  return {{"enum", words}};
}
Schema number_schema(const KeyRow& row) { return number_between(row.least, row.most); }
Schema number_or_word_schema(const KeyRow& row) {
  Schema schema = number_schema(row);
  schema["anyOf"].push_back({{"const", row.fallback}});
  return schema;
}
Schema duration_schema(const KeyRow&) {
  return {{"anyOf",
           {{{"const", 0}},
            {{"type", "string"}, {"pattern", "^(0|([0-9]+(\\.[0-9]+)?(ms|s|m|h|d))+)$"}}}}};
}
constexpr const char* kSizePattern = "^[0-9]+(\\.[0-9]+)?(K|M|G|T|KiB|MiB|GiB|TiB)?$";
Schema size_schema(const KeyRow&) {
  return {{"anyOf",
           {{{"type", "number"}, {"exclusiveMinimum", 0}},
            {{"type", "string"}, {"pattern", kSizePattern}}}}};
}
Schema lockable_schema(const KeyRow& row) {
  Schema schema = size_schema(row);
  schema["anyOf"].push_back({{"const", "unlimited"}});
  return schema;
}
Schema cpus_schema(const KeyRow&) {
  return {{"anyOf",
           {{{"type", "number"}, {"minimum", 0.1}, {"maximum", 4096}},
            {{"type", "string"}, {"pattern", "^[0-9]+(\\.[0-9]{1,3})?$"}}}}};
}

}  // namespace

using enum NullMeans;
const KeyType kText = {.read = read_text, .schema = text_schema};
const KeyType kTextOrNull = {.read = read_text, .schema = text_schema, .null = Absent};
const KeyType kFullText = {.read = read_full_text, .schema = full_text_schema};
const KeyType kFullTextOrNull = {
    .read = read_full_text, .schema = full_text_schema, .null = Absent};
const KeyType kOutPath = {.read = read_out_path, .schema = full_text_schema};
const KeyType kCodeFrom = {.read = read_code_from, .schema = code_from_schema};
const KeyType kCodeAt = {.read = read_code_at, .schema = code_at_schema};
const KeyType kStartFrom = {.read = read_start_from, .schema = full_text_schema, .null = Absent};
const KeyType kChoice = {.read = read_choice, .schema = choice_schema};
const KeyType kChoiceOrNull = {.read = read_choice, .schema = choice_schema, .null = Absent};
const KeyType kSwitch = {.read = read_switch, .schema = switch_schema};
const KeyType kNumber = {.read = read_number, .schema = number_schema};
const KeyType kNumberOrNull = {.read = read_number, .schema = number_schema, .null = Absent};
const KeyType kNumberOrZero = {.read = read_number, .schema = number_schema, .null = Zero};
const KeyType kPort = {.read = read_port, .schema = number_or_word_schema};
const KeyType kStep = {.read = read_step, .schema = number_or_word_schema};
const KeyType kDuration = {.read = read_duration, .schema = duration_schema};
const KeyType kSize = {.read = read_size, .schema = size_schema, .null = Zero};
const KeyType kLockable = {.read = read_lockable, .schema = lockable_schema, .null = Zero};
const KeyType kCpus = {.read = read_cpus, .schema = cpus_schema, .null = Zero};

}  // namespace muster::spec
