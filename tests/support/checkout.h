#pragma once
#include <string>
#include <string_view>

namespace muster::test {

// The path of a file of the checkout that the tests were built from; of the checkout itself where
// no name is given. One object file knows it: a path in every test's command line would compile all
// of them again in the next clone.
std::string checkout(std::string_view name = {});

}  // namespace muster::test
