#include "common/config/config_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <istream>
#include <memory>
#include <utility>

#include "common/base/controls.h"
#include "common/config/checks.h"
#include "common/io/file.h"
#include "common/spec/yaml_tree.h"
#include "common/text/words.h"

namespace muster::config {
namespace {

constexpr std::size_t kCommentColumns = 98;

std::string key_of(const CLI::Option& option) { return option.get_lnames().front(); }

bool is_key(const CLI::Option& option) {
  return option.get_configurable() && !option.get_lnames().empty();
}

std::vector<const CLI::Option*> keys_of(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return is_key(*option); });
}

bool takes_list(const CLI::Option& option) { return option.get_expected_max() > 1; }

bool is_set_by_variable(const CLI::Option& option) {
  const char* value =
      option.get_envname().empty() ? nullptr : std::getenv(option.get_envname().c_str());
  return value != nullptr && *value != '\0';
}

// Without what a check of the value adds: "UINT" of "UINT:UINT in [0 - 9]", but all of "HOST:PORT".
std::string type_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const bool has_check = type.find_first_of("{[ ") != std::string::npos;
  return has_check ? type.substr(0, type.find_first_of(": ")) : type;
}

// Returns the value's words, or the problem.
std::vector<std::string> words_of(const CLI::Option& option, const spec::Node& value,
                                  std::string& problem) {
  using Kind = spec::Node::Kind;
  if (value.kind == Kind::Scalar) return {value.text};
  if (value.kind == Kind::List && takes_list(option)) {
    std::vector<std::string> words;
    for (const spec::Node& item : value.items) {
      if (item.kind != Kind::Scalar) break;
      words.push_back(item.text);
    }
    if (!words.empty() && words.size() == value.items.size()) return words;
  }
  if (value.kind == Kind::Null)
    problem = "no value; comment the line out to leave the default";
  else
    problem = takes_list(option) ? "expected a value, or a list of values" : "expected one value";
  return {};
}

// Breaks a help text into lines of a comment.
std::string as_comment(std::string_view text) {
  std::string lines = "#";
  std::size_t column = 1;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" \n"), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (column + 1 + word.size() > kCommentColumns) {
      lines += "\n#";
      column = 1;
    }
    lines += ' ';
    lines += word;
    column += 1 + word.size();
  }
  return lines + "\n";
}

}  // namespace

// CLI::App opens the file, and adds what this returns to the options that have no value yet.
class ConfigFile::Reader final : public CLI::Config {
 public:
  explicit Reader(ConfigFile& owner) : owner_(owner) {}

  std::string to_config(const CLI::App*, bool, bool, std::string) const override {
    return owner_.sample();
  }
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    std::string text(kFileBytesMax + 1, '\0');
    input.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(input.gcount()));
    std::vector<CLI::ConfigItem> items = owner_.read(text);
    if (!owner_.problems_.empty()) throw CLI::FileError(owner_.problems_);
    return items;
  }

 private:
  ConfigFile& owner_;
};

ConfigFile::ConfigFile(CLI::App& app) : app_(app) {
  app.get_help_ptr()->configurable(false);
  if (CLI::Option* version = app.get_version_ptr(); version != nullptr)
    version->configurable(false);
  option_ = app.set_config("--config", "",
                           "A YAML file of options: 'log-level: debug'. The command line and the "
                           "variables win over it");
  option_->type_name("FILE")->check(path())->check(regular_file());
  app.config_formatter(std::make_shared<Reader>(*this));
  app.add_flag("--check-config", check_only_,
               "Check the options, those of --config FILE too, and end: 0 or 64")
      ->configurable(false);
  app.add_flag_callback(
         "--print-config", [] { throw CallForSample(); },
         "Print a file for --config with every option, and end")
      ->configurable(false);
}

std::vector<CLI::ConfigItem> ConfigFile::read(std::string_view text) {
  const std::string file = option_->as<std::string>();
  std::vector<CLI::ConfigItem> items;
  places_.clear();
  if (text.size() > kFileBytesMax) {
    problems_ = fmt::format("{}: more than {} bytes; is this the right file?", file, kFileBytesMax);
    return items;
  }
  spec::Tree tree = spec::read_tree(text, true);
  const auto problem = [&](const spec::Node& at, std::string message, std::string key = "") {
    tree.problems.push_back({.line = at.line,
                             .column = at.column,
                             .key = std::move(key),
                             .message = std::move(message)});
  };
  const spec::Node& root = tree.root;
  if (root.kind != spec::Node::Kind::Map && root.kind != spec::Node::Kind::Null && !root.bad)
    problem(root, "expected options, one a line: 'log-level: debug'");
  const std::vector<const CLI::Option*> known = keys_of(app_);
  std::vector<std::string> names;
  names.reserve(known.size());
  for (const CLI::Option* option : known) names.push_back(key_of(*option));
  const std::vector<std::string_view> views(names.begin(), names.end());
  for (std::size_t i = 0; i < root.keys.size(); ++i) {
    const spec::Node& key = root.keys[i];
    const spec::Node& value = root.items[i];
    const CLI::Option* option = std::as_const(app_).get_option_no_throw("--" + key.text);
    if (option == nullptr) {
      const std::string_view meant = nearest(key.text, views);
      problem(key,
              meant.empty() ? "unknown key; --print-config shows what there is"
                            : fmt::format("unknown key; did you mean '{}'?", meant),
              key.text);
      continue;
    }
    if (!is_key(*option)) {
      problem(key, "this is for the command line alone", key.text);
      continue;
    }
    if (value.bad) continue;
    std::string wrong;
    std::vector<std::string> words = words_of(*option, value, wrong);
    if (!wrong.empty()) {
      problem(value, std::move(wrong), key.text);
      continue;
    }
    if (option->count() > 0 || is_set_by_variable(*option)) continue;
    places_["--" + key.text] = fmt::format("{}:{}:{}: ", file, value.line, value.column);
    CLI::ConfigItem item;
    item.name = key.text;
    item.inputs = std::move(words);
    items.push_back(std::move(item));
  }
  std::ranges::stable_sort(
      tree.problems, {}, [](const spec::Problem& one) { return std::pair(one.line, one.column); });
  problems_ = spec::format(tree.problems, file);
  if (problems_.ends_with('\n')) problems_.pop_back();
  return items;
}

std::string ConfigFile::explain(const CLI::ParseError& error) const {
  const std::string what = error.what();
  // Without its checks, which would throw once more.
  const std::string file = option_->count() == 1 ? option_->results().front() : "";
  if (error.get_name() == "FileError") {
    if (!problems_.empty()) return problems_;
    const auto text = io::read_file(file, kFileBytesMax);
    return "--config: " + (text ? what : text.error().message);
  }
  if (error.get_name() == "RequiredError" && !file.empty())
    return fmt::format("{}: on the command line, or as a key of '{}'", what, file);
  for (const auto& [option, place] : places_) {
    const std::size_t at = what.find(option);
    if (at == std::string::npos) continue;
    const char after = at + option.size() < what.size() ? what[at + option.size()] : ' ';
    if (after != '-' && !(after >= 'a' && after <= 'z')) return place + without_controls(what);
  }
  return {};
}

std::string ConfigFile::place_of(const std::string& option) const {
  const auto found = places_.find(option);
  return found == places_.end() ? std::string() : found->second;
}

std::string ConfigFile::nothing_wrong() const {
  return option_->count() == 0 ? "the options: nothing wrong\n"
                               : fmt::format("{}: nothing wrong\n", option_->as<std::string>());
}

std::string ConfigFile::sample() const {
  std::string text =
      as_comment(fmt::format(
          "Options of {0}, for '{0} --config FILE'. Each key is the name of an option without its "
          "dashes. The command line and the MUSTER_ variables win over this file. A key that is "
          "commented out shows its default, or in capitals what its value is.",
          app_.get_name())) +
      as_comment(fmt::format("After a change:  {} --config FILE --check-config", app_.get_name()));
  for (const CLI::Option* option : keys_of(app_)) {
    const std::string value =
        option->get_default_str().empty() ? type_of(*option) : option->get_default_str();
    text += "\n" + as_comment(option->get_description());
    text += fmt::format("#{}: {}\n", key_of(*option),
                        takes_list(*option) ? fmt::format("[{}]", value) : value);
  }
  return text;
}

}  // namespace muster::config
