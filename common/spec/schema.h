// The job spec as JSON Schema (draft 2020-12), made from the key table: for editors and for
// programs that write specs. Pure.
//
// A spec that the schema accepts may still be refused: `muster validate` also checks what values
// mean together. A spec that muster accepts is never refused by the schema.
#pragma once

#include <string>
#include <string_view>

#include "common/spec/keys/key_type.h"

namespace muster::spec {

// The place of a stage's schema in the whole schema.
inline constexpr const char* kStageSchema = "#/$defs/stage";

// The row's default as a value.
Schema default_of(const KeyRow& row);

// The rows below `section`, as one object.
Schema schema_of_section(std::string_view section);

// The whole schema, indented, with a line end.
std::string json_schema();

}  // namespace muster::spec
