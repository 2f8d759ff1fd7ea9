// Finds files of the checkout that the tests were built from. Pure.
#pragma once
#include <string>
#include <string_view>

namespace muster::test {

// Returns the path of a file of that checkout, or of the checkout itself if no name is given. Only
// one object file contains this path: in every test's command line, the path would compile all of
// them again in the next clone.
std::string checkout(std::string_view name = {});

}  // namespace muster::test
