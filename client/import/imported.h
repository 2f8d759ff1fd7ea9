// Turns what a script did while `muster import` watched it into the job spec that does the same.
// Pure, except for `is_file`.
//
//   a launcher's own command line, or a    its ranks are muster's: script and arguments
//   script that only sets values and
//   launches
//   a script that does more than launch    launch.per: node, the script as it is; muster's shim
//                                          answers the launcher
//   ranks in the background (RANK_ID,      its ranks are muster's, too (background.h)
//   RANK)
#pragma once

#include <string>
#include <vector>

#include "client/import/background.h"
#include "client/import/captured.h"
#include "client/import/shell_script.h"
#include "common/base/error.h"
#include "common/compat/launcher/draft.h"

namespace muster::import {

struct Observed {
  std::vector<std::string> command;  // not empty
  std::string directory;             // where the command was started
  ShellScript script;
  Variables before;             // the command's environment
  std::vector<Captured> calls;  // in the order of the calls
  std::string how_ended;        // "status 3", "signal 9"; empty: without error
  std::string programs;         // the stand-ins' directory
  std::string python;           // of the caller's environment; empty: the node's own
};

struct Imported {
  launcher::Draft draft;
  std::vector<std::string> notes;  // what a person should check, a line each
};

// Errors (InvalidArgument): nothing was launched, more than one thing was launched, or muster has
// no spec for it.
Result<Imported> import_observed(const Observed& observed, const IsFile& is_file);

}  // namespace muster::import
