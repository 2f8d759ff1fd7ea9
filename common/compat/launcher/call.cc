#include "common/compat/launcher/call.h"

#include <algorithm>
#include <array>
#include <optional>

namespace muster::launcher {
namespace {

struct Option {
  std::string_view name;
  bool takes_value = true;
  char letter = 0;
};

constexpr auto kTorch = std::to_array<Option>({
    {"nnodes"},
    {"nproc_per_node"},
    {"node_rank"},
    {"master_addr"},
    {"master_port"},
    {"local_addr"},
    {"rdzv_backend"},
    {"rdzv_endpoint"},
    {"rdzv_id"},
    {"rdzv_conf"},
    {"standalone", false},
    {"max_restarts"},
    {"monitor_interval"},
    {"start_method"},
    {"event_log_handler"},
    {"role"},
    {"module", false, 'm'},
    {"no_python", false},
    {"run_path", false},
    {"log_dir"},
    {"logs_specs"},
    {"redirects", true, 'r'},
    {"tee", true, 't'},
    {"local_ranks_filter"},
    {"duplicate_stdout_filters"},
    {"duplicate_stderr_filters"},
    {"numa_binding"},
    {"signals_to_handle"},
    {"virtual_local_rank", false},
    {"use_env", false},  // only of torch.distributed.launch
    {"help", false, 'h'},
});

constexpr auto kMsrun = std::to_array<Option>({
    {"worker_num"},
    {"local_worker_num"},
    {"master_addr"},
    {"master_port"},
    {"node_rank"},
    {"hostname"},
    {"log_dir"},
    {"join"},
    {"cluster_time_out"},
    {"bind_core"},
    {"sim_level"},
    {"sim_rank_id"},
    {"rank_table_file"},
    {"worker_log_name"},
    {"tail_worker_log"},
    {"help", false, 'h'},
});

std::span<const Option> options_of(Launcher launcher) {
  if (launcher == Launcher::Msrun) return kMsrun;
  return kTorch;
}

std::unexpected<Error> wrong(Launcher launcher, const std::string& what) {
  return fail(ErrorCode::InvalidArgument, std::string(name_of(launcher)) + ": " + what);
}

// The option with exactly this name, or the only option that begins with it.
std::optional<Option> find_long(Launcher launcher, std::string name) {
  std::ranges::replace(name, '-', '_');
  std::optional<Option> found;
  for (const Option& option : options_of(launcher)) {
    if (option.name == "use_env" && launcher != Launcher::TorchLaunch) continue;
    if (option.name == name) return option;
    if (!option.name.starts_with(name) || name.empty()) continue;
    if (found) return std::nullopt;
    found = option;
  }
  return found;
}

std::optional<Option> find_letter(Launcher launcher, char letter) {
  const auto options = options_of(launcher);
  const auto found = std::ranges::find_if(options, [letter](const Option& option) {
    return option.letter != 0 && option.letter == letter;
  });
  return found == options.end() ? std::nullopt : std::optional(*found);
}

}  // namespace

std::string_view name_of(Launcher launcher) {
  switch (launcher) {
    case Launcher::Torchrun: return "torchrun";
    case Launcher::TorchLaunch: return "torch.distributed.launch";
    case Launcher::Msrun: return "msrun";
  }
  return "?";
}

std::string_view Call::value(std::string_view option) const {
  const auto found = options.find(option);
  return found == options.end() ? std::string_view() : found->second;
}

Result<Call> parse_call(Launcher launcher, std::span<const std::string> words,
                        std::string_view instead) {
  Call call{.launcher = launcher};
  std::size_t at = 0;
  for (; at < words.size() && words[at].starts_with('-') && words[at] != "-"; ++at) {
    const std::string& word = words[at];
    if (word == "--") {
      ++at;
      break;
    }
    const bool is_long = word.starts_with("--");
    const std::size_t equals = is_long ? word.find('=') : std::string::npos;
    const std::string shown = word.substr(0, is_long ? equals : 2);
    const auto option =
        is_long ? find_long(launcher, shown.substr(2)) : find_letter(launcher, word[1]);
    if (!option)
      return wrong(launcher, "unknown option '" + shown +
                                 "'; it is none that muster knows of this launcher" +
                                 std::string(instead));
    std::string value;
    const bool attached = is_long ? equals != std::string::npos : word.size() > 2;
    if (attached && !option->takes_value)
      return wrong(launcher, "option '" + shown + "' takes no value");
    if (attached) {
      value = is_long ? word.substr(equals + 1) : word.substr(2);
    } else if (option->takes_value) {
      if (++at >= words.size())
        return wrong(launcher, "option '" + shown + "' has no value behind it");
      value = words[at];
    }
    call.options.insert_or_assign(std::string(option->name), std::move(value));
    if (option->name == "help") return call;
  }
  for (const char* simulated : {"sim_level", "sim_rank_id"}) {
    if (call.has(simulated))
      return wrong(launcher, "option '--" + std::string(simulated) +
                                 "' asks for a simulation, which is no training" +
                                 std::string(instead));
  }
  call.program.assign(words.begin() + static_cast<std::ptrdiff_t>(std::min(at, words.size())),
                      words.end());
  if (call.program.empty() || call.program.front().empty())
    return wrong(launcher, "no training program is named behind its options");
  return call;
}

PythonCall parse_python(std::span<const std::string> words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.size() < 2 || word.front() != '-' || word.starts_with("--")) return {};
    // The letters up to the first one that takes a value: the rest of this word, or the next word.
    const std::size_t taking = word.find_first_of("cmWXQ", 1);
    if (taking == std::string::npos) continue;
    std::string value = word.substr(taking + 1);
    if (value.empty()) {
      if (++i >= words.size()) return {};
      value = words[i];
    }
    if (word[taking] == 'c') return {};
    if (word[taking] != 'm') continue;
    if (value == "torch.distributed.run")
      return {.launches = true, .launcher = Launcher::Torchrun, .rest = i + 1};
    if (value == "torch.distributed.launch")
      return {.launches = true, .launcher = Launcher::TorchLaunch, .rest = i + 1};
    return {};
  }
  return {};
}

}  // namespace muster::launcher
