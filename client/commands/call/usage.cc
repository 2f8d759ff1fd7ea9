#include "client/commands/call/usage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>
#include <vector>

#include "client/render/wrap.h"
#include "common/text/words.h"

namespace muster::client {
namespace {

constexpr std::size_t kHelpColumns = 80;

// Where the text of a line of a help page begins, and where its further rows are to begin.
// `texts`: the column of what options and verbs do.
std::size_t text_column(std::string_view line, std::size_t texts) {
  const std::size_t blanks = line.find_first_not_of(' ');
  if (blanks == 2) return texts;
  if (blanks == std::string_view::npos) return 0;
  std::size_t column = blanks;
  for (const std::string_view label : {"exit codes:", "exit:", "example:", "variables:"})
    if (line.starts_with(label)) column = line.find_first_not_of(' ', label.size());
  // What is said of a command stands in a column of its own.
  constexpr std::string_view kGap = "   ";
  while (column < line.size() && line.find(kGap, column) < line.size())
    column = line.find_first_not_of(' ', line.find(kGap, column));
  return std::min(column, line.size());
}

// The help page prints an option's value type next to the option, and its default after its text.
// Its variable follows from its name, so only the main help explains the rule. No line is longer
// than kHelpColumns, also in a pipe: people read it with a pager.
class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    const std::string page = CLI::Formatter::make_help(app, std::move(name), mode);
    std::string out;
    for (std::size_t at = 0; at < page.size();) {
      const std::size_t end = std::min(page.find('\n', at), page.size());
      const std::string_view line = std::string_view(page).substr(at, end - at);
      out += render::wrap(line, text_column(line, get_column_width()), kHelpColumns) + "\n";
      at = end + 1;
    }
    return out;
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text;
    if (option->get_type_size() != 0 && !option->get_type_name().empty())
      text = " " + option->get_type_name().substr(0, option->get_type_name().find(':'));
    return option->get_positional() && option->get_expected_max() > 1 ? text + " ..." : text;
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    std::string text = option->get_description();
    if (!option->get_default_str().empty())
      text += fmt::format(" (default: {})", option->get_default_str());
    if (option->get_required() && !option->get_positional()) text += " (required)";
    return text;
  }
};

std::string variable_part(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) {
    return c == '-' ? '_' : static_cast<char>(std::toupper(c));
  });
  return text;
}

void name_variables_below(CLI::App& app, const std::string& prefix) {
  for (CLI::Option* option : app.get_options()) {
    const auto& names = option->get_lnames();
    if (names.empty() || !option->get_envname().empty() || option == app.get_help_ptr() ||
        option == app.get_version_ptr())
      continue;
    option->envname(prefix + variable_part(names.front()));
  }
  for (CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
    name_variables_below(*verb, prefix + variable_part(verb->get_name()) + "_");
}

std::vector<std::string_view> verbs_below(const CLI::App& level) {
  std::vector<std::string_view> names;
  for (const CLI::App* each :
       level.get_subcommands([](const CLI::App* one) { return !one->get_name().empty(); }))
    names.push_back(each->get_name());
  return names;
}

// True for an option whose value is the next word.
bool takes_next(const CLI::App& level, const std::string& word) {
  if (word.find('=') != std::string::npos) return false;
  const auto options =
      level.get_options([&](const CLI::Option* option) { return option->check_name(word); });
  return !options.empty() && options.front()->get_type_size() != 0;
}

// Words of other schedulers for verbs of muster.
constexpr auto kMeanings = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"list", "ps"},      {"list", "ls"},        {"ls", "ps"},           {"jobs", "ps"},
    {"queue", "ps"},     {"squeue", "ps"},      {"status", "show"},     {"describe", "show"},
    {"get", "show"},     {"info", "show"},      {"submit", "run"},      {"sbatch", "run"},
    {"start", "run"},    {"apply", "run"},      {"exec", "run"},        {"stop", "cancel"},
    {"kill", "cancel"},  {"scancel", "cancel"}, {"delete", "cancel"},   {"rm", "cancel"},
    {"log", "logs"},     {"tail", "logs"},      {"top", "watch"},       {"follow", "watch"},
    {"attach", "watch"}, {"restart", "resume"}, {"check", "validate"},  {"lint", "validate"},
    {"nodes", "node"},   {"hosts", "node"},     {"checkpoint", "ckpt"}, {"help", "--help"},
    {"signin", "login"}, {"auth", "login"},     {"whoami", "login"},    {"signout", "logout"},
});

// Returns an empty text if no verb is near.
std::string_view verb_meant(std::string_view word, const std::vector<std::string_view>& names) {
  for (const auto& [other, ours] : kMeanings)
    if (other == word && (ours.starts_with('-') || std::ranges::find(names, ours) != names.end()))
      return ours;
  return nearest(word, names);
}

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_formatter() { return std::make_shared<HelpFormatter>(); }

void name_variables(CLI::App& app) { name_variables_below(app, "MUSTER_"); }

std::string unknown_verb(const CLI::App& app, int argc, const char* const* argv) {
  const CLI::App* level = &app;
  std::string verb = "muster";
  for (int at = 1; at < argc; ++at) {
    const std::string word = argv[at];
    const std::vector<std::string_view> names = verbs_below(*level);
    if (word == "--" || names.empty()) return {};
    if (word.starts_with('-')) {
      at += takes_next(*level, word) ? 1 : 0;
      continue;
    }
    if (std::ranges::find(names, word) == names.end()) {
      const std::string_view meant = verb_meant(word, names);
      return fmt::format("'{}' is no verb of '{}'{}; there are: {}; see '{} --help'", word, verb,
                         meant.empty() ? "" : fmt::format("; did you mean '{} {}'?", verb, meant),
                         fmt::join(names, ", "), verb);
    }
    level = level->get_subcommand(word);
    verb += " " + word;
  }
  return {};
}

std::string usage_text(const CLI::App& app, const CLI::ParseError& error, int argc,
                       const char* const* argv) {
  if (std::string unknown = unknown_verb(app, argc, argv); !unknown.empty()) return unknown;
  const CLI::App* command = &app;
  std::string verb = "muster";
  for (auto chosen = command->get_subcommands(); !chosen.empty();
       chosen = command->get_subcommands()) {
    command = chosen.front();
    verb += " " + command->get_name();
  }
  const std::string see = fmt::format("see '{} --help'", verb);
  const std::vector<std::string_view> names = verbs_below(*command);
  if (error.get_name() != "RequiredError" || names.empty())
    return fmt::format("{}: {}; {}", verb, error.what(), see);
  return fmt::format("'{}' wants a verb: {}; {}", verb, fmt::join(names, ", "), see);
}

}  // namespace muster::client
