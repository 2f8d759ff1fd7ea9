// complete() checks how values work together, and fills in every default. It is the same for a YAML
// file (parse.cc adds the positions of the problems) and for a spec from the API, where nothing was
// checked before.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "common/base/controls.h"
#include "common/engine/ascend/modelarts.h"
#include "common/engine/model/engine.h"
#include "common/engine/model/grammar.h"
#include "common/engine/model/layout.h"
#include "common/engine/model/training_end.h"
#include "common/spec/complete_code.h"
#include "common/spec/complete_container.h"
#include "common/spec/complete_limits.h"
#include "common/spec/complete_patch.h"
#include "common/spec/complete_schedule.h"
#include "common/spec/complete_stage.h"
#include "common/spec/complete_start.h"
#include "common/spec/complete_table.h"
#include "common/spec/key_table.h"
#include "common/spec/names.h"
#include "common/spec/parse.h"
#include "common/spec/strings.h"
#include "common/spec/values.h"
#include "common/spec/yaml_tree.h"
#include "common/text/words.h"

namespace muster::spec {
namespace {

constexpr std::size_t kEnvCountMax = 4096, kLabelCountMax = 64;
// The limit is one argument of the shell that reads it, with space for the text around it.
constexpr std::size_t kSetupBytesMax = 64 * 1024;
constexpr std::size_t kInterfaceNameMax = 15;      // IFNAMSIZ without its terminator
constexpr std::uint64_t kDevicesMost = 1U << 20U;  // of a job

bool lower_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool alnum(char c) { return lower_or_digit(c) || (c >= 'A' && c <= 'Z'); }
bool any_of(std::string_view text, std::string_view chars) {
  return text.find_first_of(chars) != std::string_view::npos;
}

bool node_name(std::string_view text) {
  return !text.empty() && text.size() <= 63 && alnum(text.front()) &&
         std::ranges::all_of(text,
                             [](char c) { return alnum(c) || c == '.' || c == '_' || c == '-'; });
}
bool label_name(std::string_view text) {
  return !text.empty() && text.size() <= 63 && std::ranges::all_of(text, [](char c) {
    return alnum(c) || c == '.' || c == '_' || c == '-' || c == '/';
  });
}
// It accepts less than the kernel does: NCCL and HCCL read other characters as lists and signs.
bool interface_name(std::string_view text) {
  return text.size() <= kInterfaceNameMax && node_name(text);
}
bool printable(std::string_view text) { return without_controls(text, "\n\t") == text; }

class Completer {
 public:
  Completer(v1::JobSpec& spec, const v1::ResolvedSpec* resolved)
      : spec_(spec), resolved_(resolved) {}

  std::vector<Problem> run() {
    if (spec_.ByteSizeLong() > kSpecBytesMax) {
      problem("",
              fmt::format(
                  "the spec has {} bytes, more than the {} that one may have; put data into files",
                  spec_.ByteSizeLong(), kSpecBytesMax));
      return std::move(problems_);
    }
    for (const std::string& key : strings_with_nul(spec_))
      problem(key_of_field(key), "has a byte 0 in it: no program can be given that");
    if (!problems_.empty()) return std::move(problems_);
    identity();
    code();
    check_code_patches(spec_, [this](std::string key, std::string message) {
      problem(std::move(key), std::move(message));
    });
    runtime();
    launch();
    resources();
    const SayProblem say = [this](std::string key, std::string message) {
      problem(std::move(key), std::move(message));
    };
    complete_stage(spec_, say);
    checkpoint_and_resume();
    complete_start(spec_, say);
    check_inputs(spec_, say);
    observe_and_success();
    recovery();
    complete_schedule(spec_, say);
    for (const std::string& key : lines_with_controls(spec_))
      problem(key_of_field(key), "has control characters in it");
    if (too_many_) return std::move(problems_);
    for (engine::KeyedProblem& found : engine::check_launch(spec_, resolved_))
      problem(std::move(found.key), std::move(found.message));
    return std::move(problems_);
  }

 private:
  // Keeps at most kProblemsMax problems: each is compared with all earlier ones, and a spec of the
  // API may have a problem in every word.
  void problem(std::string key, std::string message) {
    if (problems_.size() >= kProblemsMax) return;
    const bool known =
        std::ranges::any_of(problems_, [&](const Problem& earlier) { return earlier.key == key; });
    if (!known) problems_.push_back({.key = std::move(key), .message = readable(message)});
  }

  static std::string accepted(std::string_view key) { return std::string(find_key(key)->accepted); }

  void identity() {
    if (std::string wrong = job_name_problem(spec_.name()); !wrong.empty())
      problem("name", std::move(wrong));
    if (spec_.description().size() > 1024)
      problem("description", fmt::format("has {} bytes ({})", spec_.description().size(),
                                         accepted("description")));
    else if (!printable(spec_.description()))
      problem("description", "has control characters in it");
    if (spec_.compat() == "none") spec_.clear_compat();
    if (!spec_.compat().empty() && !engine::is_modelarts(spec_))
      problem("compat",
              fmt::format("'{}' is not accepted ({})", shown(spec_.compat()), accepted("compat")));
    labels("labels", spec_.labels());
    engine_ = engine::find_engine(spec_.engine());
    if (engine_ == nullptr) unknown_engine();
    v1::LaunchSpec& launch = *spec_.mutable_launch();
    if (engine_ != nullptr && !engine_->script.empty() && launch.run().empty() &&
        launch.script().empty())
      launch.set_script(std::string(engine_->script));
  }

  // If the intended engine is known, the later checks use it. Otherwise they would report problems
  // whose only cause is the wrong engine.
  void unknown_engine() {
    const KeyRow& row = *find_key("engine");
    if (spec_.engine().empty())
      return problem("engine", fmt::format("is missing ({})", row.accepted));
    if (fmt::format(" | {} | ", row.later).find(fmt::format(" | {} | ", spec_.engine())) !=
        std::string::npos)
      return problem("engine", fmt::format("'{}' is known but not in this release ({})",
                                           spec_.engine(), row.accepted));
    std::vector<std::string_view> names;
    for (const engine::Engine& engine : engine::engine_table()) names.push_back(engine.name);
    const std::string_view meaning = value_meant("engine", spec_.engine());
    const std::string_view meant = meaning.empty() ? nearest(spec_.engine(), names) : meaning;
    problem("engine", fmt::format("'{}' is not accepted{} ({})", shown(spec_.engine()),
                                  meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant),
                                  row.accepted));
    if (meant.empty()) return;
    engine_ = engine::find_engine(meant);
    spec_.set_engine(std::string(meant));
  }

  void labels(const std::string& key, const google::protobuf::Map<std::string, std::string>& map) {
    if (map.size() > kLabelCountMax)
      problem(key, fmt::format("has {} entries, at most {}", map.size(), kLabelCountMax));
    for (const auto& [name, value] : map) {
      const std::string one = fmt::format("{}.{}", key, shown(name));
      if (!label_name(name))
        problem(one, "is not a label's name (letters, digits, . _ - /, at most 63 characters)");
      else if (value.size() > 255 || !printable(value))
        problem(one, "a label's value has at most 255 bytes and no control characters");
    }
  }

  void code() {
    const std::string& at = spec_.code().at();
    if (!at.empty() && !at.starts_with('/'))
      problem("code.at", fmt::format("'{}' is not absolute (an absolute directory)", shown(at)));
    if (!at.empty()) return;
    if (!spec_.launch().script().empty() && !any_of(spec_.launch().script().substr(0, 1), "/$"))
      problem("code.at",
              fmt::format("is missing, and launch.script '{}' is below it (an absolute directory)",
                          shown(spec_.launch().script())));
    spec_.mutable_code()->set_at("/");
  }

  void environment(const std::string& key,
                   const google::protobuf::Map<std::string, std::string>& env) {
    if (env.size() > kEnvCountMax)
      problem(key, fmt::format("has {} variables, at most {}", env.size(), kEnvCountMax));
    for (const auto& [name, value] : env) {
      const std::string one = fmt::format("{}.{}", key, shown(name));
      if (!is_variable_name(name))
        problem(one, "is not a variable's name (letters, digits and _, not a digit first)");
      else if (name.size() + 1 + value.size() > engine::kStringBytesMax)
        problem(one, fmt::format("has {} bytes with its name, at most {}",
                                 name.size() + 1 + value.size(), engine::kStringBytesMax));
      else if (engine_ != nullptr && engine::is_identity(*engine_, name))
        problem(one, "is set by muster for every rank, each its own; leave it out");
      else if (engine_ != nullptr &&
               std::ranges::find(engine_->cloud, name) != engine_->cloud.end())
        problem(one, fmt::format("makes {} believe that it is inside ModelArts, where it would "
                                 "write elsewhere and upload by itself; leave it out",
                                 engine_->name));
      else if (engine::is_modelarts(spec_) && engine::is_modelarts_variable(name))
        problem(one,
                "is the platform's own with compat: modelarts, and muster sets what of it means "
                "something here; leave it out");
      else if ((name == "CUDA_VISIBLE_DEVICES" || name == "ASCEND_RT_VISIBLE_DEVICES") &&
               spec_.resources().type() != "cpu")
        problem(one, "is set by muster from the placement; choose with resources.devices");
    }
  }

  void words(const std::string& key, const google::protobuf::RepeatedPtrField<std::string>& list) {
    if (static_cast<std::size_t>(list.size()) > kWordsMax) {
      too_many_ = true;  // it is not worth expanding
      return problem(key, fmt::format("has {} words, at most {}", list.size(), kWordsMax));
    }
    for (int i = 0; i < list.size(); ++i)
      if (list[i].size() > engine::kStringBytesMax)
        problem(fmt::format("{}[{}]", key, i),
                fmt::format("has {} bytes, at most {}; put it into a file", list[i].size(),
                            engine::kStringBytesMax));
  }

  void runtime() {
    v1::RuntimeSpec& runtime = *spec_.mutable_runtime();
    if (runtime.python().empty()) runtime.set_python("auto");
    environment("runtime.env", runtime.env());
    setup(runtime);
    check_container(spec_, [this](std::string key, std::string message) {
      problem(std::move(key), std::move(message));
    });
    if (runtime.user().empty()) runtime.set_user("submitter");
    if (runtime.user() != "submitter")
      problem("runtime.user",
              fmt::format("'{}' is not accepted: another user is not in this release ({})",
                          shown(runtime.user()), accepted("runtime.user")));
    set_default_limits(*runtime.mutable_limits());
    check_limits(spec_, [this](std::string key, std::string message) {
      problem(std::move(key), std::move(message));
    });
  }

  void setup(v1::RuntimeSpec& runtime) {
    std::size_t bytes = 0;
    for (int i = 0; i < runtime.setup_size(); ++i) {
      const std::string& text = runtime.setup(i);
      bytes += text.size() + 1;
      if (text.find_first_not_of(" \t\n") == std::string::npos)
        problem(fmt::format("runtime.setup[{}]", i), "is empty: a command for a shell");
    }
    if (bytes > kSetupBytesMax)
      problem("runtime.setup",
              fmt::format("has {} bytes, at most {}; put it into a script and call that", bytes,
                          kSetupBytesMax));
    if (runtime.setup().empty()) {
      if (runtime.has_setup_timeout())
        problem("runtime.setup.run", fmt::format("is missing, and there is a time for it ({})",
                                                 accepted("runtime.setup.run")));
      return;
    }
    if (!runtime.has_setup_timeout())
      runtime.mutable_setup_timeout()->set_seconds(
          std::chrono::seconds(std::chrono::minutes(30)).count());
    bound("runtime.setup.timeout", runtime.setup_timeout(), std::chrono::seconds(1),
          std::chrono::hours(24));
  }

  void launch() {
    v1::LaunchSpec& launch = *spec_.mutable_launch();
    if (launch.per() == v1::LAUNCH_PER_UNSPECIFIED) launch.set_per(v1::LAUNCH_PER_RANK);
    if (launch.per() != v1::LAUNCH_PER_RANK && launch.per() != v1::LAUNCH_PER_ONCE &&
        launch.per() != v1::LAUNCH_PER_NODE)
      problem("launch.per", fmt::format("{} is not accepted ({})", static_cast<int>(launch.per()),
                                        accepted("launch.per")));
    engines_own(launch);
    words("launch.run", launch.run());
    words("launch.args", launch.args());
    if (launch.run().empty() && launch.script().empty())
      problem("launch.run",
              "nothing to run: give launch.script (and launch.args), or the whole command as "
              "launch.run");
    else if (!launch.run().empty() && !launch.script().empty())
      problem("launch.script", "launch.run is the whole command already; leave one of the two out");
    else if (!launch.run().empty() && !launch.args().empty())
      problem("launch.args", "are arguments of launch.script; put them into launch.run");
    if (!launch.run().empty() && launch.run(0).empty())
      problem("launch.run[0]", "is empty: the first word is the program");
    if (launch.per() != v1::LAUNCH_PER_NODE && launch.has_intercept())
      problem("launch.intercept", "is for launch.per: node; leave it out");
    else if (launch.per() == v1::LAUNCH_PER_NODE && !launch.has_intercept())
      launch.set_intercept(true);
    if (!launch.has_lockstep())
      launch.set_lockstep(engine_ != nullptr && engine_->lockstep &&
                          launch.per() == v1::LAUNCH_PER_RANK && trains() &&
                          engine::saves_apart(spec_));
  }

  [[nodiscard]] bool trains() const { return engine::asks_for_training(spec_); }

  // Keys that only MindFormers has.
  void engines_own(v1::LaunchSpec& launch) {
    if (launch.mode() < v1::LAUNCH_MODE_UNSPECIFIED || launch.mode() > v1::LAUNCH_MODE_STRATEGY)
      problem("launch.mode", fmt::format("{} is not accepted ({})", static_cast<int>(launch.mode()),
                                         accepted("launch.mode")));
    if (launch.launcher() < v1::LAUNCHER_UNSPECIFIED || launch.launcher() > v1::LAUNCHER_MSRUN)
      problem("launch.launcher",
              fmt::format("{} is not accepted ({})", static_cast<int>(launch.launcher()),
                          accepted("launch.launcher")));
    if (engine_ != nullptr && engine_->own_modes) {
      if (launch.mode() == v1::LAUNCH_MODE_UNSPECIFIED) launch.set_mode(v1::LAUNCH_MODE_TRAIN);
      if (launch.launcher() == v1::LAUNCHER_UNSPECIFIED)
        launch.set_launcher(v1::LAUNCHER_RANKTABLE);
      return;
    }
    if (engine_ == nullptr) return;
    if (launch.mode() > v1::LAUNCH_MODE_TRAIN)
      problem("launch.mode",
              fmt::format("is for engine mindformers; {} has the default only (train)",
                          spec_.engine()));
    if (launch.launcher() != v1::LAUNCHER_UNSPECIFIED)
      problem(
          "launch.launcher",
          fmt::format("is for engine mindformers; {} has the default only (auto)", spec_.engine()));
    if (!launch.config().empty())
      problem("launch.config",
              fmt::format("is for engine mindformers; give {} its configuration in launch.args",
                          spec_.engine()));
  }

  void resources() {
    v1::ResourceSpec& resources = *spec_.mutable_resources();
    complete_rank_table(spec_, [this](std::string key, std::string message) {
      problem(std::move(key), std::move(message));
    });
    if (resources.nodes() == 0) resources.set_nodes(1);
    if (resources.nodes() > 65536)
      problem("resources.nodes", fmt::format("{} is out of range ({})", resources.nodes(),
                                             accepted("resources.nodes")));
    std::set<std::uint32_t> seen;
    for (int i = 0; i < resources.device_ids_size(); ++i) {
      const std::uint32_t device = resources.device_ids(i);
      if (device > 1023)
        problem(fmt::format("resources.devices[{}]", i),
                fmt::format("{} is out of range (0..1023)", device));
      if (!seen.insert(device).second)
        problem(fmt::format("resources.devices[{}]", i),
                fmt::format("device {} is there twice", device));
    }
    if (!seen.empty() && resources.devices() != 0 && resources.devices() != seen.size())
      problem("resources.devices",
              fmt::format("{} devices, and {} named ones; leave one of the two out",
                          resources.devices(), seen.size()));
    if (!seen.empty())
      resources.set_devices(0);
    else if (resources.devices() == 0)
      resources.set_devices(spec_.launch().per() == v1::LAUNCH_PER_ONCE ? 1 : 8);
    if (resources.devices() > 1024)
      problem("resources.devices", fmt::format("{} is out of range ({})", resources.devices(),
                                               accepted("resources.devices")));
    if (const std::uint64_t all = std::uint64_t{resources.nodes()} *
                                  std::max<std::uint64_t>(resources.devices(), seen.size());
        resources.nodes() <= 65536 && resources.devices() <= 1024 && all > kDevicesMost)
      problem("resources.nodes",
              fmt::format("with {} devices each these are {} devices, at most {} a job",
                          all / resources.nodes(), all, kDevicesMost));
    if (resources.type().empty()) resources.set_type("auto");
    if (constexpr auto kTypes = std::to_array<std::string_view>(
            {"auto", "cpu", "ascend", "ascend910", "ascend910b", "ascend910_93", "nvidia"});
        std::ranges::find(kTypes, resources.type()) == kTypes.end())
      problem("resources.type", fmt::format("'{}' is not accepted ({})", shown(resources.type()),
                                            accepted("resources.type")));
    hosts(resources);
    labels("resources.select", resources.select());
    if (spec_.network().interface().empty()) spec_.mutable_network()->set_interface("auto");
    if (!interface_name(spec_.network().interface()))
      problem(
          "network.interface",
          fmt::format(
              "'{}' is not an interface's name: letters, digits, . _ -, at most {} characters ({})",
              shown(spec_.network().interface()), kInterfaceNameMax,
              accepted("network.interface")));
    if (spec_.network().master_port() > 65535)
      problem("network.master_port", fmt::format("{} is out of range (0 = auto, 1..65535)",
                                                 spec_.network().master_port()));
  }

  void hosts(const v1::ResourceSpec& resources) {
    std::set<std::string_view> seen;
    for (int i = 0; i < resources.hosts_size(); ++i) {
      const std::string key = fmt::format("resources.hosts[{}]", i);
      if (!node_name(resources.hosts(i)))
        problem(key, fmt::format("'{}' is not a node's name (letters, digits, . _ -, at most 63 "
                                 "characters); `muster node ls` lists them",
                                 shown(resources.hosts(i))));
      else if (!seen.insert(resources.hosts(i)).second)
        problem(key, fmt::format("'{}' is there twice", resources.hosts(i)));
    }
    const auto count = static_cast<std::uint32_t>(resources.hosts_size());
    if (count > 0 && count < resources.nodes())
      problem("resources.hosts", fmt::format("{} node{} named, but resources.nodes is {}", count,
                                             count == 1 ? " is" : "s are", resources.nodes()));
  }

  void checkpoint_and_resume() {
    v1::CheckpointSpec& checkpoint = *spec_.mutable_checkpoint();
    if (!checkpoint.dir().empty() && !checkpoint.dir().starts_with('/') &&
        !checkpoint.dir().starts_with("${out}"))
      problem("checkpoint.dir", fmt::format("'{}' is neither absolute nor below ${{out}} ({})",
                                            shown(checkpoint.dir()), accepted("checkpoint.dir")));
    if (checkpoint.layout().empty() && engine_ != nullptr)
      checkpoint.set_layout(std::string(engine_->layout));
    if (auto layout = engine::make_layout(checkpoint.layout()); !layout)
      problem("checkpoint.layout", layout.error().message);
    if (checkpoint.storage() < v1::CHECKPOINT_STORAGE_UNSPECIFIED ||
        checkpoint.storage() > v1::CHECKPOINT_STORAGE_LOCAL)
      problem("checkpoint.storage",
              fmt::format("{} is not accepted ({})", static_cast<int>(checkpoint.storage()),
                          accepted("checkpoint.storage")));
    v1::ResumeSpec& resume = *spec_.mutable_resume();
    if (!resume.has_enabled()) {
      resume.set_enabled(trains());
      if (!trains() && (!resume.args().empty() || !resume.env().empty() || !resume.drop().empty() ||
                        !resume.patch().empty() || !resume.vars().empty()))
        problem("resume",
                "is for modes that train: eval, predict and strategy write nothing to go on from; "
                "leave it out");
    }
    words("resume.args", resume.args());
    check_patches(spec_, [this](std::string key, std::string message) {
      problem(std::move(key), std::move(message));
    });
    environment("resume.env", resume.env());
    if (!spec_.output_dir().empty() && !spec_.output_dir().starts_with('/'))
      problem("outputs.dir",
              fmt::format(
                  "'{}' is not absolute (an absolute directory; empty: chosen by the controller)",
                  shown(spec_.output_dir())));
  }

  void observe_and_success() {
    v1::ObserveSpec& observe = *spec_.mutable_observe();
    if (observe.grammar().empty() && !observe.step().empty()) observe.set_grammar("custom");
    if (observe.grammar().empty() && engine_ != nullptr)
      observe.set_grammar(std::string(engine_->grammar));
    if (observe.grammar() == "custom") {
      const auto number = [](const std::string& text) {
        return !text.empty() && text.size() < 19 &&
               text.find_first_not_of("0123456789") == std::string::npos;
      };
      pattern("observe.progress.step", observe.step(), 1);
      if (!observe.loss().empty()) pattern("observe.progress.loss", observe.loss(), 1);
      if (!observe.total().empty() && !number(observe.total()))
        pattern("observe.progress.total", observe.total(), 1);
    } else {
      v1::Watching watching;
      watching.set_grammar(observe.grammar());
      if (auto grammar = engine::make_grammar(watching); !grammar)
        problem("observe.progress", grammar.error().message);
    }
    v1::SuccessSpec& success = *spec_.mutable_success();
    complete_success(success);
    if (success.means_case() == v1::SuccessSpec::kRegex)
      pattern("success.regex", success.regex(), 0);
    if (success.means_case() == v1::SuccessSpec::kFile && success.file().empty())
      problem("success.file", fmt::format("is empty ({})", accepted("success.file")));
    if (success.means_case() == v1::SuccessSpec::kRankFile && success.rank_file().empty())
      problem("success.rank_file", "is empty (a path, below ${out} unless absolute)");
  }

  void complete_success(v1::SuccessSpec& success) {
    const std::string unknown_why = engine::no_last_step(spec_);
    // A node's script prints anything, and its ranks' lines may go into files of their own.
    const bool lines = engine_ != nullptr && engine_->last_step &&
                       spec_.launch().per() != v1::LAUNCH_PER_NODE && engine::trains_surely(spec_);
    if (success.means_case() == v1::SuccessSpec::MEANS_NOT_SET && lines && unknown_why.empty())
      success.set_last_step(true);
    if (const std::string file = engine::rank_file(spec_);
        success.means_case() == v1::SuccessSpec::MEANS_NOT_SET && !file.empty())
      success.set_rank_file(file);
    if (success.means_case() == v1::SuccessSpec::MEANS_NOT_SET ||
        success.means_case() == v1::SuccessSpec::kExit0)
      success.set_exit0(true);
    if (success.means_case() != v1::SuccessSpec::kLastStep) return;
    success.set_last_step(true);
    if (!unknown_why.empty())
      problem("success", fmt::format("last-step could not be determined: {} ({})", unknown_why,
                                     accepted("success")));
  }

  void pattern(const std::string& key, const std::string& text, int groups) {
    if (text.empty()) return problem(key, fmt::format("is empty ({})", accepted(key)));
    if (std::string wrong = engine::pattern_problem(text, groups); !wrong.empty())
      problem(key, fmt::format("'{}': {}", shown(text), wrong));
  }

  void recovery() {
    v1::RecoverySpec& recovery = *spec_.mutable_recovery();
    if (!recovery.has_max_restarts()) recovery.set_max_restarts(20);
    if (recovery.max_restarts() > 100'000)
      problem("recovery.max_restarts",
              fmt::format("{} is out of range ({})", recovery.max_restarts(),
                          accepted("recovery.max_restarts")));
    using std::chrono::hours, std::chrono::minutes, std::chrono::seconds;
    if (!recovery.has_window()) recovery.mutable_window()->set_seconds(seconds(hours(24)).count());
    if (!recovery.has_orphan_grace())
      recovery.mutable_orphan_grace()->set_seconds(seconds(minutes(30)).count());
    if (!recovery.has_stop_grace()) recovery.mutable_stop_grace()->set_seconds(10);
    bound("recovery.window", recovery.window(), seconds(1), hours(365 * 24));
    bound("recovery.orphan_grace", recovery.orphan_grace(), seconds(5), hours(7 * 24));
    bound("recovery.stop_grace", recovery.stop_grace(), seconds(0), hours(1));
  }

  void bound(const std::string& key, const google::protobuf::Duration& value,
             std::chrono::seconds least, std::chrono::seconds most) {
    const bool sane =
        value.nanos() >= 0 && value.nanos() < 1'000'000'000 && value.seconds() >= least.count() &&
        (value.seconds() < most.count() || (value.seconds() == most.count() && value.nanos() == 0));
    if (!sane) problem(key, fmt::format("is out of range ({})", accepted(key)));
  }

  v1::JobSpec& spec_;
  const v1::ResolvedSpec* resolved_;
  const engine::Engine* engine_ = nullptr;
  bool too_many_ = false;
  std::vector<Problem> problems_;
};

}  // namespace

std::vector<Problem> complete(v1::JobSpec& spec, const v1::ResolvedSpec* resolved) {
  return Completer(spec, resolved).run();
}

}  // namespace muster::spec
