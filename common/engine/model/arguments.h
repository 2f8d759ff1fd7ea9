// Options of a command line, in both spellings: `--name VALUE` and `--name=VALUE`. Pure.
//
// Names are matched whole. The engines served here take no abbreviations (Megatron-LM) or are not
// called with them. The words that the spec gives only for resuming (resume.args) are read and
// never changed: their purpose is to override.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/engine/model/rows.h"

namespace muster::engine {

// The command line of a spec, without the words that are added for resuming.
CommandLine spec_words(const v1::JobSpec& spec);
// The words for common/text/options.h: views of the command line's own texts.
std::vector<std::string_view> texts_of(const CommandLine& command);

struct Option {
  std::size_t word = 0;  // index of the word with the name
  std::string_view value;
  bool has_value = false;  // the value is a word of its own, or follows '='
};
// The last option of this name: argparse uses the last one.
std::optional<Option> find_option(const CommandLine& command, std::string_view name);
bool has_option(const CommandLine& command, std::string_view name);
bool has_option(std::span<const std::string> args, std::string_view name);

// Gives every `name` that has a value the new value. False: no `name` has a value.
bool set_option(CommandLine& command, std::string_view name, std::string_view value,
                const char* source);
// As set_option; if no `name` is present, appends the option at the end.
void put_option(CommandLine& command, std::string_view name, std::string_view value,
                const char* source);
void drop_flag(CommandLine& command, std::string_view name);
void drop_option(CommandLine& command, std::string_view name);  // with its value

// The value as a whole number. Nothing: it is no number, or a template that only a placement fills
// in.
std::optional<std::uint64_t> whole_value(const Option& option);

}  // namespace muster::engine
