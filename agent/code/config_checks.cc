#include "agent/code/config_checks.h"

#include <fmt/format.h>

#include <filesystem>
#include <span>
#include <utility>
#include <vector>

#include "common/compat/patch/lookup.h"
#include "common/compat/patch/patch.h"
#include "common/engine/mindformers/config_checks.h"
#include "common/io/file.h"

namespace muster::agent {
namespace {

constexpr std::size_t kBasesDeep = 4;   // depth of files that name files
constexpr std::size_t kFilesMost = 16;  // read for one configuration

class Reader {
 public:
  // Returns the value at the path and the file that has it. An empty value: there is no plain
  // value, and the files before this one do not count.
  std::optional<std::pair<std::string, std::filesystem::path>> word(
      const std::filesystem::path& path, const std::vector<patch::Step>& place,
      std::size_t deep = 0) {
    if (deep > kBasesDeep || ++files_ > kFilesMost) return std::nullopt;
    const auto text = io::read_regular_file(path, patch::kFileBytesMax);
    if (!text) return std::nullopt;
    const auto document =
        patch::read(patch::format_of(path.native()).value_or(patch::Format::Yaml), *text);
    if (!document) return std::nullopt;
    if (const patch::Node* found = patch::value_at(*document, place)) {
      return std::pair{found->kind == patch::Node::Kind::Plain ? found->text : std::string(), path};
    }
    const std::vector<std::filesystem::path> bases = bases_of(*document, path.parent_path());
    for (auto base = bases.rbegin(); base != bases.rend(); ++base)
      if (auto found = word(*base, place, deep + 1)) return found;
    return patch::value_at(*document, std::span(place).first(1)) != nullptr
               ? std::optional(std::pair{std::string(), path})
               : std::nullopt;
  }

 private:
  static std::vector<std::filesystem::path> bases_of(const patch::Document& document,
                                                     const std::filesystem::path& dir) {
    std::vector<std::filesystem::path> paths;
    const std::vector<patch::Step> key = {
        {.kind = patch::Step::Kind::Key, .name = "base_config", .value = {}}};
    const patch::Node* named = patch::value_at(document, key);
    const auto add = [&](const patch::Node& one) {
      if ((one.kind == patch::Node::Kind::Plain || one.kind == patch::Node::Kind::Quoted) &&
          !one.text.empty())
        paths.push_back((dir / one.text).lexically_normal());
    };
    if (named == nullptr) return paths;
    if (named->kind != patch::Node::Kind::List) add(*named);
    if (named->kind == patch::Node::Kind::List)
      for (const patch::Ref& item : named->items) add(document.at(item.node));
    return paths;
  }

  std::size_t files_ = 0;
};

}  // namespace

std::optional<std::string> config_refusal(const v1::NeededFile& file) {
  for (const v1::RefusedValue& refused : file.refused()) {
    const auto place = patch::parse_path(refused.at());
    if (!place) continue;  // made by a later release
    const auto found = Reader().word(file.source(), *place);
    if (!found || !engine::says(found->first, refused.value())) continue;
    return fmt::format("{}: '{}': {} is {}: {}", file.key(),
                       patch::shown_path(found->second.native()), refused.at(), found->first,
                       refused.because());
  }
  return std::nullopt;
}

}  // namespace muster::agent
