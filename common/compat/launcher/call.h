// Parses the command lines of torchrun, python -m torch.distributed.run|launch and msrun into their
// own options and the training program. Pure.
//
// It follows their parsers (argparse):
// - a value follows '=' or is the next word;
// - an abbreviation is accepted if it matches exactly one option;
// - a name may have both '-' and '_';
// - the first word that is no option begins the training program.
//
// Sources: pytorch/pytorch torch/distributed/run.py and launch.py, 1.10 to 2.7;
// mindspore-ai/mindspore mindspore/python/mindspore/parallel/cluster/run.py.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace muster::launcher {

// TorchLaunch: torch.distributed.launch, with its --local_rank
enum class Launcher : std::uint8_t { Torchrun, TorchLaunch, Msrun };
std::string_view name_of(Launcher launcher);

struct Call {
  Launcher launcher = Launcher::Torchrun;
  // by name with '_'; a flag's value is empty
  std::map<std::string, std::string, std::less<>> options;
  // the training program and its arguments
  std::vector<std::string> program;

  [[nodiscard]] bool has(std::string_view option) const { return options.contains(option); }
  [[nodiscard]] std::string_view value(std::string_view option) const;  // empty: not given
};

// Errors (InvalidArgument) name the launcher and the option. `instead` is appended to the error of
// an option that is not served, and says what would help. A call for help has no program.
Result<Call> parse_call(Launcher launcher, std::span<const std::string> words,
                        std::string_view instead = {});

// A python's own command line: the words after its name. If it calls a launcher, it contains `-m
// torch.distributed.run`, and `rest` is the index of the word after that.
struct PythonCall {
  bool launches = false;
  Launcher launcher = Launcher::Torchrun;
  std::size_t rest = 0;
};
PythonCall parse_python(std::span<const std::string> words);

}  // namespace muster::launcher
