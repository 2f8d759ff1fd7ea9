// Checks of the values of a daemon's options, for CLI::Option::check. A refused value ends
// CLI::App::parse with a sentence; ConfigFile::explain adds its place. Pure functions, but for
// regular_file(), which looks at a file.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace muster::config {

// The value is one of these words.
[[nodiscard]] CLI::Validator one_of(std::vector<std::string> words);
// A path. Nobody expands '~' in a file, in a variable or behind '=': the shell does it only at the
// beginning of a word.
[[nodiscard]] CLI::Validator path();
// A number of bytes, perhaps with a unit. CLI11 itself takes -1 for 2^64 - 1. Give it to
// Option::transform, so that it runs before the transform that reads units.
[[nodiscard]] CLI::Validator size();
// A file that can be read to its end at once: a pipe would be waited for.
[[nodiscard]] CLI::Validator regular_file();

}  // namespace muster::config
