#include "client/commands/chain/stage_keys.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>

#include "common/digest/sha256.h"
#include "common/spec/keys/names.h"
#include "common/spec/parse.h"

namespace muster::client {
namespace {

constexpr std::string_view kStageMark = "stage:";

// True for a path of the user's own: not "stage:S/x" or "job:J/x", and without templates.
bool plain_path(std::string_view path) {
  return path.starts_with('/') && path.find("${") == std::string_view::npos;
}

// Returns "path size time", or "path -" if the file is missing.
std::string file_line(const std::string& path, const std::string& shown) {
  struct stat about{};
  if (::stat(path.c_str(), &about) != 0) return fmt::format("{} -\n", shown);
  return fmt::format("{} {} {}.{:09}\n", shown, about.st_size, about.st_mtim.tv_sec,
                     about.st_mtim.tv_nsec);
}

class Fingerprint {
 public:
  explicit Fingerprint(std::size_t files_most) : left_(files_most) {}

  // Adds a path once. For a directory it adds all files below, in the order of their names.
  void add(const std::string& what, const std::string& path) {
    namespace fs = std::filesystem;
    if (!seen_.insert(path).second) return;
    text_ += fmt::format("{} ", what);
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      take_one();
      text_ += file_line(path, path);
      return;
    }
    text_ += path + "\n";
    std::vector<std::string> below;
    for (fs::recursive_directory_iterator
             at(path, fs::directory_options::skip_permission_denied, error),
         end;
         !error && at != end && !too_many_; at.increment(error)) {
      std::error_code ignored;
      if (at->is_directory(ignored) && !at->is_symlink(ignored)) continue;
      take_one();
      below.push_back(file_line(at->path().string(), at->path().string().substr(path.size())));
    }
    if (error) below.push_back(fmt::format("unread: {}\n", error.message()));
    std::ranges::sort(below);
    for (const std::string& line : below) text_ += line;
  }

  void add_line(const std::string& line) { text_ += line + "\n"; }

  [[nodiscard]] bool too_many() const { return too_many_; }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void take_one() {
    if (left_ == 0) too_many_ = true;
    left_ -= std::min<std::size_t>(left_, 1);
  }
  std::size_t left_;
  bool too_many_ = false;
  std::set<std::string> seen_;
  std::string text_;
};

void add_code(Fingerprint& files, const v1::JobSpec& spec) {
  const v1::LaunchSpec& launch = spec.launch();
  const auto at = [&](const std::string& path) {
    return (std::filesystem::path(spec.code().at()) / path).lexically_normal().string();
  };
  const auto add = [&](const char* what, const std::string& path) {
    if (!path.empty() && path.find("${") == std::string::npos) files.add(what, at(path));
  };
  add("launch.script", launch.script());
  add("launch.config", launch.config());
  for (const v1::ConfigPatch& patch : launch.patch()) add("launch.patch", patch.file());
  for (const v1::ConfigPatch& patch : spec.resume().patch()) add("resume.patch", patch.file());
  for (const std::string& word : launch.run()) {
    std::error_code error;
    const bool script = word.ends_with(".py") || word.ends_with(".sh") || word.ends_with(".bash");
    if (script && std::filesystem::is_regular_file(at(word), error)) add("launch.run", word);
  }
}

// Adds a plain path, or the id of the job that a "job:J" means now.
void add_source(Fingerprint& files, const std::string& what, const std::string& from,
                const JobIdOf& id_of) {
  if (plain_path(from)) files.add(what, from);
  if (const spec::Source source = spec::source_of(from); source.kind == "job")
    files.add_line(fmt::format("{} job {}", what, id_of(std::string(source.name))));
}

std::string spec_part(v1::JobSpec spec) {
  spec.clear_description();
  spec.clear_labels();
  spec.clear_schedule();
  spec.clear_recovery();
  if (spec.has_outputs()) spec.mutable_outputs()->clear_logs_to();
  if (spec.outputs().to().empty()) spec.clear_outputs();
  v1::StageSpec stage;
  stage.set_name(spec.stage().name());
  stage.set_creates(spec.stage().creates());
  *spec.mutable_stage() = std::move(stage);
  return spec::spec_bytes(spec);
}

}  // namespace

std::vector<std::string> stages_named(const v1::JobSpec& stage) {
  std::vector<std::string> names;
  for (const std::string& after : stage.schedule().after())
    if (after.starts_with(kStageMark)) names.push_back(after.substr(kStageMark.size()));
  return names;
}

std::vector<std::string> set_stage_keys(std::vector<v1::JobSpec>& stages, const JobIdOf& id_of,
                                        std::size_t files_most) {
  std::vector<std::string> notes;
  std::map<std::string, std::string> keys;  // by stage; empty: it cannot be computed
  for (v1::JobSpec& spec : stages) {
    Fingerprint files(files_most);
    for (const v1::InputSpec& input : spec.inputs())
      add_source(files, "inputs." + input.name(), input.from(), id_of);
    add_source(files, "start.from", spec.start().from(), id_of);
    add_code(files, spec);
    const std::string& name = spec.stage().name();
    std::string& key = keys[name];
    if (files.too_many()) {
      if (!spec.stage().creates().empty())
        notes.push_back(
            fmt::format("stage '{}' takes from more than {} files: whether they have changed is "
                        "not checked, and it runs",
                        name, files_most));
      continue;
    }
    std::vector<std::string> behind = stages_named(spec);
    std::ranges::sort(behind);
    std::string text =
        fmt::format("muster stage 1\nspec {}\n{}", sha256_hex(spec_part(spec)), files.text());
    bool known = true;
    for (const std::string& before : behind) {
      known = known && !keys[before].empty();
      text += fmt::format("behind {} {}\n", before, keys[before]);
    }
    if (!known) continue;
    key = sha256_hex(text);
    if (!spec.stage().creates().empty()) spec.mutable_stage()->set_key(key);
  }
  return notes;
}

std::vector<std::string> missing_paths(const v1::JobSpec& spec) {
  std::vector<std::string> missing;
  const auto check = [&](const std::string& key, const std::string& path) {
    std::error_code error;
    if (plain_path(path) && !std::filesystem::exists(path, error))
      missing.push_back(fmt::format("{}: '{}'", key, path));
  };
  for (const v1::InputSpec& input : spec.inputs()) check("inputs." + input.name(), input.from());
  check("start.from", spec.start().from());
  return missing;
}

}  // namespace muster::client
