#include "controller/api/yaml_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "common/spec/keys/values.h"
#include "controller/api/unknown_fields.h"

namespace muster::controller {
namespace {

constexpr const char* kFileName = "job.yaml";  // in messages: the text has no name of its own
// What --set and --env change; each entry is looked for among the others.
constexpr int kChangesMost = 4'096;

Error wrong(std::string message) {
  return {ErrorCode::InvalidArgument, "reading the spec: " + std::move(message)};
}

std::string absolute(const std::string& base, const std::string& name) {
  return (std::filesystem::path(base) / name).lexically_normal().string();
}

template <class Request>
Result<void> check_alone(const Request& request) {
  if (request.has_spec() || !request.stages().empty())
    return fail(wrong("there are both 'yaml' and specs; leave one of the two out"));
  if (const auto unknown = unknown_fields(request.yaml()); !unknown.empty())
    return fail(
        wrong(fmt::format("this controller does not know yaml.{}; leave out what came with "
                          "a newer muster, or upgrade the controller",
                          unknown.front())));
  return {};
}

Result<void> check_bounds(const v1::YamlSpec& given) {
  std::size_t bytes = given.text().size();
  for (const auto* map : {&given.set(), &given.env()})
    for (const auto& [name, value] : *map) bytes += name.size() + value.size();
  if (bytes > spec::kSpecBytesMax)
    return fail(wrong(
        fmt::format("with set and env it has {} bytes, at most {}", bytes, spec::kSpecBytesMax)));
  if (given.set().size() + given.env().size() > kChangesMost)
    return fail(wrong(fmt::format("set and env have {} entries, at most {}",
                                  given.set().size() + given.env().size(), kChangesMost)));
  if (!given.base_dir().empty() && !given.base_dir().starts_with('/'))
    return fail(wrong(fmt::format("base_dir '{}' is not absolute", spec::shown(given.base_dir()))));
  return {};
}

}  // namespace

Result<spec::Parsed> parse_yaml_spec(const v1::YamlSpec& given) {
  if (auto bounded = check_bounds(given); !bounded) return fail(std::move(bounded.error()));
  std::map<std::string, const std::string*> files;
  for (const auto& [name, content] : given.files())
    if (!files.emplace(absolute(given.base_dir(), name), &content).second)
      return fail(wrong(
          fmt::format("two of its files are '{}'", spec::shown(absolute(given.base_dir(), name)))));
  spec::ParseOptions options{.base_dir = given.base_dir()};
  options.read_file = [&](const std::string& path, std::size_t most) -> Result<std::string> {
    const auto found = files.find(path);
    if (found == files.end())
      return fail(ErrorCode::NotFound, "is not among the files of the request");
    if (found->second->size() > most)
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("has {} bytes, at most {}", found->second->size(), most));
    return *found->second;
  };
  // In the order of the keys, so that the same request always gives the same spec.
  const auto sorted = [](const auto& map) {
    std::vector<std::pair<std::string, std::string>> all(map.begin(), map.end());
    std::ranges::sort(all);
    return all;
  };
  options.set = sorted(given.set());
  options.env = sorted(given.env());
  auto parsed = spec::parse_yaml(given.text(), options);
  if (!parsed.problems.empty())
    return fail(ErrorCode::InvalidArgument, spec::format(parsed.problems, kFileName));
  return parsed;
}

Result<v1::SubmitJobRequest> with_specs(const v1::SubmitJobRequest& request) {
  if (auto alone = check_alone(request); !alone) return fail(std::move(alone.error()));
  auto parsed = parse_yaml_spec(request.yaml());
  if (!parsed) return fail(std::move(parsed.error()));
  v1::SubmitJobRequest made = request;
  made.clear_yaml();
  if (parsed->stages.empty()) *made.mutable_spec() = std::move(parsed->spec);
  for (v1::JobSpec& stage : parsed->stages) {
    const bool done = std::ranges::any_of(request.done(), [&](const v1::DoneStage& one) {
      return one.stage() == stage.stage().name();
    });
    if (!done) *made.add_stages() = std::move(stage);
  }
  if (!parsed->stages.empty() && made.stages().empty())
    return fail(wrong("all stages of the chain are done; leave one out of 'done' to run it again"));
  return made;
}

Result<v1::PlanJobRequest> with_specs(const v1::PlanJobRequest& request) {
  if (auto alone = check_alone(request); !alone) return fail(std::move(alone.error()));
  auto parsed = parse_yaml_spec(request.yaml());
  if (!parsed) return fail(std::move(parsed.error()));
  v1::PlanJobRequest made = request;
  made.clear_yaml();
  if (parsed->stages.empty()) {
    if (!request.stage().empty())
      return fail(wrong(
          fmt::format("it is no chain, and has no stage '{}'", spec::shown(request.stage()))));
    *made.mutable_spec() = std::move(parsed->spec);
    return made;
  }
  // The planner looks for the stage of this name among the stages.
  made.mutable_spec()->mutable_stage()->set_name(request.stage());
  for (v1::JobSpec& stage : parsed->stages) *made.add_stages() = std::move(stage);
  return made;
}

}  // namespace muster::controller
