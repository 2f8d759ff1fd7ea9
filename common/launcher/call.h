// The command lines of torchrun, python -m torch.distributed.run|launch and msrun: their own
// options, and the training program behind them. Pure.
//
// As their parsers (argparse) take them: a value behind '=' or as the next word, abbreviations that
// name one option, both '-' and '_' within a name, and everything from the first word that is no
// option on belongs to the training program.
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
  // by its name with '_'; a flag's value is empty
  std::map<std::string, std::string, std::less<>> options;
  // the training program and its arguments
  std::vector<std::string> program;

  [[nodiscard]] bool has(std::string_view option) const { return options.contains(option); }
  [[nodiscard]] std::string_view value(std::string_view option) const;  // empty: not given
};

// Errors (InvalidArgument) name the launcher and the option; `instead` stands behind that of an
// option that is not served, and says what would help. A call for help has no program.
Result<Call> parse_call(Launcher launcher, std::span<const std::string> words,
                        std::string_view instead = {});

// A python's own command line: the words behind its name. With a launcher: `-m
// torch.distributed.run` stands in it, and `rest` begins behind that.
struct PythonCall {
  bool launches = false;
  Launcher launcher = Launcher::Torchrun;
  std::size_t rest = 0;
};
PythonCall parse_python(std::span<const std::string> words);

}  // namespace muster::launcher
