#include "agent/store/store_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "agent/store/rclone_run.h"
#include "common/io/memory_file.h"
#include "common/store/manifest.h"
#include "common/store/selection.h"

namespace muster::agent {
namespace {

constexpr std::size_t kNamesMost = 10, kOutputMost = 1 << 20;
constexpr std::size_t kMeasuredMost = 64 << 20;  // of a list: some 300,000 objects

process::ToolLimits limits_of(std::size_t bytes, int cancel_fd) {
  return {
      .each = kListTime, .total = kListTime, .parallel = 1, .bytes = bytes, .cancel_fd = cancel_fd};
}

Error why_no_list(const process::ToolAnswer& answer) {
  // It prints nothing before it has the whole list.
  const bool is_late = !answer.absent && !answer.status && answer.output.empty();
  return {ErrorCode::Unreachable,
          why_failed(answer).text +
              (is_late ? "; the server says nothing (a proxy or firewall?), or there are very "
                         "many entries: check a directory with few"
                       : "")};
}

}  // namespace

StoreListing parse_listing(std::string_view output) {
  StoreListing listing;
  for (std::size_t at = 0; at < output.size();) {
    const std::size_t end = std::min(output.find('\n', at), output.size());
    std::string_view line = output.substr(at, end - at);
    at = end + 1;
    if (line.ends_with(',')) line.remove_suffix(1);
    const auto json = nlohmann::json::parse(line, nullptr, false);
    const auto name = json.is_object() ? json.find("Path") : json.end();
    if (name == json.end() || !name->is_string()) continue;
    ++listing.count;
    if (listing.names.size() >= kNamesMost) continue;
    const auto is_dir = json.find("IsDir");
    listing.names.push_back(name->get<std::string>() +
                            (is_dir != json.end() && *is_dir == true ? "/" : ""));
  }
  return listing;
}

Result<StoreListing> list_store(process::ToolRunner& runner, const v1::StoreProfile& profile,
                                const store::Url& url, const std::string& key, int cancel_fd) {
  const auto rclone = RcloneRun::make(profile, url, key);
  if (!rclone) return fail(Error(rclone.error()));
  const process::ToolAnswer answer = rclone->run(
      runner, "lsjson", {"--max-depth", "1", "--no-modtime", "--no-mimetype", rclone->source()},
      Patience::Short, limits_of(kOutputMost, cancel_fd));
  StoreListing listing = parse_listing(answer.output);
  if (answer.why.empty() && !answer.absent) return listing;
  if (answer.output.size() >= kOutputMost && listing.count > 0) {
    listing.more = true;
    return listing;
  }
  return std::unexpected(why_no_list(answer));
}

Result<StoreSize> measure_store(process::ToolRunner& runner, const v1::StoreProfile& profile,
                                const store::Url& url, const std::string& key,
                                std::span<const std::string> include, int cancel_fd) {
  const auto wanted = store::Selection::make(include);
  if (!wanted) return fail(Error(wanted.error()).in("include"));
  const auto rclone = RcloneRun::make(profile, url, key);
  if (!rclone) return fail(Error(rclone.error()));
  const auto count = [&](std::vector<std::string> words) -> Result<StoreSize> {
    words.insert(words.begin(), {"--recursive", "--no-modtime", "--no-mimetype"});
    const process::ToolAnswer answer = rclone->run(
        runner, "lsjson", std::move(words), Patience::Short, limits_of(kMeasuredMost, cancel_fd));
    if (answer.output.size() >= kMeasuredMost)
      return fail(ErrorCode::ResourceExhausted,
                  fmt::format("there is more than can be counted here: a list of over {} MiB",
                              kMeasuredMost >> 20U));
    if (!answer.why.empty() || answer.absent) return std::unexpected(why_no_list(answer));
    const auto manifest = store::parse_listing(answer.output, &*wanted);
    if (!manifest) return fail(Error(manifest.error()));
    return StoreSize{.objects = manifest->objects.size(), .bytes = manifest->bytes()};
  };
  // Of one object rclone would list all that is beside it.
  if (!url.path.empty()) {
    const auto names = io::MemoryFile::make(url.path.substr(url.path.rfind('/') + 1) + "\n");
    if (!names) return fail(Error(names.error()));
    const auto one =
        count({"--no-traverse", "--files-from-raw", names->path(), rclone->source_above()});
    if (one && one->objects > 0) return one;
  }
  return count({"--fast-list", rclone->source()});
}

}  // namespace muster::agent
