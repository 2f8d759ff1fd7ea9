// Runs one program of the host (`ssh`) with an argument list, a standard input, bounds on its
// output, and a deadline. Stateless; blocking; any thread but a loop. Linux only: pidfds.
//
// The program runs in a session of its own, so it has no terminal to ask at. At the deadline its
// process group is killed. What the program leaves behind may keep its output open; nobody waits
// for that.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "deploy/ssh/deadline.h"
#include "deploy/ssh/session.h"

namespace muster::ssh {

struct ChildRequest {
  std::string program;
  std::vector<std::string> args;
  std::size_t output_most = kOutputBytesMost;  // each of standard output and error
  Deadline deadline{};
  std::vector<std::string> env = {};  // NAME=value: in place of, and in addition to, our own
};

struct ChildEnd {
  Output output;      // `status` and `signal` are the program's own
  bool late = false;  // it was killed at the deadline
};

// Errors: NotFound when there is no such program; Io; or an error of `input`.
Result<ChildEnd> run_child(const ChildRequest& request, Source input);

// Appends to an output with its bound, and marks where it was cut.
void append_bounded(std::string& output, bool& cut, std::string_view bytes,
                    std::size_t most = kOutputBytesMost);

// The name of a signal without "SIG", or an empty text; and the reverse, 0 for an unknown name.
std::string signal_name(int number);
int signal_number(std::string_view name);

}  // namespace muster::ssh
