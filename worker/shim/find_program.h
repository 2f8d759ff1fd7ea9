// Finds the program that a name starts without the shim: the next one on PATH that is not this
// binary. Plain functions; run_shim() calls them on the shim's one thread.
//
// PATH may contain links to or copies of directories. The search compares device and inode, so it
// never finds the shim itself.
#pragma once

#include <string>
#include <string_view>

namespace muster::shim {

// Returns an absolute path, or a path relative to the working directory if PATH is relative. Empty:
// there is none.
std::string find_program(std::string_view name, std::string_view path);

// Returns the Python that torchrun uses with this PATH: $PYTHON_EXEC, else python3, else python,
// else the system's.
std::string find_python(std::string_view python_exec, std::string_view path);

}  // namespace muster::shim
