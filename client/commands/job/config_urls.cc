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

// Each shared value once: a file of some hundred bytes may stand for billions of places.
class Walk {
 public:
  explicit Walk(const patch::Document& document) : document_(document) { visit(document.root); }
  [[nodiscard]] std::vector<ConfigUrl> found() && { return std::move(found_); }

 private:
  void visit(patch::NodeId id) {
    if (!seen_.insert(id).second) return;
    const patch::Node& node = document_.at(id);
    using enum patch::Node::Kind;
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

// Those that no change sets.
std::vector<ConfigUrl> config_urls(const v1::JobSpec& spec) {
  namespace fs = std::filesystem;
  const std::string& config = spec.launch().config();
  if (config.empty() || config.contains("${")) return {};
  const fs::path path =
      config.starts_with('/') ? fs::path(config) : spec.code().at() / fs::path(config);
  std::error_code wrong;
  if (!fs::is_regular_file(path, wrong)) return {};
  const auto text = io::read_regular_file(path, patch::kFileBytesMax);
  if (!text) return {};
  const auto format = path.extension() == ".json" ? patch::Format::Json : patch::Format::Yaml;
  const auto document = patch::read(format, *text);
  if (!document) return {};
  std::vector<ConfigUrl> urls = Walk(*document).found();
  for (const v1::ConfigPatch& file : spec.launch().patch()) {
    if (file.file() != config && file.file() != path.native()) continue;
    std::erase_if(urls, [&](const ConfigUrl& one) {
      return std::ranges::find(file.changes(), one.place, &v1::ConfigChange::at) !=
             file.changes().end();
    });
  }
  return urls;
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

void take_config_urls(v1::JobSpec& spec) {
  for (const ConfigUrl& one : config_urls(spec)) {
    if (!is_read(spec, one.key) || !store::parse_url(one.url)) continue;
    v1::LaunchSpec& launch = *spec.mutable_launch();
    auto file = std::ranges::find(*launch.mutable_patch(), launch.config(), &v1::ConfigPatch::file);
    if (file == launch.mutable_patch()->end()) {
      launch.add_patch()->set_file(launch.config());
      file = launch.mutable_patch()->end() - 1;
    }
    v1::ConfigChange& change = *file->add_changes();
    change.set_at(one.place);
    change.set_value(fmt::format("\"${{inputs.{}}}\"", input_of(spec, one)));
  }
}

std::vector<std::string> config_url_notes(const v1::JobSpec& spec) {
  std::vector<std::string> notes;
  for (const ConfigUrl& one : config_urls(spec)) {
    const auto url = store::parse_url(one.url);
    const std::string why = is_read(spec, one.key) && !url
                                ? ": " + url.error().message
                                : ", in object storage: muster copies nothing from or to it";
    notes.push_back(fmt::format("launch.config '{}': {} is '{}'{}", spec.launch().config(),
                                one.place, one.url, why));
  }
  return notes;
}

}  // namespace muster::client
