#include "client/commands/job/config_urls.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>

#include "common/compat/patch/document.h"
#include "common/compat/patch/patch.h"
#include "common/compat/patch/path.h"
#include "common/engine/model/engine.h"
#include "common/io/file.h"
#include "common/store/store_url.h"

namespace muster::client {
namespace {

struct ConfigUrl {
  std::string place;  // a.b.c, as launch.patch has it
  std::string key;    // c
  std::string url;
};

// Each shared map or list once: a file of some hundred bytes may stand for billions of places.
class Walk {
 public:
  explicit Walk(const patch::Document& document) : document_(document) { visit(document.root); }
  [[nodiscard]] std::vector<ConfigUrl> found() && { return std::move(found_); }

 private:
  void visit(patch::NodeId id) {
    const patch::Node& node = document_.at(id);
    using enum patch::Node::Kind;
    if ((node.kind == Map || node.kind == List) && !seen_.insert(id).second) return;
    if ((node.kind == Plain || node.kind == Quoted) && store::is_url(node.text) && !steps_.empty())
      found_.push_back({.place = patch::path_text(steps_, steps_.size()),
                        .key = steps_.back().name,
                        .url = node.text});
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      if (node.kind == Map)
        steps_.push_back({.name = document_.at(node.keys[i]).text, .value = {}});
      else
        steps_.push_back({.kind = patch::Step::Kind::Index, .name = {}, .value = {}, .index = i});
      visit(node.items[i].node);
      steps_.pop_back();
    }
  }

  const patch::Document& document_;
  std::vector<patch::Step> steps_;
  std::set<patch::NodeId> seen_;
  std::vector<ConfigUrl> found_;
};

bool is_read(const v1::JobSpec& spec, const std::string& key) {
  const engine::Engine* engine = engine::find_engine(spec.engine());
  return engine != nullptr &&
         std::ranges::find(engine->input_keys, key) != engine->input_keys.end();
}

bool is_output(const v1::JobSpec& spec, const std::string& place) {
  const engine::Engine* engine = engine::find_engine(spec.engine());
  return engine != nullptr && !engine->output_key.empty() && place == engine->output_key;
}

bool is_config(const v1::JobSpec& spec, const std::string& file) {
  namespace fs = std::filesystem;
  const fs::path code = spec.code().at();
  return (code / file).lexically_normal() == (code / spec.launch().config()).lexically_normal();
}

// Those of the file with the changes of launch.patch.
std::vector<ConfigUrl> config_urls(const v1::JobSpec& spec) {
  namespace fs = std::filesystem;
  const std::string& config = spec.launch().config();
  if (config.empty() || config.contains("${")) return {};
  const fs::path path = spec.code().at() / fs::path(config);
  std::error_code wrong;
  if (!fs::is_regular_file(path, wrong)) return {};
  auto text = io::read_regular_file(path, patch::kFileBytesMax);
  if (!text) return {};
  std::vector<patch::Change> changes;
  for (const v1::ConfigPatch& file : spec.launch().patch())
    for (const v1::ConfigChange& change : file.changes())
      if (is_config(spec, file.file()))
        changes.push_back({.at = change.at(), .value = change.value()});
  if (!changes.empty()) text = patch::changed_file(path.native(), *text, changes);
  if (!text) return {};  // `muster plan` and the nodes report what is wrong
  const auto format = path.extension() == ".json" ? patch::Format::Json : patch::Format::Yaml;
  const auto document = patch::read(format, *text);
  if (!document) return {};
  return Walk(*document).found();
}

// The name of an input of this URL, which is made if there is none.
std::string input_of(v1::JobSpec& spec, const ConfigUrl& one) {
  auto& inputs = *spec.mutable_inputs();
  for (const v1::InputSpec& input : inputs)
    if (input.from() == one.url && input.include().empty()) return input.name();
  std::string name = one.key;
  for (int count = 2; std::ranges::find(inputs, name, &v1::InputSpec::name) != inputs.end();
       ++count)
    name = fmt::format("{}_{}", one.key, count);
  v1::InputSpec& input = *inputs.Add();
  input.set_name(name);
  input.set_from(one.url);
  return name;
}

}  // namespace

namespace {

// Behind the user's own changes.
void change_config(v1::LaunchSpec& launch, const v1::JobSpec& spec, const std::string& place,
                   const std::string& value) {
  v1::ConfigPatch* file = nullptr;
  for (v1::ConfigPatch& known : *launch.mutable_patch())
    if (is_config(spec, known.file())) file = &known;
  if (file == nullptr) {
    file = launch.add_patch();
    file->set_file(launch.config());
  }
  v1::ConfigChange& change = *file->add_changes();
  change.set_at(place);
  change.set_value(value);
}

}  // namespace

void take_config_urls(v1::JobSpec& spec) {
  for (const ConfigUrl& one : config_urls(spec)) {
    if (!store::parse_url(one.url)) continue;
    v1::LaunchSpec& launch = *spec.mutable_launch();
    if (is_read(spec, one.key)) {
      change_config(launch, spec, one.place,
                    fmt::format("\"${{inputs.{}}}\"", input_of(spec, one)));
    } else if (is_output(spec, one.place) &&
               (spec.outputs().to().empty() || spec.outputs().to() == one.url)) {
      spec.mutable_outputs()->set_to(one.url);
      change_config(launch, spec, one.place, "null");
    }
  }
}

std::vector<std::string> config_url_notes(const v1::JobSpec& spec) {
  std::vector<std::string> notes;
  for (const ConfigUrl& one : config_urls(spec)) {
    const auto url = store::parse_url(one.url);
    const bool is_taken = is_read(spec, one.key) || is_output(spec, one.place);
    const std::string why =
        is_taken && !url ? ": " + url.error().message
        : is_output(spec, one.place)
            ? fmt::format(": muster copies outputs to '{}' alone (outputs.to)", spec.outputs().to())
            : ", in object storage: muster copies nothing from or to it";
    notes.push_back(fmt::format("launch.config '{}': {} is '{}'{}", spec.launch().config(),
                                one.place, one.url, why));
  }
  return notes;
}

}  // namespace muster::client
