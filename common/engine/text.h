// Small text rules that engine and spec share: the nearest known word, shell-like splitting. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace muster::engine {

// Edit distance with transpositions (optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b);

// The word that was probably meant; empty when none is near.
std::string_view nearest(std::string_view word, std::span<const std::string_view> known);

// Splits as a shell splits words: blanks, 'quotes', "quotes", backslash; a backslash before a line
// end joins the lines. Nothing is expanded. Errors: an open quote, a backslash at the end, an
// unquoted operator of a shell (| & ; < >): nothing here is given to a shell.
Result<std::vector<std::string>> split_words(std::string_view text);

}  // namespace muster::engine
