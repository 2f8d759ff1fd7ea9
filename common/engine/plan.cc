// plan_launch(): turns a spec and a placement into everything that each rank gets, with the source
// of each value.
//
// The environment is filled in this order, and a later value overrides an earlier one: muster's
// defaults, runtime.env, resume.env (only if resuming), the engine's defaults for unset variables,
// and the values that belong to muster or to the engine alone. common/spec refuses a spec that sets
// one of the last ones.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "common/engine/ascend/hccl_cards.h"
#include "common/engine/ascend/modelarts.h"
#include "common/engine/ascend/plog.h"
#include "common/engine/ascend/table_plan.h"
#include "common/engine/model/code_place.h"
#include "common/engine/model/observing.h"
#include "common/engine/model/rows.h"
#include "common/engine/model/secret.h"
#include "common/engine/model/start.h"
#include "common/engine/model/template.h"
#include "common/engine/patch_plan.h"

namespace muster::engine {
namespace {

std::string device_range(const std::vector<std::uint32_t>& devices) {
  if (devices.empty()) return "";
  for (std::size_t i = 1; i < devices.size(); ++i)
    // readers take two numbers in brackets for a range
    if (devices[i] != devices[0] + i) return fmt::format("{}", fmt::join(devices, ","));
  return fmt::format("[{},{})", devices.front(), devices.back() + 1);
}

class RankValues final : public TemplateValues {
 public:
  // Which variables ${env:X} can name: none inside the value of a variable; elsewhere every
  // variable of the rank, as far as it is known.
  enum class Variables : std::uint8_t { None, All, Some };

  // The values that are the same for all ranks of a launch.
  struct Whole {
    std::size_t world = 0;
    std::string table;  // rank_table_name()
  };

  RankValues(const LaunchRequest& request, const RankPlan& rank, const Whole& whole,
             Variables variables)
      : request_(request), rank_(rank), whole_(whole), variables_(variables) {}

  [[nodiscard]] Result<std::string> value(std::string_view name) const override {
    const PlacedNode& node = request_.nodes[rank_.node];
    if (name == "rank") return std::to_string(rank_.rank);
    if (name == "local_rank") return std::to_string(rank_.local_rank);
    if (name == "world_size") return std::to_string(whole_.world);
    if (name == "attempt") return std::to_string(request_.attempt);
    if (name == "out") return request_.out_dir;
    if (name == "save.dir") return request_.save_dir;
    if (name == "resume.dir") return request_.resuming() ? request_.resume_dir : "";
    if (name == "resume.step")
      return request_.resuming() ? std::to_string(request_.resume_step) : "";
    if (name == "job.name") return request_.spec->name();
    if (name == "device_id")
      return rank_.devices.empty() ? "" : std::to_string(rank_.devices.front());
    if (name == "device_range") return device_range(node.devices);
    if (name == "devices") return std::to_string(node.devices.size());
    if (name == "node.rank") return std::to_string(rank_.node);
    if (name == "node.ip") return node.address;
    if (name == "nodes") return std::to_string(request_.nodes.size());
    if (name == "master.addr") return request_.nodes.front().address;
    if (name == "master.port") return std::to_string(request_.master_port);
    if (name == "rank_table") return rank_table();
    if (name == "start.dir") return start_value(request_);
    if (name.starts_with("inputs.")) return input_value(request_, name.substr(7));
    if (name.starts_with("stages.")) return stage_value(request_, name.substr(7));
    if (name.starts_with("env:")) {
      if (variables_ == Variables::None)
        return fail(
            ErrorCode::InvalidArgument,
            fmt::format("'${{{}}}' has no value inside another variable; write it out", name));
      const auto found = rank_.env.find(std::string(name.substr(4)));
      if (found != rank_.env.end() && !found->second.secret.empty())
        return fail(ErrorCode::InvalidArgument,
                    fmt::format("'${{{}}}' is secret '{}', which only the environment of a process "
                                "may have: let the program read the variable",
                                name, found->second.secret));
      if (found != rank_.env.end()) return found->second.text;
      if (variables_ == Variables::Some) return "";
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("'${{{}}}' has no value: the job sets no variable '{}'; set it in "
                              "runtime.env or with --env",
                              name, name.substr(4)));
    }
    return fail(ErrorCode::Unsupported,
                fmt::format("'${{{}}}' is known but not in this release", name));
  }

 private:
  [[nodiscard]] Result<std::string> rank_table() const {
    if (!whole_.table.empty()) return rank_table_path(request_, rank_.node, whole_.table);
    // A single rank needs no table. The value is empty then, so that a spec is sound at every size.
    if (starts_by_table(*request_.spec)) return "";
    return fail(ErrorCode::InvalidArgument,
                "'${rank_table}' has no value here: only engine mindformers with launch.launcher: "
                "ranktable makes a rank table; resources.rank_table gives the "
                "job one of your own");
  }

  const LaunchRequest& request_;
  const RankPlan& rank_;
  const Whole& whole_;
  Variables variables_;
};

struct Keyed {
  std::string key;
  Template text;
};

// A variable of the spec: a text, or a secret.
struct KeyedVariable {
  std::string name;
  Keyed value;
  std::string secret;
};

class Planner {
 public:
  explicit Planner(const LaunchRequest& request)
      : request_(request),
        spec_(*request.spec),
        whole_{request.world_size(), rank_table_name(request)} {}

  LaunchPlan run() {
    LaunchPlan plan;
    const Engine* engine = find_engine(spec_.engine());
    if (engine == nullptr)
      report("engine", fmt::format("'{}' is not an engine of this release", spec_.engine()));
    engine_known_ = engine != nullptr;
    lay_ranks(plan);
    if (plan.ranks.empty()) {
      report("resources", "the placement has no rank");
      return plan;
    }
    fill_environment(plan);
    base_command();
    // An unknown engine gives no plan, but the user needs the other problems of the spec, too.
    if (engine != nullptr) run_engine(*engine, plan);
    fill_commands(plan);
    fill_auxiliaries(plan);
    fill_patches(plan);
    fill_watching(plan, engine);
    return plan;
  }

  [[nodiscard]] const std::vector<KeyedProblem>& problems() const { return problems_; }

 private:
  [[nodiscard]] RankValues::Variables variables() const {
    return engine_known_ ? RankValues::Variables::All : RankValues::Variables::Some;
  }

  void report(std::string key, std::string message) {
    if (reported_.insert(key).second)
      problems_.push_back({.key = std::move(key), .message = std::move(message)});
  }

  void run_engine(const Engine& engine, LaunchPlan& plan) {
    Problems found;
    Launching launching{.request = request_,
                        .plan = plan,
                        .command = command_,
                        .cwd = cwd_,
                        .auxiliaries = auxiliaries_,
                        .problems = found};
    put_modelarts(launching, engine);
    if (spec_.launch().per() == v1::LAUNCH_PER_NODE)
      launch_node_script(launching, engine);
    else
      engine.launch(launching);
    plan_own_table(launching);
    put_plog(launching, engine);
    put_dump(launching);
    for (KeyedProblem& problem : found) report(std::move(problem.key), std::move(problem.message));
    if (request_.imagined) return;  // the kind of the devices is not known
    // The runtime numbers visible devices upwards, regardless of their order in the list. With
    // another order each rank would get another rank's device.
    for (const RankPlan& rank : plan.ranks) {
      const std::vector<std::uint32_t>& devices = request_.nodes[rank.node].devices;
      if (rank.env.contains("ASCEND_RT_VISIBLE_DEVICES") && !std::ranges::is_sorted(devices))
        return report("resources.devices",
                      fmt::format("[{}] does not ascend: Ascend's runtime numbers devices upwards, "
                                  "and ranks would not get theirs; write them in ascending order",
                                  fmt::join(devices, ", ")));
    }
  }

  std::optional<Template> parse(const std::string& key, std::string_view text) {
    auto parsed = Template::parse(text);
    if (parsed) return std::move(*parsed);
    report(key, std::move(parsed.error().message));
    return std::nullopt;
  }

  std::string expand(const Keyed& keyed, const TemplateValues& values) {
    auto text = keyed.text.expand(values, kStringBytesMax);
    if (text) return std::move(*text);
    report(keyed.key, std::move(text.error().message));
    return {};
  }

  // Whether some of `count` ranks from `first` on are requested.
  [[nodiscard]] bool asked_for(std::uint32_t first, std::uint32_t count) const {
    const auto& only = request_.only;
    return !only || first == 0 ||
           (first < only->first + only->count && only->first < first + count);
  }

  void lay_ranks(LaunchPlan& plan) {
    const bool per_device =
        spec_.launch().per() != v1::LAUNCH_PER_ONCE && spec_.launch().per() != v1::LAUNCH_PER_NODE;
    for (std::size_t node = 0; node < request_.nodes.size(); ++node) {
      const PlacedNode& slot = request_.nodes[node];
      if (!asked_for(slot.first_rank.value, slot.rank_count)) continue;
      for (std::uint32_t local = 0; local < slot.rank_count; ++local) {
        if (!asked_for(slot.first_rank.value + local, 1)) continue;
        RankPlan rank{.rank = slot.first_rank.value + local, .local_rank = local, .node = node};
        if (per_device && local < slot.devices.size())
          rank.devices = {slot.devices[local]};
        else if (!per_device)
          rank.devices = slot.devices;
        plan.ranks.push_back(std::move(rank));
      }
    }
    std::ranges::sort(plan.ranks, {}, &RankPlan::rank);
  }

  std::vector<KeyedVariable> environment(
      const google::protobuf::Map<std::string, std::string>& from, const char* key) {
    std::vector<KeyedVariable> result;
    for (const auto& [name, value] : from) {
      KeyedVariable one{.name = name, .value = {fmt::format("{}.{}", key, name), {}}, .secret = {}};
      auto secret = secret_of(value);
      if (!secret) {
        report(one.value.key, std::move(secret.error().message));
      } else if (*secret) {
        one.secret = **std::move(secret);
        result.push_back(std::move(one));
      } else if (auto parsed = parse(one.value.key, value)) {
        one.value.text = std::move(*parsed);
        result.push_back(std::move(one));
      }
    }
    std::ranges::sort(result, {}, &KeyedVariable::name);
    return result;
  }

  void put_variables(Environment& env, const std::vector<KeyedVariable>& variables,
                     const RankValues& values, const char* source) {
    for (const KeyedVariable& one : variables) {
      if (one.secret.empty())
        put(env, one.name.c_str(), expand(one.value, values), source);
      else
        env.insert_or_assign(one.name,
                             Value{.text = fmt::format("${{{}{}}}", kSecretPrefix, one.secret),
                                   .source = source,
                                   .secret = one.secret});
    }
  }

  void fill_environment(LaunchPlan& plan) {
    const auto user = environment(spec_.runtime().env(), "runtime.env");
    const auto resume =
        request_.resuming() ? environment(spec_.resume().env(), "resume.env") : decltype(user){};
    const std::string world = std::to_string(whole_.world);
    for (RankPlan& rank : plan.ranks) {
      const RankValues values(request_, rank, whole_, RankValues::Variables::None);
      Environment& env = rank.env;
      put(env, "PYTHONUNBUFFERED", "1", "muster");
      put_variables(env, user, values, "runtime.env");
      put_variables(env, resume, values, "resume.env");
      put_inputs(env);
      put_own(rank, world);
    }
  }

  void put_inputs(Environment& env) {
    for (const v1::InputSpec& input : spec_.inputs()) {
      if (input.env().empty()) continue;
      const std::string key = fmt::format("inputs.{}", input.name());
      auto path = input_value(request_, input.name());
      if (path)
        put(env, input.env().c_str(), std::move(*path), key.c_str());
      else
        report(key, std::move(path.error().message));
    }
  }

  void put_own(RankPlan& rank, const std::string& world) {
    const PlacedNode& node = request_.nodes[rank.node];
    Environment& env = rank.env;
    const std::string devices = fmt::format("{}", fmt::join(node.devices, ","));
    put(env, "MUSTER_JOB_ID", request_.job_id, "muster");
    put(env, "MUSTER_JOB_NAME", spec_.name(), "muster");
    put(env, "MUSTER_ATTEMPT", std::to_string(request_.attempt), "muster");
    put(env, "MUSTER_RANK", std::to_string(rank.rank), "muster");
    put(env, "MUSTER_LOCAL_RANK", std::to_string(rank.local_rank), "muster");
    put(env, "MUSTER_WORLD_SIZE", world, "muster");
    put(env, "MUSTER_LOCAL_WORLD_SIZE", std::to_string(node.rank_count), "muster");
    put(env, "MUSTER_NODE", node.node.str(), "muster");
    put(env, "MUSTER_NODE_RANK", std::to_string(rank.node), "muster");
    put(env, "MUSTER_NODES", std::to_string(request_.nodes.size()), "muster");
    put(env, "MUSTER_DEVICES", devices, "muster");
    put(env, "MUSTER_MASTER_ADDR", request_.nodes.front().address, "muster");
    put(env, "MUSTER_MASTER_PORT", std::to_string(request_.master_port), "muster");
    put(env, "MUSTER_OUT", request_.out_dir, "muster");
    put(env, "MUSTER_SAVE_DIR", request_.save_dir, "muster");
    put(env, "MUSTER_RESUME_DIR", request_.resuming() ? request_.resume_dir : "", "muster");
    put(env, "MUSTER_RESUME_STEP", request_.resuming() ? std::to_string(request_.resume_step) : "",
        "muster");
    // The node's devices of this attempt, in order: the engine's local rank i finds its device as
    // number i.
    const std::string_view type = device_type(request_, node);
    if (type == "nvidia") {
      put(env, "CUDA_VISIBLE_DEVICES", devices, "muster");
      // as nvidia-smi counts; CUDA's own order begins with the fastest device
      put_default(env, "CUDA_DEVICE_ORDER", "PCI_BUS_ID", "muster");
    }
    if (is_ascend(type)) put(env, "ASCEND_RT_VISIBLE_DEVICES", devices, "muster");
  }

  void add_word(std::string key, std::string text) {
    command_.push_back({.text = std::move(text), .key = std::move(key)});
  }

  // Sets the command line, with its templates.
  void base_command() {
    const v1::LaunchSpec& launch = spec_.launch();
    cwd_ = launch.cwd().empty() ? code_template(spec_) : below_code(spec_, launch.cwd());
    for (int i = 0; i < launch.run_size(); ++i)
      add_word(fmt::format("launch.run[{}]", i), launch.run(i));
    if (launch.run_size() == 0) {
      const std::string& python = spec_.runtime().python();
      const bool chosen = !python.empty() && python != "auto";
      if (chosen || launch.script().ends_with(".py")) {
        const std::string path = !chosen ? std::string(kPythonAuto)
                                 : python.find('/') == std::string::npos
                                     ? python
                                     : below_code(spec_, python);
        add_word("runtime.python", path);
        add_word("runtime.python", "-u");
      }
      add_word("launch.script", below_code(spec_, launch.script()));
    }
    for (int i = 0; i < launch.args_size(); ++i)
      add_word(fmt::format("launch.args[{}]", i), launch.args(i));
    if (!request_.resuming()) return;
    drop_words(command_, spec_.resume().drop());
    for (int i = 0; i < spec_.resume().args_size(); ++i)
      add_word(fmt::format("resume.args[{}]", i), spec_.resume().args(i));
  }

  std::vector<Keyed> compile(const CommandLine& command) {
    std::vector<Keyed> result;
    for (const Word& word : command)
      if (auto parsed = parse(word.key, word.text))
        result.push_back({.key = word.key, .text = std::move(*parsed)});
    return result;
  }

  // False: arguments and environment are longer than a process can be given.
  bool fill_process(const std::vector<Keyed>& command, const RankValues& values,
                    const Environment& env, std::vector<std::string>& argv) {
    std::size_t bytes = 0;
    for (const Keyed& part : command) {
      argv.push_back(expand(part, values));
      bytes += argv.back().size() + 1 + sizeof(char*);
      if (bytes > kProcessBytesMax) break;
    }
    for (const auto& [name, value] : env)
      bytes += name.size() + value.text.size() + 2 + sizeof(char*);
    if (bytes <= kProcessBytesMax) return true;
    report("launch.args",
           fmt::format("arguments and environment of a rank are longer than {} bytes together",
                       kProcessBytesMax));
    return false;
  }

  void fill_commands(LaunchPlan& plan) {
    const auto cwd = parse("launch.cwd", cwd_);
    const std::vector<Keyed> compiled = compile(command_);
    for (const Word& word : command_) plan.argv_sources.push_back(word.key);
    for (RankPlan& rank : plan.ranks) {
      const RankValues values(request_, rank, whole_, variables());
      if (!fill_process(compiled, values, rank.env, rank.argv)) return;
      if (cwd) rank.cwd = expand({.key = "launch.cwd", .text = *cwd}, values);
      if (!problems_.empty()) return;  // the other ranks would only repeat them
    }
  }

  // Uses the values of rank 0: the auxiliary processes run on its node.
  void fill_auxiliaries(LaunchPlan& plan) {
    for (AuxiliaryDraft& draft : auxiliaries_) {
      const RankValues values(request_, plan.ranks.front(), whole_, variables());
      const auto cwd = parse("launch.cwd", draft.cwd);
      if (!fill_process(compile(draft.command), values, draft.plan.env, draft.plan.argv)) return;
      if (cwd) draft.plan.cwd = expand({.key = "launch.cwd", .text = *cwd}, values);
      plan.auxiliaries.push_back(std::move(draft.plan));
    }
  }

  void fill_patches(LaunchPlan& plan) {
    if (!problems_.empty()) return;
    Problems found;
    plan_patches({.request = request_,
                  .plan = plan,
                  .problems = found,
                  .value = [this](const RankPlan& rank, std::string_view name) {
                    return RankValues(request_, rank, whole_, variables()).value(name);
                  }});
    for (KeyedProblem& problem : found) report(std::move(problem.key), std::move(problem.message));
  }

  static std::string engine_word(const Engine* engine, std::string_view Engine::* word) {
    return engine == nullptr ? "none" : std::string(engine->*word);
  }

  void fill_watching(LaunchPlan& plan, const Engine* engine) {
    v1::Watching& watching = plan.watching;
    const v1::ObserveSpec& observe = spec_.observe();
    watching.set_grammar(observe.grammar().empty() ? engine_word(engine, &Engine::grammar)
                                                   : observe.grammar());
    watching.set_step_regex(observe.step());
    watching.set_loss_regex(observe.loss());
    watching.set_total(observe.total());
    watching.set_layout(spec_.checkpoint().layout().empty() ? engine_word(engine, &Engine::layout)
                                                            : spec_.checkpoint().layout());
    watching.set_save_dir(request_.save_dir);
    watching.set_world_size(static_cast<std::uint32_t>(training_world(request_)));
    if (request_.resuming()) watching.set_resume_step(request_.resume_step);
    watching.set_success_regex(spec_.success().regex());
    watching.set_success_last_step(spec_.success().last_step());
    fill_rank_files(plan);
    if (spec_.success().means_case() != v1::SuccessSpec::kFile) return;
    auto file = parse("success.file", spec_.success().file());
    if (!file) return;
    const std::string path = expand({.key = "success.file", .text = std::move(*file)},
                                    RankValues(request_, plan.ranks.front(), whole_, variables()));
    watching.set_success_file(below_out(path));
  }

  void fill_rank_files(LaunchPlan& plan) {
    if (spec_.success().means_case() != v1::SuccessSpec::kRankFile) return;
    auto file = parse("success.rank_file", spec_.success().rank_file());
    if (!file) return;
    const Keyed keyed{.key = "success.rank_file", .text = std::move(*file)};
    for (RankPlan& rank : plan.ranks)
      rank.success_file = below_out(expand(keyed, RankValues(request_, rank, whole_, variables())));
  }

  [[nodiscard]] std::string below_out(const std::string& path) const {
    return path.starts_with('/') ? path : fmt::format("{}/{}", request_.out_dir, path);
  }

  const LaunchRequest& request_;
  const v1::JobSpec& spec_;
  const RankValues::Whole whole_;
  bool engine_known_ = false;
  CommandLine command_;
  std::string cwd_;
  std::vector<AuxiliaryDraft> auxiliaries_;
  std::vector<KeyedProblem> problems_;
  std::unordered_set<std::string> reported_;
};

}  // namespace

std::string literal(std::string_view text) {
  std::string result;
  for (const char c : text) result.append(c == '$' ? 2 : 1, c);
  return result;
}

std::string_view device_type(const LaunchRequest& request, const PlacedNode& node) {
  const std::string& asked = request.spec->resources().type();
  return asked.empty() || asked == "auto" ? node.device_type : asked;
}

std::uint64_t ranks_asked(const v1::JobSpec& spec) {
  if (spec.launch().per() == v1::LAUNCH_PER_ONCE) return 1;
  const v1::ResourceSpec& wanted = spec.resources();
  const std::uint64_t devices = wanted.device_ids().empty()
                                    ? wanted.devices()
                                    : static_cast<std::uint64_t>(wanted.device_ids_size());
  return std::max<std::uint64_t>(1, wanted.nodes()) * std::max<std::uint64_t>(1, devices);
}

std::size_t LaunchRequest::world_size() const {
  std::size_t ranks = 0;
  for (const PlacedNode& node : nodes) ranks += node.rank_count;
  return ranks;
}

const RankPlan* LaunchPlan::find(std::uint32_t rank) const {
  const auto found = std::ranges::lower_bound(ranks, rank, {}, &RankPlan::rank);
  return found == ranks.end() || found->rank != rank ? nullptr : &*found;
}

Result<LaunchPlan> plan_launch(const LaunchRequest& request) {
  Planner planner(request);
  LaunchPlan plan = planner.run();
  if (planner.problems().empty()) return plan;
  const KeyedProblem& first = planner.problems().front();
  return fail(ErrorCode::InvalidArgument,
              fmt::format("planning job '{}' attempt {}: {}: {}", request.spec->name(),
                          request.attempt, first.key, first.message));
}

std::vector<KeyedProblem> check_launch(const v1::JobSpec& spec, const v1::ResolvedSpec* resolved) {
  // The longest plan that a placement can cause: every key is filled in, on an attempt that
  // resumes.
  LaunchRequest request{.spec = &spec,
                        .resolved = resolved,
                        .job_id = std::string(13, '0'),
                        .attempt = 2,
                        .master_port = 65535,
                        .resume_step = 0};
  request.imagined = request.unresolved = true;
  request.nodes = {{.node = NodeName(std::string(63, 'n')),
                    .address = std::string(45, '1'),
                    .devices = {0},
                    .first_rank = RankNo(0),
                    .rank_count = 1}};
  request.out_dir = "/" + std::string(1000, 'o');
  request.save_dir = save_dir(spec, request.out_dir, request.attempt);
  request.resume_dir = resume_dir(spec, request.out_dir, request.attempt);
  if (starts_as_weights(spec)) request.start_dir = request.resume_dir;
  Planner planner(request);
  planner.run();
  std::vector<KeyedProblem> problems = planner.problems();
  // An engine replaces words on an attempt that resumes (Megatron's --load). At a first start they
  // are as the spec has them, and variables of resume.env have no value.
  request.attempt = 1;
  request.save_dir = save_dir(spec, request.out_dir, request.attempt);
  request.resume_dir.clear();
  Planner first(request);
  first.run();
  for (const KeyedProblem& problem : first.problems())
    if (std::ranges::find(problems, problem.key, &KeyedProblem::key) == problems.end())
      problems.push_back(problem);
  if (const Engine* engine = find_engine(spec.engine());
      engine != nullptr && engine->check != nullptr)
    engine->check(spec, problems);
  check_node_script(spec, problems);
  check_observing(spec, problems);
  check_start(spec, problems);
  check_cards(spec, problems);
  if (auto dir = checkpoint_dir(spec, request.out_dir); !dir)
    problems.push_back({.key = "checkpoint.dir", .message = dir.error().message});
  return problems;
}

}  // namespace muster::engine
