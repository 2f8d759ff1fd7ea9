// What is at a URL of a store, by a run of rclone: whether the node reaches the store, and its key
// opens it. Plain functions; they block, at most kListTime. Any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/store/store_url.h"
#include "muster/v1/store_service.pb.h"

namespace muster::agent {

inline constexpr std::chrono::seconds kListTime{40};

struct StoreListing {
  std::uint64_t count = 0;         // objects and directories right below the URL
  bool more = false;               // there are more than `count`
  std::vector<std::string> names;  // the first ones; a directory's ends with "/"
};

// `key`: what the profile's secret has; empty: it names none. Errors: InvalidArgument when the key
// is none; Unreachable with what rclone says. When `cancel_fd` is readable, it ends at once.
Result<StoreListing> list_store(const v1::StoreProfile& profile, const store::Url& url,
                                const std::string& key, int cancel_fd = -1);

}  // namespace muster::agent
