#include "client/commands/usage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <vector>

namespace muster::client {
namespace {

// What an option wants stands beside it, what it has without being given behind its text; its variable follows from its name and stands once, in the main help.
class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text;
    if (option->get_type_size() != 0 && !option->get_type_name().empty()) text = " " + option->get_type_name().substr(0, option->get_type_name().find(':'));
    return option->get_positional() && option->get_expected_max() > 1 ? text + " ..." : text;
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    std::string text = option->get_description();
    if (!option->get_default_str().empty()) text += fmt::format(" (default: {})", option->get_default_str());
    if (option->get_required() && !option->get_positional()) text += " (required)";
    return text;
  }
};

std::string variable_part(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return c == '-' ? '_' : static_cast<char>(std::toupper(c)); });
  return text;
}

void name_variables_below(CLI::App& app, const std::string& prefix) {
  for (CLI::Option* option : app.get_options()) {
    const auto& names = option->get_lnames();
    if (names.empty() || !option->get_envname().empty() || option == app.get_help_ptr() || option == app.get_version_ptr()) continue;
    option->envname(prefix + variable_part(names.front()));
  }
  for (CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) name_variables_below(*verb, prefix + variable_part(verb->get_name()) + "_");
}

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_formatter() { return std::make_shared<HelpFormatter>(); }

void name_variables(CLI::App& app) { name_variables_below(app, "MUSTER_"); }

std::string usage_text(const CLI::App& app, const CLI::ParseError& error, int argc, const char* const* argv) {
  const CLI::App* command = &app;
  std::string verb = "muster";
  for (auto chosen = command->get_subcommands(); !chosen.empty(); chosen = command->get_subcommands()) {
    command = chosen.front();
    verb += " " + command->get_name();
  }
  const std::string see = fmt::format("see '{} --help'", verb);
  const auto all_verbs = command->get_subcommands([](const CLI::App* each) { return !each->get_name().empty(); });
  if (error.get_name() != "RequiredError" || all_verbs.empty()) return fmt::format("{}: {}; {}", verb, error.what(), see);
  std::vector<std::string> names;
  for (const CLI::App* each : all_verbs) names.push_back(each->get_name());
  const std::string list = fmt::format("{}", fmt::join(names, ", "));
  // The first word behind the verbs that were understood is what was meant as one.
  int at = 1;
  for (const CLI::App* level = &app; level != command; level = level->get_subcommands().front()) {
    while (at < argc && level->get_subcommands().front()->get_name() != argv[at]) ++at;
    ++at;
  }
  if (at < argc && argv[at][0] != '-') return fmt::format("'{}' is no verb of '{}'; there are: {}; {}", argv[at], verb, list, see);
  return fmt::format("'{}' wants a verb: {}; {}", verb, list, see);
}

}  // namespace muster::client
