#include "controller/api/yaml_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "common/spec/values.h"

namespace muster::controller {
namespace {

constexpr const char* kFileName = "job.yaml";  // in messages: the text has no name of its own

std::string absolute(const std::string& base, const std::string& name) {
  return (std::filesystem::path(base) / name).lexically_normal().string();
}

template <class Request>
Result<void> check_alone(const Request& request) {
  if (!request.has_spec() && request.stages().empty()) return {};
  return fail(ErrorCode::InvalidArgument,
              "reading the spec: there are both 'yaml' and specs; leave one of the two out");
}

}  // namespace

Result<spec::Parsed> parse_yaml_spec(const v1::YamlSpec& given) {
  if (given.text().size() > spec::kSpecBytesMax)
    return fail(ErrorCode::InvalidArgument,
                fmt::format("reading the spec: it has {} bytes, at most {}", given.text().size(),
                            spec::kSpecBytesMax));
  if (!given.base_dir().empty() && !given.base_dir().starts_with('/'))
    return fail(ErrorCode::InvalidArgument,
                fmt::format("reading the spec: base_dir '{}' is not absolute",
                            spec::shown(given.base_dir())));
  std::map<std::string, const std::string*> files;
  for (const auto& [name, content] : given.files())
    files[absolute(given.base_dir(), name)] = &content;
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
  return made;
}

Result<v1::PlanJobRequest> with_specs(const v1::PlanJobRequest& request) {
  if (auto alone = check_alone(request); !alone) return fail(std::move(alone.error()));
  auto parsed = parse_yaml_spec(request.yaml());
  if (!parsed) return fail(std::move(parsed.error()));
  v1::PlanJobRequest made = request;
  made.clear_yaml();
  if (parsed->stages.empty()) {
    *made.mutable_spec() = std::move(parsed->spec);
    return made;
  }
  // The planner looks for the stage of this name among the stages.
  made.mutable_spec()->mutable_stage()->set_name(request.stage());
  for (v1::JobSpec& stage : parsed->stages) *made.add_stages() = std::move(stage);
  return made;
}

}  // namespace muster::controller
