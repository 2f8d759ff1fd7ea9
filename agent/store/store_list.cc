#include "agent/store/store_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "agent/store/memory_file.h"
#include "common/base/controls.h"
#include "common/process/tool.h"
#include "common/store/obscure.h"
#include "common/store/rclone.h"

namespace muster::agent {
namespace {

constexpr const char* kProgram = "rclone";
constexpr std::size_t kNamesMost = 10, kOutputMost = 1 << 20, kSentenceMost = 600;

// None of the agent's own: rclone takes options and keys from variables, and refuses to start with
// some (AWS_CA_BUNDLE).
std::vector<std::string> environment(const std::string& proxy) {
  std::vector<std::string> env = {"HOME=/nonexistent", "LC_ALL=C"};
  for (const std::string& one : process::tool_environment())
    if (one.starts_with("PATH=")) env.push_back(one);
  if (proxy.empty()) return env;
  for (const char* name : {"HTTP_PROXY", "HTTPS_PROXY"})
    env.push_back(std::string(name) + "=" + proxy);
  return env;
}

process::ToolAnswer run(std::vector<std::string> args, const std::string& proxy, int cancel_fd) {
  process::ToolRunner runner;
  return runner
      .run({{.program = kProgram, .args = std::move(args)}}, environment(proxy),
           {.each = kListTime,
            .total = kListTime,
            .parallel = 1,
            .bytes = kOutputMost,
            .cancel_fd = cancel_fd})
      .front();
}

// rclone writes its log and the entries, each a line of JSON, to the same place.
struct Output {
  StoreListing listing;
  std::string wrong;  // the last error
};

Output parsed(std::string_view output) {
  Output read;
  for (std::size_t at = 0; at < output.size();) {
    const std::size_t end = std::min(output.find('\n', at), output.size());
    std::string_view line = output.substr(at, end - at);
    at = end + 1;
    if (line.ends_with(',')) line.remove_suffix(1);
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object()) {
      // Its last words are a line of another form: "DATE TIME Failed to ... "store:x": reason".
      constexpr std::string_view kFailed = " Failed to ", kStore = "\": ";
      if (!read.wrong.empty() || !line.contains(kFailed)) continue;
      const std::size_t reason = line.find(kStore);
      read.wrong = reason == std::string_view::npos ? line.substr(line.find(kFailed) + 1)
                                                    : line.substr(reason + kStore.size());
      continue;
    }
    if (json.contains("Path")) {
      ++read.listing.count;
      if (read.listing.names.size() < kNamesMost)
        read.listing.names.push_back(json.value("Path", "") +
                                     (json.value("IsDir", false) ? "/" : ""));
    } else if (json.value("level", "") == "error" || json.value("level", "") == "critical") {
      read.wrong = json.value("msg", "");
    }
  }
  return read;
}

// The words of another program, as a part of a sentence.
std::string shown(std::string_view text, const std::string& key) {
  std::string line(text);
  for (char& c : line)
    if (c == '\n' || c == '\t') c = ' ';
  for (std::size_t at = line.find(key); key.size() >= 4 && at != std::string::npos;
       at = line.find(key))
    line.replace(at, key.size(), "[key]");
  line = without_controls(line);
  if (line.size() > kSentenceMost) line = line.substr(0, kSentenceMost) + " ...";
  return line;
}

Result<store::Remote> remote_with(const v1::StoreProfile& profile, const store::Url& url,
                                  const std::string& key) {
  store::Key both{.plain = key, .obscured = {}};
  if (store::needs_obscured(profile, key)) {
    auto obscured = store::obscured(key);
    if (!obscured) return fail(std::move(obscured.error()));
    both.obscured = *std::move(obscured);
  }
  return store::remote_of(profile, url, both);
}

}  // namespace

Result<StoreListing> list_store(const v1::StoreProfile& profile, const store::Url& url,
                                const std::string& key, int cancel_fd) {
  const std::string doing = fmt::format("listing '{}'", store::text_of(url));
  auto remote = remote_with(profile, url, key);
  if (!remote) return fail(std::move(remote.error()).in(doing));
  auto known_hosts = MemoryFile::make(remote->known_hosts + "\n");
  auto ca = MemoryFile::make(remote->ca);
  if (!known_hosts) return fail(std::move(known_hosts.error()).in(doing));
  if (!ca) return fail(std::move(ca.error()).in(doing));
  if (const std::size_t at = remote->config.find(store::kKnownHosts); at != std::string::npos)
    remote->config.replace(at, store::kKnownHosts.size(), known_hosts->path());
  auto config = MemoryFile::make(remote->config);
  if (!config) return fail(std::move(config.error()).in(doing));
  // Each wait has a bound: rclone's own defaults go on for many minutes.
  std::vector<std::string> args = {"lsjson",
                                   "--config",
                                   config->path(),
                                   "--max-depth",
                                   "1",
                                   "--no-modtime",
                                   "--no-mimetype",
                                   "--retries",
                                   "1",
                                   "--low-level-retries",
                                   "2",
                                   "--contimeout",
                                   "10s",
                                   "--timeout",
                                   "20s",
                                   "--use-json-log",
                                   "--log-file",
                                   "/dev/stdout"};
  if (!remote->ca.empty()) args.insert(args.end(), {"--ca-cert", ca->path()});
  args.push_back("store:" + remote->path);
  const process::ToolAnswer answer = run(std::move(args), remote->proxy, cancel_fd);
  if (answer.absent)
    return fail(ErrorCode::Unreachable,
                doing + ": the node has no rclone on its PATH; install it (apt install rclone)");
  Output read = parsed(answer.output);
  if (answer.why.empty()) return std::move(read.listing);
  if (read.wrong.empty() && answer.output.size() >= kOutputMost) {
    read.listing.more = true;
    return std::move(read.listing);
  }
  return fail(ErrorCode::Unreachable,
              fmt::format("{}: rclone: {}", doing,
                          shown(read.wrong.empty() ? answer.why : read.wrong, key)));
}

}  // namespace muster::agent
