// Checks that the rules of several sections share. Pure.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "common/spec/rules/rules.h"

namespace muster::spec {

using TextList = google::protobuf::RepeatedPtrField<std::string>;
using TextMap = google::protobuf::Map<std::string, std::string>;

// Returns what the key table says that the key accepts.
std::string_view accepted_of(std::string_view key);

// True if the text has no control characters but line ends and tabs.
bool is_printable(std::string_view text);

void check_words(Draft& draft, const std::string& key, const TextList& words);
void check_environment(Draft& draft, const std::string& key, const TextMap& environment);
void check_labels(Draft& draft, const std::string& key, const TextMap& labels);
void check_duration(Draft& draft, const std::string& key, const google::protobuf::Duration& value,
                    std::chrono::seconds least, std::chrono::seconds most);
// Reports a text that is no regular expression with at least `groups` groups.
void check_pattern(Draft& draft, const std::string& key, const std::string& text, int groups);

// launch.patch and launch.vars, and the keys of resume that change them.
void check_patches(Draft& draft);

// A key names data in a store: it becomes the input of that name, as if the spec had it below
// inputs (rules/arguments.cc). Returns what is wrong, or an empty text.
std::string add_input(Draft& draft, const std::string& name, const std::string& from);

// Returns what is wrong with "stage:S/below", "job:J/below" or an absolute path, or an empty text.
std::string source_problem(const v1::JobSpec& spec, std::string_view from, std::string_view forms);

}  // namespace muster::spec
