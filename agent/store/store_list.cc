#include "agent/store/store_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "agent/store/rclone_run.h"

namespace muster::agent {
namespace {

constexpr std::size_t kNamesMost = 10, kOutputMost = 1 << 20;

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
      Patience::Short,
      {.each = kListTime,
       .total = kListTime,
       .parallel = 1,
       .bytes = kOutputMost,
       .cancel_fd = cancel_fd});
  StoreListing listing = parse_listing(answer.output);
  if (answer.why.empty() && !answer.absent) return listing;
  if (answer.output.size() >= kOutputMost && listing.count > 0) {
    listing.more = true;
    return listing;
  }
  // It prints nothing before it has the whole list.
  const bool is_late = !answer.absent && !answer.status && answer.output.empty();
  return fail(ErrorCode::Unreachable,
              why_failed(answer).text +
                  (is_late ? "; the end says nothing (a proxy or firewall?), or there are very "
                             "many entries: check a directory with few"
                           : ""));
}

}  // namespace muster::agent
