#include "common/engine/patch_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>

#include "common/engine/mindformers/config_checks.h"
#include "common/engine/model/arguments.h"
#include "common/engine/model/observing.h"
#include "common/engine/model/template.h"
#include "common/engine/ranktable/words.h"
#include "common/text/options.h"

namespace muster::engine {
namespace {

using ranktable::shown;

constexpr std::size_t kTextBytesMax = 128 << 10;  // of a value after its templates are expanded

// "a/./b//c" is "a/b/c".
std::string plain_path(std::string_view path) {
  std::string out = path.starts_with('/') ? "/" : "";
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    at = end + 1;
    if (part.empty() || part == ".") continue;
    if (!out.empty() && out != "/") out += '/';
    out += part;
  }
  return out;
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }
bool has_template(std::string_view text) { return text.find('$') != std::string_view::npos; }

// A changed file, as the spec describes it.
struct Edit {
  std::string key;
  std::string name;    // name on a command line; with templates
  std::string source;  // with templates; empty: below the rank's working directory
  std::vector<std::pair<std::string, std::string>> items;
  std::vector<std::string> item_keys;
  std::map<std::string, std::pair<std::string, std::string>> vars;  // name -> value, key
  bool named = false;
};

void add_changes(std::vector<Edit>& edits, const v1::JobSpec& spec, const char* key,
                 const google::protobuf::RepeatedPtrField<v1::ConfigPatch>& files) {
  for (int i = 0; i < files.size(); ++i) {
    const v1::ConfigPatch& file = files[i];
    const std::string source = plain_path(below_code(spec, file.file()));
    auto edit = std::ranges::find(edits, source, &Edit::source);
    if (edit == edits.end())
      edit = edits.insert(
          edits.end(),
          Edit{.key = fmt::format("{}[{}]", key, i), .name = file.file(), .source = source});
    for (int j = 0; j < file.changes_size(); ++j) {
      edit->items.emplace_back(file.changes(j).at(), file.changes(j).value());
      edit->item_keys.push_back(fmt::format("{}[{}][{}]", key, i, j));
    }
  }
}

bool is_shell_script(std::string_view word) {
  return word.ends_with(".sh") || word.ends_with(".bash");
}

// "-c", "-lc": the next word is text for a shell.
bool gives_code(std::string_view word) {
  return word.size() > 1 && word.front() == '-' && word[1] != '-' && word.ends_with('c');
}

// The script whose assignments are changed: launch.script, or the first word of launch.run that is
// a shell script.
std::optional<std::string> script_word(const v1::JobSpec& spec) {
  if (spec.launch().run().empty())
    return spec.launch().script().ends_with(".py") ? std::nullopt
                                                   : std::optional(spec.launch().script());
  const auto& run = spec.launch().run();
  for (int i = 0; i < run.size(); ++i) {
    if (!is_shell_script(run[i])) continue;
    // the word is a text of commands, and only its last word is a script
    if (i > 0 && gives_code(run[i - 1]) && run[i].find_first_of(" \t\n;&|") != std::string::npos)
      continue;
    return run[i];
  }
  return std::nullopt;
}

void add_variables(std::vector<Edit>& edits, const v1::JobSpec& spec, bool resuming,
                   Problems& problems) {
  std::map<std::string, std::pair<std::string, std::string>> vars;
  for (const auto& [name, value] : spec.launch().vars())
    vars[name] = {value, fmt::format("launch.vars.{}", name)};
  if (resuming)
    for (const auto& [name, value] : spec.resume().vars())
      vars[name] = {value, fmt::format("resume.vars.{}", name)};
  if (vars.empty()) return;
  const char* key = spec.launch().vars().empty() ? "resume.vars" : "launch.vars";
  const auto script = script_word(spec);
  if (!script) {
    problems.push_back({.key = key,
                        .message = spec.launch().run().empty()
                                       ? fmt::format("is for shell scripts, and launch.script is "
                                                     "'{}'; change its arguments instead",
                                                     shown(spec.launch().script()))
                                       : "is for shell scripts, and no word of launch.run is one "
                                         "(*.sh; a string behind -c is not)"});
    return;
  }
  Edit edit{.key = key, .name = *script, .vars = std::move(vars)};
  if (spec.launch().run().empty() || script->starts_with('/'))
    edit.source = plain_path(below_code(spec, *script));
  edits.push_back(std::move(edit));
}

// A relative name is relative to the working directory of the ranks. This is the code directory
// unless launch.cwd is another one.
void add_profile(std::vector<Edit>& edits, const v1::JobSpec& spec) {
  const auto patch = profile_patch(spec);
  if (!patch) return;
  const bool known = spec.launch().cwd().empty() || patch->file().starts_with('/');
  const std::string source = known ? plain_path(below_code(spec, patch->file())) : "";
  auto edit = known ? std::ranges::find(edits, source, &Edit::source) : edits.end();
  if (edit == edits.end())
    edit = edits.insert(edits.end(),
                        Edit{.key = "observe.profile", .name = patch->file(), .source = source});
  for (const v1::ConfigChange& change : patch->changes()) {
    edit->items.emplace_back(change.at(), change.value());
    edit->item_keys.emplace_back("observe.profile");
  }
}

std::vector<Edit> edits_of(const v1::JobSpec& spec, bool resuming, Problems& problems) {
  std::vector<Edit> edits;
  add_changes(edits, spec, "launch.patch", spec.launch().patch());
  if (resuming) add_changes(edits, spec, "resume.patch", spec.resume().patch());
  add_profile(edits, spec);
  add_variables(edits, spec, resuming, problems);
  return edits;
}

// The values of the names in a file's texts.
class FileValues final : public TemplateValues {
 public:
  FileValues(const PatchPlanning& planning, const RankPlan& rank, bool yaml)
      : planning_(planning), rank_(rank), yaml_(yaml) {}

  [[nodiscard]] Result<std::string> value(std::string_view name) const override {
    if (name == "rank" || name == "local_rank" || name == "device_id" || name.starts_with("env:"))
      return fail(
          ErrorCode::InvalidArgument,
          fmt::format("'${{{}}}' has no value here: one copy is for all ranks of a node", name));
    auto found = planning_.value(rank_, name);
    // The value is put into existing YAML text, so it must fit at every position there.
    const auto breaks = [](char c) {
      return static_cast<unsigned char>(c) < 0x20 || c == 0x7F || c == '\'' || c == '"' ||
             c == '\\';
    };
    if (yaml_ && found &&
        (std::ranges::any_of(*found, breaks) || found->find(": ") != std::string::npos ||
         found->find(" #") != std::string::npos))
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("'${{{}}}' is '{}', which cannot be put into a value; choose a "
                              "directory without quotes",
                              name, shown(*found)));
    return found;
  }

 private:
  const PatchPlanning& planning_;
  const RankPlan& rank_;
  bool yaml_;
};

class PatchPlanner {
 public:
  explicit PatchPlanner(const PatchPlanning& planning)
      : planning_(planning),
        spec_(*planning.request.spec),
        edits_(edits_of(spec_, planning.request.resuming(), planning.problems)) {}

  void run() {
    if (!planning_.problems.empty()) return;
    std::set<std::size_t> nodes;
    for (const RankPlan& rank : planning_.plan.ranks)
      if (nodes.insert(rank.node).second) plan_node(rank);
    for (const Edit& edit : edits_) {
      if (edit.named || !planning_.problems.empty()) continue;
      planning_.problems.push_back(
          {.key = edit.key,
           .message = fmt::format("nothing on the command line names '{}', so no program would "
                                  "read the copy; name it in launch.args (or as launch.config, or "
                                  "as a value of launch.vars)",
                                  shown(edit.name))});
    }
  }

 private:
  std::string text(const std::string& key, std::string_view with_templates, const RankPlan& rank,
                   bool yaml = false) {
    if (!has_template(with_templates)) return std::string(with_templates);
    auto parsed = Template::parse(with_templates);
    auto out = parsed ? parsed->expand(FileValues(planning_, rank, yaml), kTextBytesMax)
                      : Result<std::string>(fail(parsed.error()));
    if (out) return std::move(*out);
    planning_.problems.push_back({.key = key, .message = std::move(out.error().message)});
    return {};
  }

  void plan_node(const RankPlan& first) {
    const std::string dir =
        fmt::format("{}/patched/node-{}",
                    work_dir(planning_.request.out_dir, planning_.request.attempt), first.node);
    std::unordered_map<std::string, std::size_t> names;  // on a command line -> the edit
    std::vector<PatchPlan> made;
    for (std::size_t i = 0; i < edits_.size(); ++i) {
      Edit& edit = edits_[i];
      PatchPlan one{.node = first.node,
                    .key = edit.key == "observe.profile" ? edit.key
                           : edit.vars.empty()           ? "launch.patch"
                                                         : "launch.vars"};
      const std::string name = text(edit.key, edit.name, first);
      one.source = edit.source.empty() ? plain_path(first.cwd + "/" + name)
                                       : plain_path(text(edit.key, edit.source, first));
      one.path = fmt::format("{}/{}/{}", dir, i, base_name(one.source));
      for (const std::string& known : {one.source, name, plain_path(name), "./" + plain_path(name),
                                       plain_path(spec_.code().at() + "/" + name)})
        names.try_emplace(known, i);
      for (std::size_t j = 0; j < edit.items.size(); ++j)
        one.items.emplace_back(edit.items[j].first,
                               text(edit.item_keys[j], edit.items[j].second, first, true));
      made.push_back(std::move(one));
    }
    for (std::size_t i = 0; i < edits_.size(); ++i)
      for (const auto& [name, value] : edits_[i].vars) {
        std::string filled = text(value.second, value.first, first);
        if (const auto found = names.find(filled); found != names.end() && found->second != i) {
          filled = made[found->second].path;
          edits_[found->second].named = true;
        }
        made[i].vars[name] = std::move(filled);
      }
    replace(first.node, names, made);
    std::ranges::move(made, std::back_inserter(planning_.plan.patched));
    needs_script(first);
    needs(first, "launch.config", spec_.launch().config());
    check_config(first);
  }

  void replace(std::size_t node, const std::unordered_map<std::string, std::size_t>& names,
               const std::vector<PatchPlan>& made) {
    if (made.empty()) return;
    const auto in_word = [&](std::string& word) -> const PatchPlan* {
      auto found = names.find(word);
      std::size_t from = 0;
      if (found == names.end() && word.find('=') != std::string::npos) {
        from = word.find('=') + 1;
        found = names.find(word.substr(from));
      }
      if (found == names.end()) return nullptr;
      edits_[found->second].named = true;
      word.replace(from, std::string::npos, made[found->second].path);
      return &made[found->second];
    };
    const auto in_process = [&](std::vector<std::string>& argv, std::map<std::string, Value>& env,
                                std::vector<std::string>* sources) {
      for (std::size_t i = 0; i < argv.size(); ++i)
        if (const PatchPlan* one = in_word(argv[i]);
            one != nullptr && sources != nullptr && i < sources->size())
          (*sources)[i] = one->key;
      for (auto& [name, value] : env) {
        const auto found = value.text.starts_with('/') ? names.find(value.text) : names.end();
        if (found == names.end()) continue;
        edits_[found->second].named = true;
        value = {.text = made[found->second].path, .source = made[found->second].key};
      }
    };
    for (RankPlan& rank : planning_.plan.ranks)
      if (rank.node == node) in_process(rank.argv, rank.env, &planning_.plan.argv_sources);
    for (AuxiliaryPlan& auxiliary : planning_.plan.auxiliaries)
      if (auxiliary.node == node) in_process(auxiliary.argv, auxiliary.env, nullptr);
  }

  // Adds a file that must exist although it is not changed: making a copy already requires the
  // source.
  void needs(const RankPlan& first, const char* key, std::string_view path) {
    if (path.empty() || has_template(path)) return;
    add_needed(first, key, plain_path(text(key, below_code(spec_, path), first)));
  }

  void add_needed(const RankPlan& first, const char* key, const std::string& source) {
    const auto is_known = [&](const auto& one) {
      return one.node == first.node && one.source == source;
    };
    if (!std::ranges::any_of(planning_.plan.patched, is_known) &&
        !std::ranges::any_of(planning_.plan.needed, is_known))
      planning_.plan.needed.push_back({.node = first.node, .source = source, .key = key});
  }

  // A script with templates may be a different file for each rank. The command line's own check
  // reports templates without a value.
  void needs_script(const RankPlan& first) {
    if (!spec_.launch().run().empty()) return;
    const std::string& script = spec_.launch().script();
    if (!has_template(script)) return needs(first, "launch.script", script);
    class OfARank final : public TemplateValues {
     public:
      OfARank(const PatchPlanning& planning, const RankPlan& rank)
          : planning_(planning), rank_(rank) {}
      [[nodiscard]] Result<std::string> value(std::string_view name) const override {
        return planning_.value(rank_, name);
      }

     private:
      const PatchPlanning& planning_;
      const RankPlan& rank_;
    };
    const auto parsed = Template::parse(below_code(spec_, script));
    for (const RankPlan& rank : planning_.plan.ranks) {
      if (!parsed || rank.node != first.node) continue;
      const auto path = parsed->expand(OfARank(planning_, rank), kTextBytesMax);
      if (path && path->starts_with('/')) add_needed(first, "launch.script", plain_path(*path));
    }
  }

  // Adds the values that the configuration must not have, unless a change sets them. Then a
  // configuration with a changed copy is needed, too: the file itself is checked.
  void check_config(const RankPlan& first) {
    const std::string& path = spec_.launch().config();
    if (path.empty() || has_template(path)) return;
    const std::string source = plain_path(text("launch.config", below_code(spec_, path), first));
    const auto edit = std::ranges::find(edits_, plain_path(below_code(spec_, path)), &Edit::source);
    for (RefusedValue& refused : refused_values(spec_)) {
      if (edit != edits_.end() && says_itself(*edit, refused)) continue;
      auto& files = planning_.plan.needed;
      auto file = std::ranges::find_if(files, [&](const NeedPlan& one) {
        return one.node == first.node && one.key == "launch.config";
      });
      if (file == files.end())
        file = files.insert(files.end(),
                            {.node = first.node, .source = source, .key = "launch.config"});
      file->refused.push_back(std::move(refused));
    }
  }

  // Whether a change sets the checked value or a value around it. A change that sets the refused
  // value is a problem.
  bool says_itself(const Edit& edit, const RefusedValue& refused) {
    bool changed = false;
    for (std::size_t i = edit.items.size(); i-- > 0 && !changed;) {
      const auto& [at, value] = edit.items[i];
      changed = refused.at == at || refused.at.starts_with(at + ".");
      if (refused.at == at && says(value, refused.value))
        planning_.problems.push_back({.key = edit.item_keys[i], .message = refused.because});
    }
    return changed;
  }

  const PatchPlanning& planning_;
  const v1::JobSpec& spec_;
  std::vector<Edit> edits_;
};

}  // namespace

void plan_patches(const PatchPlanning& planning) { PatchPlanner(planning).run(); }

void drop_words(CommandLine& command,
                const google::protobuf::RepeatedPtrField<std::string>& flags) {
  if (flags.empty()) return;
  const std::set<std::string_view> dropped(flags.begin(), flags.end());
  const auto is_others = [](const Word& word) {
    return !word.key.starts_with("launch.args") && !word.key.starts_with("launch.run");
  };
  const std::vector<std::string_view> texts = texts_of(command);
  std::vector<OptionSpan> found;
  for (std::size_t at = 0; at < command.size(); ++at) {
    const std::string_view name = option_name(texts[at]);
    if (is_others(command[at]) || !is_flag(texts[at]) || !dropped.contains(name)) continue;
    OptionSpan& one = found.emplace_back(*option_at(texts, at, name, ValueRule::SeveralWords));
    const auto place = [&](std::size_t i) {
      return command.begin() + static_cast<std::ptrdiff_t>(i);
    };
    one.end = static_cast<std::size_t>(std::find_if(place(at), place(one.end), is_others) -
                                       command.begin());
  }
  erase_options(command, found);
}

std::vector<FilePatch> file_patches(const v1::JobSpec& with_copies) {
  v1::JobSpec spec = with_copies;
  spec.mutable_code()->clear_patches();  // the files before there is a copy of the code
  Problems ignored;
  std::vector<FilePatch> result;
  for (Edit& edit : edits_of(spec, false, ignored)) {
    FilePatch one{
        .source = edit.source.empty() ? plain_path(below_code(spec, edit.name)) : edit.source,
        .items = std::move(edit.items)};
    for (auto& [name, value] : edit.vars) one.vars[name] = std::move(value.first);
    // A path without templates still has doubled dollars, which expanding undoes.
    if (auto parsed = Template::parse(one.source); parsed && parsed->names().empty()) {
      class None final : public TemplateValues {
       public:
        [[nodiscard]] Result<std::string> value(std::string_view) const override {
          return std::string();
        }
      };
      if (auto plain = parsed->expand(None(), kTextBytesMax)) one.source = std::move(*plain);
    }
    result.push_back(std::move(one));
  }
  return result;
}

bool patches_files(const v1::JobSpec& spec) {
  return profile_patch(spec) || !spec.launch().patch().empty() || !spec.launch().vars().empty() ||
         !spec.resume().patch().empty() || !spec.resume().vars().empty();
}

}  // namespace muster::engine
