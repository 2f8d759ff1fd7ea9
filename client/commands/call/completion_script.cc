#include "client/commands/call/completion_script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::client {
namespace {

struct Word {
  std::string text;
  std::string about;
};

// What may follow a place of the command line: behind a verb, or behind an option with a value. The
// place is " VERB VERB --option".
struct Place {
  std::vector<std::string> names;  // an option may have two
  std::vector<Word> words;         // verbs, or values of an option
  std::vector<Word> flags;
  std::string_view kind;  // file, dir, job, node; empty: nothing more than the words
};

struct Places {
  std::vector<Place> verbs;
  std::vector<Place> options;
};

// The first clause of a help text.
std::string clause(std::string_view text) {
  text = text.substr(0, std::min({text.find(';'), text.find(". "), text.find('\n')}));
  return std::string(text);
}

std::string_view kind_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::string name = option.get_positional() ? option.get_single_name() : "";
  if (type.starts_with("FILE") || type.starts_with("PATH") || name == "file") return "file";
  if (type.starts_with("DIR")) return "dir";
  if (name == "job" || name == "target") return "job";
  if (type.starts_with("NODE") || name == "node") return "node";
  return {};
}

// The parser's type name of an option with a list of values ends with "{one,two}"; "FORMAT" is
// add_output_option's, whose help text lists them.
std::vector<Word> values_of(const CLI::Option& option) {
  std::string list = option.get_type_name();
  if (list.starts_with("FORMAT")) {
    list = option.get_description();
  } else {
    const std::size_t begin = list.find('{');
    if (begin == std::string::npos) return {};
    list = list.substr(begin + 1, list.find('}') - begin - 1);
  }
  std::vector<Word> values;
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find_first_of(", ", at), list.size());
    const std::string word = list.substr(at, end - at);
    if (!word.empty() && word != "or") values.push_back({word, ""});
    at = end + 1;
  }
  return values;
}

std::vector<std::string> spellings(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  return names;
}

void collect(const CLI::App& command, const std::string& place, Places& into) {
  Place here{.names = {place}, .words = {}, .flags = {}, .kind = {}};
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group().empty()) continue;
    if (option->get_positional()) {
      if (here.kind.empty()) here.kind = kind_of(*option);
      if (here.words.empty()) here.words = values_of(*option);
      continue;
    }
    Place value{.names = {}, .words = values_of(*option), .flags = {}, .kind = kind_of(*option)};
    for (const std::string& name : spellings(*option)) {
      here.flags.push_back({name, clause(option->get_description())});
      value.names.push_back(fmt::format("{} {}", place, name));
    }
    if (option->get_items_expected_max() > 0) into.options.push_back(std::move(value));
  }
  const auto verbs = command.get_subcommands(
      [](const CLI::App* verb) { return !verb->get_name().empty() && !verb->get_group().empty(); });
  for (const CLI::App* verb : verbs)
    here.words.push_back({verb->get_name(), clause(verb->get_description())});
  into.verbs.push_back(std::move(here));
  for (const CLI::App* verb : verbs)
    collect(*verb, fmt::format("{} {}", place, verb->get_name()), into);
}

Places places_of(const CLI::App& app) {
  Places places;
  collect(app, "", places);
  return places;
}

std::string in_quotes(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string pattern(const std::vector<std::string>& names) {
  std::vector<std::string> words;
  words.reserve(names.size());
  for (const std::string& name : names) words.push_back(in_quotes(name));
  return fmt::format("{}", fmt::join(words, "|"));
}

// The two arms that follow the words before the cursor: `at` becomes the verb's place, `after` the
// place of an option whose value comes next.
std::string walk_arms(const Places& places) {
  std::vector<std::string> verbs, options;
  for (const Place& place : places.verbs)
    if (!place.names.front().empty()) verbs.push_back(place.names.front());
  for (const Place& place : places.options)
    options.insert(options.end(), place.names.begin(), place.names.end());
  return fmt::format("      {}) at=\"$at $word\" ;;\n      {}) after=\"$at $word\" ;;\n",
                     pattern(verbs), pattern(options));
}

template <class List>
std::string place_arms(const Places& places, List list) {
  std::string arms;
  for (const std::vector<Place>* each : {&places.verbs, &places.options}) {
    for (const Place& place : *each) {
      if (place.words.empty() && place.flags.empty() && place.kind.empty()) continue;
      arms += fmt::format("    {})", pattern(place.names));
      if (!place.words.empty()) arms += fmt::format(" list={}", list(place.words));
      if (!place.flags.empty()) arms += fmt::format(" flags={}", list(place.flags));
      if (!place.kind.empty()) arms += fmt::format(" kind={}", place.kind);
      arms += " ;;\n";
    }
  }
  return arms;
}

std::string bash_list(const std::vector<Word>& words) {
  std::vector<std::string> texts;
  texts.reserve(words.size());
  for (const Word& word : words) texts.push_back(word.text);
  return in_quotes(fmt::format("{}", fmt::join(texts, " ")));
}

// "name:what it does"; a colon of the name has a backslash.
std::string zsh_list(const std::vector<Word>& words) {
  std::vector<std::string> texts;
  texts.reserve(words.size());
  for (const Word& word : words) {
    std::string name;
    for (const char c : word.text) name += c == ':' ? std::string("\\:") : std::string(1, c);
    texts.push_back(in_quotes(word.about.empty() ? name : name + ":" + word.about));
  }
  return fmt::format("({})", fmt::join(texts, " "));
}

constexpr const char* kBashHead =
    R"sh(# Completion of muster for bash, as 'muster completion bash' prints it.
_muster() {
  local cur=${COMP_WORDS[COMP_CWORD]} at='' after='' list='' flags='' kind='' word i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [[ $word == -- ]]; then mapfile -t COMPREPLY < <(compgen -f -- "$cur"); compopt -o filenames; return; fi
    if [[ $word == = && -n $after ]]; then continue; fi
    if [[ -n $after ]]; then after=''; continue; fi
    case "$at $word" in
)sh";
constexpr const char* kBashMiddle = R"sh(    esac
  done
  if [[ $cur == = && -n $after ]]; then cur=''; fi
  case ${after:-$at} in
)sh";
// Names of jobs and nodes are compared as texts. compgen -W would expand them.
constexpr const char* kBashTail = R"sh(  esac
  if [[ -z $after && $cur == -* ]]; then list=$flags kind=''; fi
  case $kind in
    file) mapfile -t COMPREPLY < <(compgen -f -- "$cur"); compopt -o filenames ;;
    dir) mapfile -t COMPREPLY < <(compgen -d -- "$cur"); compopt -o filenames ;;
    job) list+=" @last $(timeout 2 "${COMP_WORDS[0]}" ps -o name 2>/dev/null)" ;;
    node) list+=" $(timeout 2 "${COMP_WORDS[0]}" node ls -o name 2>/dev/null)" ;;
  esac
  local -a choices=()
  read -r -d '' -a choices <<<"$list"
  for word in "${choices[@]}"; do
    if [[ $word == "$cur"* ]]; then COMPREPLY+=("$word"); fi
  done
}
complete -F _muster muster
)sh";

constexpr const char* kZshHead = R"sh(#compdef muster
# Completion of muster for zsh, as 'muster completion zsh' prints it.
_muster() {
  local at='' after='' kind='' word i
  local -a list flags
  for ((i = 2; i < CURRENT; i++)); do
    word=${words[i]}
    if [[ $word == -- ]]; then _files; return; fi
    if [[ -n $after ]]; then after=''; continue; fi
    case "$at $word" in
)sh";
constexpr const char* kZshMiddle = R"sh(    esac
  done
  if [[ -z $after && ${words[CURRENT]} == --*=* ]]; then
    after="$at ${words[CURRENT]%%=*}"
    compset -P '*='
  fi
  case ${after:-$at} in
)sh";
constexpr const char* kZshTail = R"sh(  esac
  if [[ -z $after && ${words[CURRENT]} == -* ]]; then _describe -o option flags; return; fi
  case $kind in
    file) _files ;;
    dir) _files -/ ;;
    job) list+=(@last ${(f)"$(timeout 2 ${words[1]} ps -o name 2>/dev/null)"}) ;;
    node) list+=(${(f)"$(timeout 2 ${words[1]} node ls -o name 2>/dev/null)"}) ;;
  esac
  if (( $#list )); then _describe value list; fi
}
if [[ ${funcstack[1]} == _muster ]]; then _muster "$@"; else compdef _muster muster; fi
)sh";

}  // namespace

std::string bash_completion(const CLI::App& app) {
  const Places places = places_of(app);
  return kBashHead + walk_arms(places) + kBashMiddle + place_arms(places, bash_list) + kBashTail;
}

std::string zsh_completion(const CLI::App& app) {
  const Places places = places_of(app);
  return kZshHead + walk_arms(places) + kZshMiddle + place_arms(places, zsh_list) + kZshTail;
}

}  // namespace muster::client
