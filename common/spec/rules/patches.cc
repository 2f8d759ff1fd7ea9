// The rules of launch.patch and launch.vars, and of the keys of resume that change them: bounds,
// paths, names.
#include <fmt/format.h>

#include <set>
#include <string_view>
#include <vector>

#include "common/compat/patch/patch.h"
#include "common/compat/patch/path.h"
#include "common/compat/patch/shell_vars.h"
#include "common/spec/keys/names.h"
#include "common/spec/keys/values.h"
#include "common/spec/rules/checks.h"
#include "common/text/words.h"

namespace muster::spec {
namespace {

constexpr int kFilesMax = 64, kChangesMax = 1000, kDropMax = 1000;
constexpr std::size_t kVariablesMax = 1000, kFileNameMax = 4096, kNamesScanned = 1000;

using Patches = google::protobuf::RepeatedPtrField<v1::ConfigPatch>;

void check_changes(Draft& draft, const std::string& key, const v1::ConfigPatch& file) {
  if (file.changes_size() > kChangesMax)
    return draft.problem(key, fmt::format("'{}' has {} changes, at most {} a file",
                                          shown(file.file()), file.changes_size(), kChangesMax));
  for (int i = 0; i < file.changes_size(); ++i) {
    const v1::ConfigChange& change = file.changes(i);
    const std::string one = fmt::format("{}[{}]", key, i);
    if (auto path = patch::parse_path(change.at()); !path) draft.problem(one, path.error().message);
    if (change.value().size() > patch::kValueBytesMax) {
      draft.problem(one,
                    fmt::format("the value of '{}' has {} bytes, at most {}", shown(change.at()),
                                change.value().size(), patch::kValueBytesMax));
    } else if (auto value = patch::read_yaml(change.value()); !value) {
      draft.problem(
          one, fmt::format("the value of '{}': {}", shown(change.at()), value.error().message));
    }
  }
}

void check_files(Draft& draft, const std::string& key, const Patches& files) {
  if (files.size() > kFilesMax)
    return draft.problem(key, fmt::format("changes {} files, at most {}", files.size(), kFilesMax));
  std::set<std::string_view> seen;
  for (int i = 0; i < files.size(); ++i) {
    const std::string& file = files[i].file();
    const std::string one = fmt::format("{}[{}]", key, i);
    if (file.empty() || file.size() > kFileNameMax)
      draft.problem(one, "has no file's name (a path below the code directory unless absolute)");
    else if (climbs(file))
      draft.problem(one,
                    fmt::format("'{}' leaves the code directory by '..'; write where the file is",
                                shown(file)));
    else if (!patch::format_of(file))
      draft.problem(one,
                    fmt::format("'{}' is not changed: only .yaml, .yml and .json files are; what a "
                                "script assigns is for launch.vars",
                                shown(file)));
    else if (!seen.insert(file).second)
      draft.problem(one, fmt::format("'{}' is there twice", shown(file)));
    check_changes(draft, one, files[i]);
  }
}

void check_variables(Draft& draft, const std::string& key, const TextMap& variables) {
  if (variables.size() > kVariablesMax)
    return draft.problem(
        key, fmt::format("has {} variables, at most {}", variables.size(), kVariablesMax));
  for (const auto& [name, value] : variables) {
    const std::string one = fmt::format("{}.{}", key, shown(name));
    if (!is_variable_name(name))
      draft.problem(one, "is not a variable's name (letters, digits and _, not a digit first)");
    else if (value.size() > patch::kVariableBytesMax)
      draft.problem(
          one, fmt::format("has {} bytes, at most {}", value.size(), patch::kVariableBytesMax));
  }
}

void check_drop(Draft& draft) {
  const v1::JobSpec& spec = draft.spec;
  const auto& drop = spec.resume().drop();
  if (drop.size() > kDropMax)
    return draft.problem("resume.drop",
                         fmt::format("has {} flags, at most {}", drop.size(), kDropMax));
  std::set<std::string_view> flags;
  for (const auto* words : {&spec.launch().run(), &spec.launch().args()})
    for (const std::string& word : *words)
      if (word.starts_with('-')) flags.insert(std::string_view(word).substr(0, word.find('=')));
  std::vector<std::string_view> known;
  for (const std::string_view flag : flags)
    if (flag.size() <= 128 && known.size() < kNamesScanned) known.push_back(flag);
  for (int i = 0; i < drop.size(); ++i) {
    const std::string one = fmt::format("resume.drop[{}]", i);
    const std::string& flag = drop[i];
    if (flag.size() < 2 || !flag.starts_with('-') || flag.find('=') != std::string::npos) {
      draft.problem(one, fmt::format("'{}' is not a flag's name (--name)", shown(flag)));
    } else if (!flags.contains(flag)) {
      const std::string_view near = nearest(flag, known);
      draft.problem(
          one, fmt::format("'{}' is not among launch.args{}", shown(flag),
                           near.empty() ? "" : fmt::format("; did you mean '{}'?", shown(near))));
    }
  }
}

}  // namespace

void check_patches(Draft& draft) {
  const v1::JobSpec& spec = draft.spec;
  check_files(draft, "launch.patch", spec.launch().patch());
  check_files(draft, "resume.patch", spec.resume().patch());
  check_variables(draft, "launch.vars", spec.launch().vars());
  check_variables(draft, "resume.vars", spec.resume().vars());
  check_drop(draft);
}

}  // namespace muster::spec
