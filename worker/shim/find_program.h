// The program that a name would have started without the shim: the next one on PATH that is not
// this binary. Whatever links and copies of PATH's directories there are, it is told by device and
// inode: the search never finds itself.
#pragma once

#include <string>
#include <string_view>

namespace muster::shim {

// An absolute path, or one relative to the working directory where PATH is; empty: there is none.
std::string find_program(std::string_view name, std::string_view path);

// The Python that a torchrun of this PATH would run: $PYTHON_EXEC, else python3, else python, else
// the system's.
std::string find_python(std::string_view python_exec, std::string_view path);

}  // namespace muster::shim
