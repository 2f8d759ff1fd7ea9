#include "common/engine/model/code_place.h"

#include <fmt/format.h>

#include "common/digest/sha256.h"

namespace muster::engine {
namespace {

std::string_view without_slashes(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  return path;
}

}  // namespace

std::string code_name(const v1::JobSpec& spec) {
  const std::string_view at = without_slashes(spec.code().at());
  const std::string_view name = at.substr(at.rfind('/') + 1);
  return std::string(name.empty() || name == "." || name == ".." ? "code" : name);
}

std::string code_template(const v1::JobSpec& spec) {
  if (spec.code().patches().empty())
    return literal(spec.code().at().empty() ? "/" : spec.code().at());
  return fmt::format("${{out}}/code/node-${{node.rank}}/{}", literal(code_name(spec)));
}

// An absolute path below the code becomes a path below the copy. Otherwise a launch could run the
// original of a file that a patch has changed.
std::string below_code(const v1::JobSpec& spec, std::string_view path) {
  if (path.starts_with("${")) return std::string(path);
  const std::string root = code_template(spec);
  if (path.starts_with('/')) {
    const std::string code = literal(without_slashes(spec.code().at()));
    const bool inside = !spec.code().patches().empty() && !code.empty() && path.starts_with(code) &&
                        path.substr(code.size()).starts_with('/');
    return inside ? fmt::format("{}{}", root, path.substr(code.size())) : std::string(path);
  }
  return root.ends_with('/') ? fmt::format("{}{}", root, path) : fmt::format("{}/{}", root, path);
}

void add_code_copy(v1::NodeLaunch& launch, const LaunchRequest& request, std::size_t node) {
  const v1::CodeSpec& code = request.spec->code();
  if (code.patches().empty()) return;
  v1::CodeCopy& copy = *launch.mutable_code();
  copy.set_source(code.at());
  copy.set_path(code_dir(*request.spec, request.out_dir, node));
  launch.add_make_dirs(fmt::format("{}/code", request.out_dir));
  std::string all;
  for (const v1::CodePatch& patch : code.patches()) {
    v1::CodeCopyPatch& one = *copy.add_patches();
    one.set_name(patch.name());
    one.set_content(patch.content());
    all += fmt::format("{}:{} {}:", patch.name().size(), patch.name(), patch.content().size());
    all += patch.content();
  }
  copy.set_sha256(sha256_hex(all));
}

}  // namespace muster::engine
