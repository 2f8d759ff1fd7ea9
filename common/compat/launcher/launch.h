// One launch: a launcher's whole command line, with its interpreter and its directory. Pure.
#pragma once

#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/compat/launcher/call.h"
#include "common/compat/launcher/wanted.h"

namespace muster::launcher {

// How a launcher is called, with which interpreter and in which directory.
struct Launch {
  Call call;
  Wanted wanted;
  std::vector<std::string> words;  // the whole command line
  std::string directory;           // absolute
  // absolute, or a name for the nodes' PATH; empty: the node's own interpreter
  std::string interpreter;
};

// `words` begin with a launcher, by its name or path. Errors (InvalidArgument): those of
// parse_call() and wanted_of(), or the words are no launcher's.
Result<Launch> read_launch(std::vector<std::string> words, std::string directory);
// Whether the words call a launcher: "torchrun", "/opt/bin/msrun", "python3 -m
// torch.distributed.run".
bool is_launch(const std::vector<std::string>& words);

// A text for people about the launcher's options: "decided by the placement: --node_rank 0; without
// effect: --log_dir logs". Empty: nothing to report.
std::string options_given(const Wanted& wanted);

}  // namespace muster::launcher
