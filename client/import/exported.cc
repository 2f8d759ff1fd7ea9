#include "client/import/exported.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "common/base/controls.h"
#include "common/base/utf8.h"
#include "common/compat/launcher/computed.h"
#include "common/compat/launcher/draft.h"
#include "common/compat/shell/mentions.h"
#include "common/compat/shell/shell_words.h"
#include "common/engine/model/engine.h"
#include "common/text/shell_lexer.h"

namespace muster::import {
namespace {

constexpr std::size_t kNameMost = 256, kValueMost = 32U << 10U;

std::string upper(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return out;
}

// Variables of a shell, of a login, of muster, and of the script's runner.
bool of_the_shell(std::string_view name) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"_",        "PWD",     "OLDPWD", "SHLVL",  "SHELL",   "SHELLOPTS", "BASHOPTS", "BASH_ENV",
       "ENV",      "IFS",     "HOME",   "USER",   "LOGNAME", "TERM",      "COLUMNS",  "LINES",
       "HOSTNAME", "DISPLAY", "EDITOR", "TMPDIR", "RANDOM",  "SECONDS",   "LINENO",   "UID",
       "EUID",     "PPID",    "LANG",   "MAIL",   "OPTARG",  "OPTIND"});
  constexpr auto kFronts =
      std::to_array<std::string_view>({"BASH_", "MUSTER_", "LC_", "XDG_", "SSH_", "DBUS_"});
  return std::ranges::find(kNames, name) != kNames.end() ||
         std::ranges::any_of(kFronts,
                             [name](std::string_view front) { return name.starts_with(front); });
}

// Variables of one host or one launch, which muster sets. HCCL_IF_IP is this machine's address.
bool is_placed(std::string_view name, std::string_view engine_name) {
  constexpr auto kHost = std::to_array<std::string_view>(
      {"CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES", "HCCL_IF_IP", "MS_WORKER_IP",
       "ASCEND_DEVICE_ID", "RANK_TABLE"});
  const engine::Engine* engine = engine::find_engine(engine_name);
  const bool engines =
      engine != nullptr && (engine::is_identity(*engine, name) ||
                            std::ranges::find(engine->cloud, name) != engine->cloud.end());
  return engines || launcher::is_placement_variable(name) ||
         std::ranges::find(kHost, name) != kHost.end();
}

bool is_usable(std::string_view name, std::string_view value) {
  return name.size() <= kNameMost && shell_name_length(name) == name.size() &&
         value.size() <= kValueMost && is_utf8(value) && without_controls(value, "\n\t") == value;
}

void sort_in(Exported& out, const std::string& name, const std::string& value,
             std::string_view engine) {
  if (is_placed(name, engine))
    out.placed.push_back(name);
  else if (seems_secret(name, value))
    out.secret.push_back(name);
  else if (!is_usable(name, value))
    out.unusable.push_back(without_controls(is_utf8(name) ? name : "?"));
  else
    out.kept[name] = launcher::literal(value);
}

// Returns "a:b" without one of its parts.
std::string without_part(std::string_view list, std::string_view part) {
  std::string out;
  bool begun = false;
  for (bool more = true; more;) {
    const std::size_t end = std::min(list.find(':'), list.size());
    if (list.substr(0, end) != part) {
      if (std::exchange(begun, true)) out += ':';
      out += list.substr(0, end);
    }
    more = end < list.size();
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return out;
}

}  // namespace

bool seems_secret(std::string_view name, std::string_view value) {
  // OBS_AK and OBS_SK are an access key and a secret key.
  constexpr auto kWords = std::to_array<std::string_view>(
      {"TOKEN", "TOKENS", "PASSWORD", "PASSWD", "PASSPHRASE", "PASS", "PWD", "SECRET", "SECRETS",
       "KEY", "KEYS", "APIKEY", "CREDENTIAL", "CREDENTIALS", "AUTH", "COOKIE", "AK",  // tidy: allow
       "SK"});
  constexpr auto kEnds = std::to_array<std::string_view>(
      {"TOKEN", "PASSWORD", "PASSWD", "SECRET", "APIKEY", "ACCESSKEY", "SECRETKEY"});
  const std::string whole = upper(name);
  for (std::string_view rest = whole; !rest.empty();) {
    const std::size_t end = std::min(rest.find('_'), rest.size());
    if (std::ranges::find(kWords, rest.substr(0, end)) != kWords.end()) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (std::ranges::any_of(kEnds, [&](std::string_view ending) { return whole.ends_with(ending); }))
    return true;
  // For example https://user:password@host.
  for (std::size_t at = value.find("://"); at != std::string_view::npos;
       at = value.find("://", at + 3)) {
    const std::string_view host =
        value.substr(at + 3, value.substr(at + 3).find_first_of("/ \t\n"));
    const std::size_t sign = host.find('@');
    if (sign != std::string_view::npos && host.substr(0, sign).find(':') != std::string_view::npos)
      return true;
  }
  return false;
}

Exported exported(const Variables& before, const Variables& after, std::string_view engine,
                  std::string_view programs) {
  Exported out;
  for (const auto& [name, value] : after) {
    const bool has_programs = !programs.empty() && value.find(programs) != std::string::npos;
    const std::string own = has_programs ? without_part(value, programs) : value;
    const auto old = before.find(name);
    if (of_the_shell(name) || (old != before.end() && old->second == own)) continue;
    if (has_programs && own.find(programs) != std::string::npos)  // $(which python3): soon gone
      out.unusable.push_back(without_controls(is_utf8(name) ? name : "?"));
    else
      sort_in(out, name, own, engine);
  }
  return out;
}

Exported read_from_outside(std::string_view script, const Variables& before,
                           std::string_view engine) {
  std::set<std::string_view> set, read;
  for (const launcher::ShellCommand& command : launcher::shell_commands(script)) {
    for (const launcher::ShellWord& word : command) {
      const ShellAssignment assignment = shell_assignment(word.text);
      for (const launcher::Mention& mention : launcher::mentions_of(word.text))
        if (mention.fallback || !set.contains(mention.name)) read.insert(mention.name);
      if (!assignment.name.empty()) set.insert(assignment.name);
    }
    // For `for x in ...` and `read x`.
    if (command.size() > 1 && (command.front().text == "for" || command.front().text == "read"))
      for (std::size_t i = 1; i < command.size(); ++i) set.insert(command[i].text);
  }
  Exported out;
  for (const std::string_view name : read)
    if (const auto found = before.find(name);
        found != before.end() && name != "PATH" && name != "PYTHON_EXEC" && !of_the_shell(name))
      sort_in(out, found->first, found->second, engine);
  return out;
}

}  // namespace muster::import
