// Wraps sentences for a terminal at words, with a hanging indent. Stateless functions; any thread;
// no errors.
//
// Only a terminal gets wrapped lines. In a pipe or a file a line stays whole, so that grep finds
// it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster::render {

// Returns the columns of the terminal of `fd`; 0 if there is none: cut and wrap nothing.
std::size_t row_width(int fd);

// Returns `line`, which has no line end, as rows of at most `width` columns, with a line end
// between two rows. The text of the line begins at column `indent`, and so does every row after the
// first; what is before the text stays in the first row. If that leaves only few columns for the
// text, the rows begin further left. A word that is wider than a row, for example a path, is not
// cut. With `width` 0 the line is returned unchanged.
std::string wrap(std::string_view line, std::size_t indent, std::size_t width);

}  // namespace muster::render
