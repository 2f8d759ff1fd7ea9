// Small text rules that engine and spec share: the nearest known word, and splitting as a shell
// does. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace muster {

// Edit distance with transpositions (optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b);

// The word that was probably meant; empty when no word is near.
std::string_view nearest(std::string_view word, std::span<const std::string_view> known);

// Splits words as a shell does: blanks, 'quotes', "quotes", backslash. A backslash before a line
// end joins the lines. Nothing is expanded.
//
// Errors: an open quote, a backslash at the end, or an unquoted operator of a shell (| & ; < >),
// because no shell reads this text.
Result<std::vector<std::string>> split_words(std::string_view text);

}  // namespace muster
