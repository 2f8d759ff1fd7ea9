// A job without a file: `muster run [options] -- torchrun --nproc_per_node 8 train.py`. What the
// launcher would have started here becomes a spec, with the current directory as its code; what of
// its options is muster's to decide, or has no effect, one line on stderr tells.
#pragma once

#include <CLI/CLI.hpp>

#include "client/commands/context.h"
#include "client/commands/spec_file.h"
#include "common/base/error.h"

namespace muster::client {

// The verb takes a command behind "--" in place of its file.
void take_command(CLI::App& command, Context& context);

// What the file asks for, or of the command behind "--"; over both go --set and --env. Errors
// (InvalidArgument): no launcher, one that starts nothing that is there, or asks for what muster
// does not do.
Result<spec::Parsed> load_job(const Context& context, const SpecOptions& options);

// The interpreter that a launcher would have used: PYTHON_EXEC, the one beside a launcher that was
// called by its path, that of an active virtual or conda environment. Empty: none of these; ranks
// use their node's own.
std::string active_python(const std::string& launcher);

}  // namespace muster::client
