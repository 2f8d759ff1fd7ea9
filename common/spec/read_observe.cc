// Reads observe.profile and observe.dump of a YAML spec. A profile names steps and ranks. A dump is
// a file whose bytes travel with the spec.
#include <fmt/format.h>

#include <filesystem>
#include <limits>

#include "common/engine/model/observing.h"
#include "common/spec/read_spec.h"
#include "common/spec/values.h"

namespace muster::spec {

void SpecReader::profile(const Node& node, const KeyRow& row) {
  if (node.kind == Node::Kind::Map) {
    spec_.mutable_observe()->mutable_profile();
    if (node.keys.empty())
      return problem(node, std::string(row.key), fmt::format("is an empty map ({})", row.accepted));
    return section(node, std::string(row.key));
  }
  if (node.kind == Node::Kind::Null) return;
  const std::string* value = text(node, row);
  if (value == nullptr) return;
  if (*value == "true" || *value == "yes")
    spec_.mutable_observe()->mutable_profile();
  else if (*value != "false" && *value != "no")
    not_accepted(node, row, *value);
}

void SpecReader::profile_step(const Node& node, const KeyRow& row) {
  if (node.kind == Node::Kind::Null) return;
  const std::string* value = text(node, row);
  if (value == nullptr) return;
  auto number = parse_number(*value, 1, std::numeric_limits<std::uint32_t>::max());
  if (!number) return problem(node, std::string(row.key), number.error().message);
  v1::ProfileSpec& profile = *spec_.mutable_observe()->mutable_profile();
  if (row.key == "observe.profile.start")
    profile.set_start(static_cast<std::uint32_t>(*number));
  else
    profile.set_stop(static_cast<std::uint32_t>(*number));
}

void SpecReader::profile_ranks(const Node& node, const KeyRow& row) {
  if (node.kind == Node::Kind::Null) return;
  const std::string key(row.key);
  if (node.kind != Node::Kind::List || node.items.empty())
    return problem(node, key, fmt::format("must be a list of ranks ({})", row.accepted));
  v1::ProfileSpec& profile = *spec_.mutable_observe()->mutable_profile();
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    const Node& item = node.items[i];
    places_[fmt::format("{}[{}]", key, profile.ranks_size())] = {item.line, item.column};
    if (item.bad) continue;
    const std::string item_key = fmt::format("{}[{}]", key, i);
    if (item.kind != Node::Kind::Scalar)
      item_problem(item, item_key, "must be the number of a rank");
    else if (auto number = parse_number(item.text, 0, std::numeric_limits<std::uint32_t>::max()))
      profile.add_ranks(static_cast<std::uint32_t>(*number));
    else
      item_problem(item, item_key, number.error().message);
  }
}

void SpecReader::dump(const Node& node, const KeyRow& row) {
  if (node.kind == Node::Kind::Null) return;
  const std::string* value = text(node, row);
  if (value == nullptr) return;
  const std::string key(row.key);
  if (value->empty()) return problem(node, key, fmt::format("is empty ({})", row.accepted));
  if (!options_.read_file)
    return problem(node, key, fmt::format("'{}': no file can be read here", shown(*value)));
  const std::string path =
      (std::filesystem::path(options_.base_dir) / *value).lexically_normal().string();
  auto content = options_.read_file(path, engine::kDumpBytesMax);
  if (!content)
    return problem(node, key, fmt::format("'{}': {}", shown(*value), content.error().message));
  v1::DumpSpec& dump = *spec_.mutable_observe()->mutable_dump();
  dump.set_name(*value);
  dump.set_config(*std::move(content));
}

}  // namespace muster::spec
