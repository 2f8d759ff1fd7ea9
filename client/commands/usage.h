// How the command line explains itself: help pages, the variable of every flag, and what is said to
// words that are no command. Values.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

namespace muster::client {

// For the whole tree of commands: to be set before they are added.
std::shared_ptr<CLI::FormatterBase> help_formatter();

// Gives every flag that has none yet its variable: MUSTER_<FLAG> for the flags of `app`,
// MUSTER_<VERB>_<FLAG> below (logs --tail: MUSTER_LOGS_TAIL).
void name_variables(CLI::App& app);

// The first word that stands where a verb is wanted and is none, as a sentence; empty: there is
// none. A page of help is no answer to it.
std::string unknown_verb(const CLI::App& app, int argc, const char* const* argv);

// What the parser found wrong, as a sentence that names the verb and where to look.
std::string usage_text(const CLI::App& app, const CLI::ParseError& error, int argc,
                       const char* const* argv);

}  // namespace muster::client
