#include "common/compat/launcher/launch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <span>

namespace muster::launcher {
namespace {

// npos + 1 is 0
std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// The position of the launcher's own words: after its name, or after `python -m
// torch.distributed.run`.
struct Found {
  Launcher launcher = Launcher::Torchrun;
  std::size_t rest = 0;
};
std::optional<Found> find_launcher(const std::vector<std::string>& words) {
  if (words.empty()) return std::nullopt;
  const std::string_view name = file_name(words.front());
  if (name == "torchrun") return Found{.launcher = Launcher::Torchrun, .rest = 1};
  if (name == "msrun") return Found{.launcher = Launcher::Msrun, .rest = 1};
  if (!name.starts_with("python")) return std::nullopt;
  const PythonCall call = parse_python(std::span(words).subspan(1));
  if (!call.launches) return std::nullopt;
  return Found{.launcher = call.launcher, .rest = call.rest + 1};
}

}  // namespace

bool is_launch(const std::vector<std::string>& words) { return find_launcher(words).has_value(); }

Result<Launch> read_launch(std::vector<std::string> words, std::string directory) {
  const auto found = find_launcher(words);
  if (!found)
    return fail(ErrorCode::InvalidArgument,
                fmt::format("'{}' is no launcher", words.empty() ? "" : words.front()));
  Launch launch;
  auto call = parse_call(found->launcher, std::span(words).subspan(found->rest));
  if (!call) return fail(std::move(call.error()));
  if (call->has("help"))
    return fail(ErrorCode::InvalidArgument,
                fmt::format("{}: --help starts nothing; ask '{} --help' itself",
                            name_of(found->launcher), words.front()));
  auto wanted = wanted_of(*call);
  if (!wanted) return fail(std::move(wanted.error()));
  const std::string_view program = words.front(), name = file_name(program);
  if (name.starts_with("python") && (program != name || (name != "python" && name != "python3")))
    launch.interpreter = program;
  if (!wanted->interpreter.empty() && wanted->interpreter != "python" &&
      wanted->interpreter != "python3")
    launch.interpreter = wanted->interpreter;
  if (launch.interpreter.find('/') != std::string::npos && launch.interpreter.front() != '/')
    launch.interpreter = directory + "/" + launch.interpreter;
  launch.call = std::move(*call);
  launch.wanted = std::move(*wanted);
  launch.words = std::move(words);
  launch.directory = std::move(directory);
  return launch;
}

std::string options_given(const Wanted& wanted) {
  std::string text;
  if (!wanted.placed.empty())
    text = fmt::format("decided by the placement: {}", fmt::join(wanted.placed, ", "));
  if (!wanted.idle.empty())
    text +=
        fmt::format("{}without effect: {}", text.empty() ? "" : "; ", fmt::join(wanted.idle, ", "));
  return text;
}

}  // namespace muster::launcher
