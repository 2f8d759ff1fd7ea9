// Reads runtime.image and runtime.mounts. complete_container.h defines which values are valid.
#include <fmt/format.h>

#include "common/spec/read_spec.h"
#include "common/spec/values.h"

namespace muster::spec {

void SpecReader::image(const Node& node, const KeyRow& row) {
  if (node.kind == Node::Kind::Null) return;
  const std::string* value = text(node, row);
  if (value == nullptr) return;
  if (value->empty())
    return problem(node, std::string(row.key), fmt::format("is empty ({})", row.accepted));
  spec_.mutable_runtime()->set_image(*value);
}

void SpecReader::mounts(const Node& node, const KeyRow& row) {
  if (node.kind == Node::Kind::Null) return;
  if (node.kind != Node::Kind::List)
    return problem(node, std::string(row.key), fmt::format("must be a list ({})", row.accepted));
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    const Node& item = node.items[i];
    places_[fmt::format("runtime.mounts[{}]", spec_.runtime().mounts_size())] = {item.line,
                                                                                 item.column};
    if (!item.bad) mount(item, fmt::format("runtime.mounts[{}]", i));
  }
}

// Reads "SRC[:DST][:ro]" or {source: , target: , read_only: }. Without a target the path is the
// same as on the node.
void SpecReader::mount(const Node& node, const std::string& key) {
  constexpr const char* kForms = "SRC[:DST][:ro] | {source: , target: , read_only: }";
  v1::MountSpec mount;
  if (node.kind == Node::Kind::Scalar) {
    std::vector<std::string> parts = {""};
    for (const char c : node.text) {
      if (c == ':')
        parts.emplace_back();
      else
        parts.back() += c;
    }
    if (parts.size() > 1 && (parts.back() == "ro" || parts.back() == "rw")) {
      mount.set_read_only(parts.back() == "ro");
      parts.pop_back();
    }
    if (parts.size() > 2)
      return item_problem(node, key,
                          fmt::format("'{}' is not accepted ({})", shown(node.text), kForms));
    mount.set_source(parts.front());
    mount.set_target(parts.back());
  } else if (node.kind == Node::Kind::Map) {
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      const std::string& name = node.keys[i].text;
      const Node& value = node.items[i];
      if (value.bad) continue;
      const bool flag = name == "read_only";
      if (!flag && name != "source" && name != "target")
        return item_problem(
            node.keys[i], key,
            fmt::format("unknown key '{}' (source, target, read_only)", shown(name)));
      if (value.kind != Node::Kind::Scalar ||
          (flag && value.text != "true" && value.text != "false"))
        return item_problem(
            value, key, fmt::format("{} must be {}", name, flag ? "true or false" : "one path"));
      if (flag)
        mount.set_read_only(value.text == "true");
      else if (name == "source")
        mount.set_source(value.text);
      else
        mount.set_target(value.text);
    }
    if (mount.source().empty())
      return item_problem(node, key, fmt::format("has no source ({})", kForms));
    if (mount.target().empty()) mount.set_target(mount.source());
  } else {
    return item_problem(node, key, fmt::format("is no mount ({})", kForms));
  }
  *spec_.mutable_runtime()->add_mounts() = std::move(mount);
}

}  // namespace muster::spec
