// What is at a URL of a store, by a run of rclone: whether the node reaches the store, and its key
// opens it. Plain functions; they block, at most kListTime. Any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/process/tool.h"
#include "common/store/store_url.h"
#include "muster/v1/store_service.pb.h"

namespace muster::agent {

inline constexpr std::chrono::seconds kListTime{40};

struct StoreListing {
  std::uint64_t count = 0;         // objects and directories right below the URL
  bool more = false;               // there are more than `count`
  std::vector<std::string> names;  // the first ones; a directory's ends with "/"
};

// `key`: what the profile's secret has; empty: it names none. Errors without a context:
// InvalidArgument when the key is none; Unreachable with what rclone says. When `cancel_fd` is
// readable, it ends at once.
Result<StoreListing> list_store(process::ToolRunner& runner, const v1::StoreProfile& profile,
                                const store::Url& url, const std::string& key, int cancel_fd = -1);
struct StoreSize {
  std::uint64_t objects = 0, bytes = 0;
};
// Of all that is below the URL, or of what `include` wants (common/store/selection.h). Errors: as
// of list_store(); of store::parse_listing(); ResourceExhausted: there is too much to count.
Result<StoreSize> measure_store(process::ToolRunner& runner, const v1::StoreProfile& profile,
                                const store::Url& url, const std::string& key,
                                std::span<const std::string> include, int cancel_fd = -1);
// From what `rclone lsjson` prints: the entries, each a line of JSON, between lines of its log,
// which have words of the end's own. Pure.
StoreListing parse_listing(std::string_view output);

}  // namespace muster::agent
