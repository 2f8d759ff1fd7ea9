// How the values of a key are written: one KeyType for each form. A row of the key table names its
// type. Plain values; a type is used on the caller's thread.
//
// read() sets the row's fields (KeyRow::fields) or reports problems with their positions. What a
// value means together with others is checked by complete() (parse.h). schema() is JSON Schema
// (draft 2020-12) of the values that read() takes, as far as one value alone decides.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "common/spec/keys/key_table.h"

namespace muster::spec {

class SpecReader;  // read_spec.h
struct Node;       // yaml_tree.h
using Schema = nlohmann::ordered_json;

// What YAML's null means.
enum class NullMeans : std::uint8_t {
  Nothing,  // it is a problem: "has no value"
  Absent,   // as if the key were not there
  Zero,     // the number 0
};

struct KeyType {
  void (*read)(SpecReader& in, const Node& node, const KeyRow& row);
  Schema (*schema)(const KeyRow& row);
  NullMeans null = NullMeans::Nothing;
  // With --set, a map adds to what a spec has. Everything else replaces it.
  bool map_adds = false;
  bool has_field = true;    // a section has none
  bool words_only = false;  // KeyRow::fallback is words for people, and no value
};

// For the types.
inline std::string key_of(const KeyRow& row) { return std::string(row.key); }
// A value without quotes may look like a number or a boolean, and is still a text.
inline Schema scalar_schema() { return {{"type", {"string", "number", "boolean"}}}; }

// A number that a reader of YAML may also have kept as a text.
inline Schema number_between(std::uint64_t least, std::uint64_t most) {
  return {{"anyOf",
           {{{"type", "integer"}, {"minimum", least}, {"maximum", most}},
            {{"type", "string"}, {"pattern", "^[0-9]+$"}}}}};
}

// --- one value: types_scalar.cc ------------------------------------------------------------------
extern const KeyType kText, kTextOrNull;
extern const KeyType kFullText, kFullTextOrNull;  // "" is refused
extern const KeyType kOutPath;                    // below ${out} unless absolute
extern const KeyType kCodeFrom, kCodeAt;          // the directory of the code
extern const KeyType kStartFrom;
extern const KeyType kChoice, kChoiceOrNull;  // one of `accepted`; a word of `later` is refused
extern const KeyType kSwitch;                 // true | false, also as yes | no, or the default word
extern const KeyType kNumber, kNumberOrNull;  // within KeyRow::least and most
extern const KeyType kNumberOrZero;           // null is 0
extern const KeyType kPort, kStep;            // a number, or the default word
extern const KeyType kDuration;
extern const KeyType kSize;      // null is 0
extern const KeyType kLockable;  // a size or "unlimited"
extern const KeyType kCpus;      // thousandths of a processor
// --- several values: types_list.cc ---------------------------------------------------------------
extern const KeyType kWords;       // of a command line: text that is split, or a list
extern const KeyType kWordsOrMap;  // the same, or a map of options
extern const KeyType kTexts;       // one text or a list
extern const KeyType kJobs;        // the same; "stage:S" is refused
extern const KeyType kNodeNames;   // a list
extern const KeyType kRanks;       // a list of numbers
extern const KeyType kDevices;
extern const KeyType kMounts;
// --- maps: types_map.cc --------------------------------------------------------------------------
extern const KeyType kTextMap, kInputs, kConfigPatch;
// --- files whose bytes travel with the spec: types_file.cc -------------------------------------
extern const KeyType kFile;         // at most KeyRow::most bytes
extern const KeyType kCodePatches;  // a list of them
// --- a section, or a word or value for all of it: types_section.cc -------------------------------
extern const KeyType kSection, kStart, kSetup, kResume, kProfile, kProgress, kSuccess;
extern const KeyType kStages;  // stages.cc reads chains, and these two
extern const KeyType kStageAfter, kStageCreates;
extern const KeyType kLater;  // not in this release: only the default is taken

}  // namespace muster::spec
