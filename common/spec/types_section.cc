// The types of keys that are sections, and of keys that take a section or one value for all of it.
#include <fmt/format.h>

#include "common/spec/field.h"
#include "common/spec/keys/key_type.h"
#include "common/spec/read_spec.h"
#include "common/spec/schema.h"

namespace muster::spec {
namespace {

bool is_nothing(const Node& node, const std::string* value) {
  return node.kind == Node::Kind::Null || (value != nullptr && *value == "none");
}

void read_section(SpecReader& in, const Node& node, const KeyRow& row) {
  in.section(node, key_of(row));
}

void read_start(SpecReader& in, const Node& node, const KeyRow& row) {
  in.section(node, key_of(row));
  if (node.kind != Node::Kind::Map || node.get("from") != nullptr || in.spoiled("start.from") ||
      !in.spec().start().from().empty())
    return;
  for (const char* key : {"as", "step"})
    if (const Node* value = node.get(key); value != nullptr && !value->bad)
      in.problem(
          *value, fmt::format("start.{}", key),
          fmt::format("says nothing without start.from ({})", find_key("start.from")->accepted));
}

void read_setup(SpecReader& in, const Node& node, const KeyRow& row) {
  if (node.kind == Node::Kind::Map)
    in.section(node, key_of(row));
  else
    kTexts.read(in, node, row);
}

void read_resume(SpecReader& in, const Node& node, const KeyRow& row) {
  Field enabled(in.spec(), first_field(row));
  enabled.clear();
  if (node.kind == Node::Kind::Map) return in.section(node, key_of(row));
  const std::string* value = node.kind == Node::Kind::Null ? nullptr : in.text(node, row);
  if (is_nothing(node, value))
    enabled.set_bool(false);
  else if (value != nullptr && *value != row.fallback)
    in.not_accepted(node, row, *value);
}

void read_profile(SpecReader& in, const Node& node, const KeyRow& row) {
  Field profile(in.spec(), first_field(row));
  if (node.kind == Node::Kind::Map) {
    profile.set_message();
    if (node.keys.empty())
      return in.problem(node, key_of(row), fmt::format("is an empty map ({})", row.accepted));
    return in.section(node, key_of(row));
  }
  const std::string* value = in.text(node, row);
  if (value == nullptr) return;
  if (*value == "true" || *value == "yes")
    profile.set_message();
  else if (*value != "false" && *value != "no")
    in.not_accepted(node, row, *value);
}

void read_progress(SpecReader& in, const Node& node, const KeyRow& row) {
  Field grammar(in.spec(), first_field(row));
  if (node.kind == Node::Kind::Map) {
    grammar.set_text("custom");
    in.section(node, key_of(row));
    if (in.spec().observe().step().empty() && node.get("step") == nullptr &&
        !in.spoiled("observe.progress.step"))
      in.problem(node, "observe.progress.step",
                 "is missing: without it no line is a step (a regular expression with one group)");
    return;
  }
  const std::string* value = node.kind == Node::Kind::Null ? nullptr : in.text(node, row);
  if (is_nothing(node, value))
    grammar.set_text("none");
  else if (value != nullptr && *value != row.fallback)
    in.not_accepted(node, row, *value);
}

void read_success(SpecReader& in, const Node& node, const KeyRow& row) {
  if (node.kind == Node::Kind::Map) {
    if (node.get("regex") != nullptr && node.get("file") != nullptr)
      return in.problem(node, key_of(row), "either regex or file, not both");
    if (node.get("rank_file") != nullptr && node.keys.size() > 1)
      return in.problem(node, key_of(row), "rank_file stands alone");
    in.section(node, key_of(row));
    if (node.keys.empty())
      in.problem(node, key_of(row), fmt::format("is an empty map ({})", row.accepted));
    return;
  }
  const std::string* value = in.text(node, row);
  if (value == nullptr) return;
  if (*value == "exit0")
    in.spec().mutable_success()->set_exit0(true);
  else if (*value == "last-step")
    in.spec().mutable_success()->set_last_step(true);
  else if (*value != row.fallback)
    in.not_accepted(node, row, *value);
}

// stages.cc reads the keys below a stage's name. Here an empty chain counts as no chain.
void read_stages(SpecReader& in, const Node& node, const KeyRow& row) {
  if (node.kind == Node::Kind::Map && node.keys.empty()) return;
  in.problem(node, key_of(row), fmt::format("must be a map ({})", row.accepted));
}

// stages.cc reads the keys that only a stage has.
void read_of_stage(SpecReader&, const Node&, const KeyRow&) {}

void read_later(SpecReader& in, const Node& node, const KeyRow& row) {
  const Tree fallback = read_tree(row.fallback, false);
  // `none` and null both mean "nothing".
  const bool empty_word = node.kind == Node::Kind::Null && row.fallback == "none";
  if (!empty_word && !same_value(node, fallback.root))
    in.problem(node, key_of(row),
               fmt::format("is known but not in this release; leave it out (its default is {})",
                           row.fallback));
}

// --- schemas -------------------------------------------------------------------------------------
Schema or_words(Schema section, Schema words) {
  return {{"anyOf", {std::move(section), {{"enum", std::move(words)}}}}};
}
Schema section_schema(const KeyRow& row) { return schema_of_section(row.key); }
Schema setup_schema(const KeyRow& row) {
  Schema schema = kTexts.schema(row);
  schema["anyOf"].push_back(schema_of_section(row.key));
  return schema;
}
Schema resume_schema(const KeyRow& row) {
  return or_words(schema_of_section(row.key), {"auto", "none", nullptr});
}
Schema profile_schema(const KeyRow& row) {
  Schema section = schema_of_section(row.key);
  section["minProperties"] = 1;
  return or_words(std::move(section), {true, false, "true", "false", "yes", "no", nullptr});
}
Schema progress_schema(const KeyRow& row) {
  // A stage may have inherited the step.
  return or_words(schema_of_section(row.key), {"auto", "none", nullptr});
}
Schema success_schema(const KeyRow& row) {
  Schema section = schema_of_section(row.key);
  section["minProperties"] = section["maxProperties"] = 1;
  return or_words(std::move(section), {"auto", "exit0", "last-step"});
}
Schema stages_schema(const KeyRow&) {
  return {{"type", "object"},
          {"additionalProperties", {{"anyOf", {{{"$ref", kStageSchema}}, {{"type", "null"}}}}}}};
}
Schema stage_after_schema(const KeyRow& row) { return kTexts.schema(row); }
Schema stage_creates_schema(const KeyRow& row) { return kFullText.schema(row); }
Schema as_texts(Schema value) {
  if (value.is_structured())
    for (auto& part : value) part = as_texts(part);
  else if (!value.is_string() && !value.is_null())
    value = value.dump();
  return value;
}
Schema later_schema(const KeyRow& row) {
  // Quotes around the values make no difference.
  Schema accepted = Schema::array({default_of(row), as_texts(default_of(row))});
  if (row.fallback == "none") accepted.push_back(nullptr);
  return {{"enum", accepted}};
}

}  // namespace

using enum NullMeans;
const KeyType kSection = {.read = read_section,
                          .schema = section_schema,
                          .null = Absent,
                          .map_adds = true,
                          .has_field = false};
const KeyType kStart = {.read = read_start,
                        .schema = section_schema,
                        .null = Absent,
                        .map_adds = true,
                        .has_field = false};
const KeyType kSetup = {
    .read = read_setup, .schema = setup_schema, .null = Absent, .map_adds = true};
// null means "none" for these two.
const KeyType kResume = {.read = read_resume, .schema = resume_schema, .map_adds = true};
const KeyType kProgress = {.read = read_progress, .schema = progress_schema, .map_adds = true};
const KeyType kProfile = {
    .read = read_profile, .schema = profile_schema, .null = Absent, .map_adds = true};
const KeyType kSuccess = {.read = read_success, .schema = success_schema, .map_adds = true};
const KeyType kStages = {
    .read = read_stages, .schema = stages_schema, .null = Absent, .has_field = false};
const KeyType kStageAfter = {
    .read = read_of_stage, .schema = stage_after_schema, .has_field = false, .words_only = true};
const KeyType kStageCreates = {
    .read = read_of_stage, .schema = stage_creates_schema, .null = Absent, .has_field = false};
const KeyType kLater = {.read = read_later, .schema = later_schema, .has_field = false};

}  // namespace muster::spec
