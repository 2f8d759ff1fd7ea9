// The rules of outputs.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "common/spec/keys/values.h"
#include "common/spec/rules/checks.h"
#include "common/spec/rules/rules.h"
#include "common/store/selection.h"
#include "common/store/store_url.h"

namespace muster::spec {
namespace {

using std::chrono::seconds;
constexpr std::chrono::minutes kEvery{10};
constexpr std::uint32_t kKeepMost = 1000;

bool is_below(const std::string& path, const std::string& dir) {
  const auto normal = [](const std::string& text) {
    return std::filesystem::path(text + "/.").lexically_normal();
  };
  const std::string below = normal(path).lexically_relative(normal(dir)).native();
  return !below.empty() && below != "." && !below.starts_with("..");
}

void check_place(Draft& draft, const char* key, const std::string& place) {
  const auto url = store::parse_url(place);
  if (!url)
    draft.problem(key, fmt::format("'{}': {}", shown(place), url.error().message));
  else if (url->scheme == store::Scheme::Http || url->scheme == store::Scheme::Https)
    draft.problem(key, fmt::format("'{}': a web server takes no files; take a bucket, WebDAV, "
                                   "sftp or dir",
                                   shown(place)));
}

}  // namespace

void check_outputs(Draft& draft) {
  const std::string& dir = draft.spec.output_dir();
  if (!dir.empty() && !dir.starts_with('/'))
    draft.problem(
        "outputs.dir",
        fmt::format("'{}' is not absolute (an absolute directory; empty: chosen by the controller)",
                    shown(dir)));
  const v1::OutputSpec& outputs = draft.spec.outputs();
  if (outputs.to().empty() && !outputs.include().empty())
    draft.problem("outputs.include", "says what is uploaded, and outputs.to does not say where");
  if (outputs.to().empty() && outputs.keep() > 0)
    draft.problem("outputs.keep",
                  "says how many checkpoints stay in the store, and outputs.to names none");
  if (outputs.keep() > kKeepMost)
    draft.problem("outputs.keep", fmt::format("{} is out of range ({})", outputs.keep(),
                                              accepted_of("outputs.keep")));
  if (outputs.to().empty() && outputs.logs_to().empty()) {
    if (outputs.has_every() && outputs.every().seconds() != seconds(kEvery).count())
      draft.problem("outputs.every",
                    "says when to upload, and neither outputs.to nor outputs.logs_to says where");
    if (outputs.rate_limit() > 0)
      draft.problem("outputs.rate_limit",
                    "limits uploads, and neither outputs.to nor outputs.logs_to says where");
    if (draft.spec.has_outputs()) draft.spec.mutable_outputs()->clear_every();
    if (outputs.ByteSizeLong() == 0) draft.spec.clear_outputs();
    return;
  }
  if (!outputs.has_every())
    draft.spec.mutable_outputs()->mutable_every()->set_seconds(seconds(kEvery).count());
  check_duration(draft, "outputs.every", outputs.every(), seconds(1), std::chrono::hours(24));
  if (!outputs.logs_to().empty()) check_place(draft, "outputs.logs_to", outputs.logs_to());
  if (outputs.to().empty()) return;
  check_place(draft, "outputs.to", outputs.to());
  if (const std::string& saves = draft.spec.checkpoint().dir();
      saves.starts_with('/') && (dir.empty() || !is_below(saves, dir)))
    draft.problem("outputs.to",
                  fmt::format("copies what is below ${{out}}, and checkpoint.dir ('{}') is not; "
                              "write it below ${{out}}",
                              shown(saves)));
  if (const auto sound = store::Selection::check(
          std::vector<std::string>(outputs.include().begin(), outputs.include().end()));
      !sound)
    draft.problem("outputs.include", sound.error().message);
}

}  // namespace muster::spec
