// Options of a command line, in both spellings: `--name VALUE` and `--name=VALUE`. Names are whole:
// the engines that are served here either take no abbreviations (Megatron-LM) or are not written
// with them. What the spec says for resuming alone (resume.args) is read and never changed: it is
// there to overrule. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "common/engine/rows.h"

namespace muster::engine {

// The command line of a spec without what is added for resuming.
CommandLine spec_words(const v1::JobSpec& spec);

struct Option {
  std::size_t word = 0;  // where the name stands
  std::string_view value;
  bool has_value = false;  // as a word of its own or behind '='
};
// The last one: what counts for argparse.
std::optional<Option> find_option(const CommandLine& command, std::string_view name);
bool has_option(const CommandLine& command, std::string_view name);

// Gives every `name` that has a value another one. False: none has.
bool set_option(CommandLine& command, std::string_view name, std::string_view value,
                const char* source);
// As set_option; where there is none anywhere, it is put to the end.
void put_option(CommandLine& command, std::string_view name, std::string_view value,
                const char* source);
void drop_flag(CommandLine& command, std::string_view name);
void drop_option(CommandLine& command, std::string_view name);  // with its value

// The value as a whole number. Nothing: no number, or one that only a placement fills in.
std::optional<std::uint64_t> whole_value(const Option& option);

}  // namespace muster::engine
