// Makes a job from a command line instead of a file: `muster run [options] -- torchrun
// --nproc_per_node 8 train.py`. Stateless functions. One thread.
//
// What the launcher would have started here becomes a spec, with the current directory as its code.
// One line on stderr names the launcher's options that muster decides itself, or that have no
// effect.
#pragma once

#include <CLI/CLI.hpp>

#include "client/commands/call/context.h"
#include "client/commands/job/spec_file.h"
#include "common/base/error.h"

namespace muster::client {

// Declares that the verb accepts a command behind "--" in place of its file.
void take_command(CLI::App& command, Context& context);

// Returns what the file asks for, or the command behind "--". --set and --env are applied to both.
// Errors (InvalidArgument): no launcher; a launcher that starts a missing file, or asks for
// something that muster does not do.
Result<spec::Parsed> load_job(const Context& context, const SpecOptions& options);

// Returns the interpreter that a launcher would have used. It is PYTHON_EXEC, the interpreter in
// the directory of a launcher that was called by its path, or that of an active virtual or conda
// environment. An empty text means none of these; then ranks use their node's own.
std::string active_python(const std::string& launcher);

}  // namespace muster::client
