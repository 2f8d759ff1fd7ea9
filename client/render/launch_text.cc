#include "client/render/launch_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "client/render/text.h"
#include "common/base/controls.h"
#include "common/proto/proto_time.h"

namespace muster::render {
namespace {

// the same text as in common/engine/command/node_script.cc
constexpr std::string_view kInsideSource = "launcher in the script";
// the same text as in common/engine/ascend/plog.h
constexpr std::string_view kRunDirectory = "(run directory)";

template <class Words>
std::string words_text(const Words& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + shell_quote(word);
  return out;
}

std::string environment_text(const google::protobuf::RepeatedPtrField<v1::EnvValue>& env,
                             const Style& style) {
  std::size_t width = 0;
  for (const auto& value : env)
    width = std::max(width, value.name().size() + shell_quote(value.value()).size() + 1);
  width = std::min<std::size_t>(width, 64);
  std::string out;
  for (const auto& value : env) {
    if (!value.secret().empty()) {  // pasted into a shell it would be another value
      out += style.paint(Tint::Dim,
                         fmt::format("# {} is secret '{}' ({})", printable(value.name()),
                                     printable(value.secret()), printable(value.source()))) +
             "\n";
      continue;
    }
    const bool not_yet_known = value.value().starts_with(kRunDirectory);
    out += fmt::format(
        "export {:<{}}  {}\n", printable(value.name()) + "=" + shell_quote(value.value()), width,
        style.paint(
            Tint::Dim,
            fmt::format(
                "# {}{}", printable(value.source()),
                not_yet_known ? "; the node reports its run directory when it has started" : "")));
  }
  return out;
}

// "launch.args[2]" is one word of launch.args, so the key is launch.args.
std::string_view key_of(std::string_view source) { return source.substr(0, source.find('[')); }

// Returns where the words of the command line come from, with one line for each run of words with
// one source. Returns nothing if all words have one source.
std::string sources_text(const v1::RankLaunch& launch, const Style& style) {
  std::string out;
  const int words = std::min(launch.argv_size(), launch.argv_sources_size());
  int lines = 0;
  for (int from = 0, to = 0; from < words; from = to) {
    const std::string_view key = key_of(launch.argv_sources(from));
    std::string line = fmt::format("# {}:", printable(key));
    for (to = from; to < words && key_of(launch.argv_sources(to)) == key; ++to)
      line += " " + shell_quote(launch.argv(to));
    out += style.paint(Tint::Dim, line) + "\n";
    ++lines;
  }
  return lines > 1 ? out : std::string();
}

// Quotes a word that has control characters besides tab and line end. POSIX.1-2024, bash, zsh and
// ksh read this form: $'a\033b'.
std::string dollar_quote(const std::string& word) {
  std::string out = "$'";
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t length = control_length(std::string_view(word).substr(at));
    for (std::size_t i = 0; i < length; ++i)
      out += fmt::format("\\{:03o}", static_cast<unsigned char>(word[at + i]));
    if (length == 0)
      out += word[at] == '\'' || word[at] == '\\' ? std::string{'\\', word[at]}
                                                  : std::string{word[at]};
    at += std::max<std::size_t>(1, length);
  }
  return out + "'";
}

}  // namespace

std::string shell_quote(const std::string& word) {
  const bool plain = !word.empty() && std::ranges::all_of(word, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./:=,+@%").find(c) != std::string_view::npos;
  });
  if (plain) return word;
  if (printable_lines(word) != word) return dollar_quote(word);
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::string command_text(const v1::RankLaunch& launch) { return words_text(launch.argv()); }

std::string launch_text(const v1::RankLaunch& launch, const Style& style) {
  const bool inside = std::ranges::any_of(
      launch.env(), [](const v1::EnvValue& value) { return value.source() == kInsideSource; });
  const std::string where =
      inside ? fmt::format(
                   "# rank {} of the training, inside of the script on {}; what the script exports "
                   "comes to it as well",
                   launch.rank(), printable(launch.node()))
             : fmt::format("# rank {} on {}", launch.rank(), printable(launch.node()));
  std::string out = style.paint(Tint::Dim, where) + "\n";
  if (!launch.training_node().empty())
    out += style.paint(Tint::Dim,
                       fmt::format("# rank {0} of the training is inside of the script on {1}: "
                                   "--training-rank {0} shows it",
                                   launch.rank(), printable(launch.training_node()))) +
           "\n";
  out += fmt::format("cd {}\n", shell_quote(launch.cwd()));
  out += environment_text(launch.env(), style);
  return out + sources_text(launch, style) + command_text(launch) + "\n";
}

std::string auxiliary_text(const v1::LaunchedAuxiliary& auxiliary, const Style& style) {
  std::string out = style.paint(Tint::Dim, fmt::format("# {} on {}, started before the ranks",
                                                       printable(auxiliary.name()),
                                                       printable(auxiliary.node()))) +
                    "\n";
  out += fmt::format("cd {}\n", shell_quote(auxiliary.cwd()));
  return out + environment_text(auxiliary.env(), style) + words_text(auxiliary.argv()) + "\n";
}

std::string file_text(const v1::LaunchedFile& file, Contents contents, const Style& style) {
  if (file.sha256().empty())  // a changed copy, which its node makes
    return style.paint(Tint::Dim, fmt::format("# {} on {}, copied to {} at the start",
                                              printable(file.source()), printable(file.node()),
                                              shell_quote(file.path()))) +
           "\n";
  std::string out =
      style.paint(Tint::Dim, fmt::format("# {} on {}: {}, mode {:04o}, {} bytes, sha256 {}",
                                         printable(file.source()), printable(file.node()),
                                         shell_quote(file.path()), file.mode(), file.size(),
                                         printable(file.sha256()))) +
      "\n";
  if (contents == Contents::No || file.content().empty()) return out;
  out += printable_lines(file.content());
  return out.ends_with('\n') ? out : out + "\n";
}

std::string setup_text(const v1::JobSpec& spec, const Style& style) {
  const v1::RuntimeSpec& runtime = spec.runtime();
  if (runtime.setup().empty()) return {};
  std::string out =
      style.paint(Tint::Dim, fmt::format("# runtime.setup, once on every node, within {}",
                                         duration_text(to_duration(runtime.setup_timeout())))) +
      "\n";
  out += fmt::format("cd {}{}\n", shell_quote(spec.code().at().empty() ? "/" : spec.code().at()),
                     spec.code().patches().empty() ? "" : "  # the node's copy of it");
  for (const std::string& command : runtime.setup())
    out += printable_lines(command) + (command.ends_with('\n') ? "" : "\n");
  return out;
}

std::string launch_document(const v1::GetRankLaunchResponse& answer, Format format) {
  nlohmann::ordered_json out = {{"apiVersion", "muster/v1"}, {"kind", "RankLaunch"}};
  nlohmann::ordered_json all = to_json(answer);
  out.update(all["launch"]);
  for (const char* key : {"attempt", "files", "auxiliaries"})
    if (all.contains(key)) out[key] = std::move(all[key]);
  if (format == Format::Yaml) return yaml_text(out);
  return json_text(out, format);
}

}  // namespace muster::render
