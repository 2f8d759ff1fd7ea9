// Texts that explain the command line: help pages, the variable of every flag, and answers to words
// that are not commands. Stateless functions. One thread.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

namespace muster::client {

// The formatter for the whole tree of commands. Set it before the commands are added.
std::shared_ptr<CLI::FormatterBase> help_formatter();

// Gives every flag without a variable its own: MUSTER_<FLAG> for the flags of `app`,
// MUSTER_<VERB>_<FLAG> below (logs --tail: MUSTER_LOGS_TAIL).
void name_variables(CLI::App& app);

// Returns a sentence about the first word in the place of a verb that is not a verb, or an empty
// text. A help page would not answer such a word.
std::string unknown_verb(const CLI::App& app, int argc, const char* const* argv);

// Returns the parser's error as a sentence, with the verb and where to find help.
std::string usage_text(const CLI::App& app, const CLI::ParseError& error, int argc,
                       const char* const* argv);

}  // namespace muster::client
