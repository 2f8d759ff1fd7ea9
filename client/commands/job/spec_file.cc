#include "client/commands/job/spec_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <iostream>

#include "client/commands/job/config_urls.h"
#include "common/io/file.h"
#include "common/spec/parse.h"

namespace muster::client {
namespace {

Result<std::vector<std::pair<std::string, std::string>>> pairs(
    const std::vector<std::string>& texts, std::string_view option) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos)
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("option {} '{}': write NAME=VALUE", option, text));
    out.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return out;
}

// Reads a file that a spec names. The caller puts the file's name before the message.
Result<std::string> read_named(const std::string& path, std::size_t most) {
  std::error_code ignored;
  const auto wrong = [](std::string why) {
    return fail(ErrorCode::InvalidArgument, std::move(why));
  };
  if (std::filesystem::is_directory(path, ignored))
    return wrong("it is a directory; name the file in it");
  auto text = io::read_regular_file(path, most);
  if (text) return text;
  if (text.error().code == ErrorCode::NotFound)
    return wrong(fmt::format("there is no such file ({})", path));
  if (text.error().code == ErrorCode::ResourceExhausted)
    return wrong(fmt::format("it is longer than {} KiB", most >> 10U));
  return wrong(std::move(text.error().message));
}

Error too_long(std::string_view file) {
  return {
      ErrorCode::InvalidArgument,
      fmt::format(
          "reading the job spec '{}': longer than 1 MiB; a spec names files, it does not hold them",
          file)};
}

}  // namespace

void add_spec_options(CLI::App& command, SpecOptions& into) {
  command.add_option("file", into.file, "job.yaml, or - for standard input")
      ->required()
      ->type_name("");
  command
      .add_option("--set", into.set,
                  "over the file, e.g. --set resources.nodes=4 (may be given again)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

void add_env_option(CLI::App& command, SpecOptions& into) {
  command.add_option("--env", into.env, "over runtime.env (may be given again)")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
}

Result<spec::Parsed> load_spec(const SpecOptions& options) {
  namespace fs = std::filesystem;
  std::string text, base_dir;
  std::error_code ignored;
  if (options.file == "-") {
    text.resize(spec::kSpecBytesMax + 1);
    std::cin.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(std::cin.gcount()));
    if (text.size() > spec::kSpecBytesMax) return fail(too_long("<stdin>"));
    base_dir = fs::current_path(ignored).string();
  } else {
    auto read = io::read_file(options.file, spec::kSpecBytesMax);
    if (!read) {
      if (read.error().code == ErrorCode::NotFound)
        return fail(ErrorCode::InvalidArgument,
                    fmt::format("reading the job spec '{}': there is no such file", options.file));
      if (read.error().code == ErrorCode::ResourceExhausted) return fail(too_long(options.file));
      return fail(ErrorCode::InvalidArgument, std::move(read.error().message));
    }
    text = std::move(*read);
    base_dir = fs::absolute(options.file, ignored).lexically_normal().parent_path().string();
  }
  return read_spec(text, base_dir, options.file == "-" ? "<stdin>" : options.file, options);
}

Result<spec::Parsed> read_spec(const std::string& text, const std::string& base_dir,
                               const std::string& file, const SpecOptions& options) {
  spec::ParseOptions parse{.base_dir = base_dir};
  auto set = pairs(options.set, "--set");
  if (!set) return fail(std::move(set.error()));
  auto env = pairs(options.env, "--env");
  if (!env) return fail(std::move(env.error()));
  parse.set = std::move(*set);
  parse.env = std::move(*env);
  parse.read_file = read_named;
  spec::Parsed parsed = spec::parse_yaml(text, parse);
  if (!parsed.problems.empty()) {
    if (file.empty())
      for (spec::Problem& problem : parsed.problems) problem.line = problem.column = 0;
    std::string problems = spec::format(parsed.problems, file);
    while (problems.ends_with('\n')) problems.pop_back();
    return fail(ErrorCode::InvalidArgument,
                fmt::format("the job spec has {} problem{}:\n{}", parsed.problems.size(),
                            parsed.problems.size() == 1 ? "" : "s", problems));
  }
  take_config_urls(parsed.spec);
  for (v1::JobSpec& stage : parsed.stages) take_config_urls(stage);
  return parsed;
}

Result<void> set_over(v1::JobSpec& spec, const SpecOptions& options) {
  std::error_code ignored;
  spec::ParseOptions parse{.base_dir = std::filesystem::current_path(ignored).string()};
  auto set = pairs(options.set, "--set");
  if (!set) return fail(std::move(set.error()));
  auto env = pairs(options.env, "--env");
  if (!env) return fail(std::move(env.error()));
  parse.set = std::move(*set);
  parse.env = std::move(*env);
  parse.read_file = read_named;
  const std::vector<spec::Problem> problems = spec::set_over(spec, parse);
  if (problems.empty()) return {};
  std::string lines = spec::format(problems, "");
  while (lines.ends_with('\n')) lines.pop_back();
  return fail(ErrorCode::InvalidArgument,
              fmt::format("the job spec has {} problem{}:\n{}", problems.size(),
                          problems.size() == 1 ? "" : "s", lines));
}

}  // namespace muster::client
