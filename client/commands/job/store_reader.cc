#include "client/commands/job/store_reader.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "client/render/text.h"
#include "common/store/profile.h"
#include "common/store/rclone.h"

namespace muster::client {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kListMost = 256 << 20;
constexpr std::chrono::hours kTimeMost{24};

// rclone takes options and keys from variables, and refuses to start with some (AWS_CA_BUNDLE).
std::vector<std::string> environment(const std::string& proxy) {
  std::vector<std::string> env = {"HOME=/nonexistent", "LC_ALL=C"};
  for (const std::string& one : process::tool_environment())
    if (one.starts_with("PATH=")) env.push_back(one);
  if (proxy.empty()) return env;
  for (const char* name : {"HTTP_PROXY", "HTTPS_PROXY"})
    env.push_back(std::string(name) + "=" + proxy);
  return env;
}

// Its last line that is no progress: "DATE TIME ERROR : a/b: reason".
std::string last_words(const std::string& output) {
  std::string text = output;
  while (text.ends_with('\n')) text.pop_back();
  const std::size_t begin = text.rfind('\n');
  return render::printable(begin == std::string::npos ? text : text.substr(begin + 1));
}

}  // namespace

Result<StoreReader> StoreReader::make(v1::StoreProfile profile, const store::Url& url,
                                      const std::string& key) {
  profile.set_url(fmt::format("{}://{}", store::name_of(url.scheme), url.place));
  if (!profile.user().empty()) profile.set_secret("key");
  if (const auto sound = store::check_profile(profile); !sound) return fail(Error(sound.error()));
  StoreReader reader;
  reader.env_ = environment(profile.proxy());
  const auto file = [&](const std::string& text) -> Result<std::string> {
    auto made = io::MemoryFile::make(text);
    if (!made) return fail(std::move(made.error()));
    reader.files_.push_back(*std::move(made));
    return reader.files_.back().path();
  };
  if (store::needs_obscured(profile, key))
    return fail(ErrorCode::Unsupported,
                fmt::format("muster logs gives no password to {}: copy the logs first (`rclone "
                            "copy`), and name that directory",
                            store::name_of(url.scheme)));
  auto known_hosts = file(profile.host_key() + "\n");
  if (!known_hosts) return fail(std::move(known_hosts.error()));
  auto remote = store::remote_of(profile, url, {.plain = key, .obscured = {}}, *known_hosts);
  if (!remote) return fail(std::move(remote.error()));
  auto config = file(remote->config);
  if (!config) return fail(std::move(config.error()));
  reader.options_ = {"--config", *config, "--retries", "3", "--log-file", "/dev/stdout"};
  if (!profile.ca().empty()) {
    auto ca = file(profile.ca());
    if (!ca) return fail(std::move(ca.error()));
    reader.options_.insert(reader.options_.end(), {"--ca-cert", *ca});
  }
  reader.source_ = "store:" + remote->path;
  return reader;
}

Result<std::string> StoreReader::run(std::vector<std::string> args, const std::string& doing) {
  args.insert(args.end(), options_.begin(), options_.end());
  process::ToolAnswer answer =
      runner_
          .run({{.program = "rclone", .args = std::move(args)}}, env_,
               {.each = kTimeMost, .total = kTimeMost, .parallel = 1, .bytes = kListMost})
          .front();
  if (answer.absent)
    return fail(ErrorCode::Unsupported,
                fmt::format("{}: this machine has no rclone on its PATH; install it (apt install "
                            "rclone)",
                            doing));
  if (!answer.why.empty())
    return fail(ErrorCode::Unreachable,
                fmt::format("{}: rclone: {}", doing,
                            answer.output.empty() ? answer.why : last_words(answer.output)));
  return std::move(answer.output);
}

Result<std::vector<std::string>> StoreReader::list() {
  auto output =
      run({"lsf", "--recursive", "--files-only", source_}, fmt::format("listing '{}'", source_));
  if (!output) return fail(std::move(output.error()));
  std::vector<std::string> names;
  for (std::size_t at = 0; at < output->size();) {
    const std::size_t end = std::min(output->find('\n', at), output->size());
    if (end > at) names.push_back(output->substr(at, end - at));
    at = end + 1;
  }
  return names;
}

Result<void> StoreReader::copy(const std::vector<std::string>& names, const fs::path& dir) {
  std::string lines;
  for (const std::string& name : names) lines += name + "\n";
  auto list = io::MemoryFile::make(lines);
  if (!list) return fail(std::move(list.error()));
  auto done = run({"copy", "--files-from-raw", list->path(), source_, dir.string()},
                  fmt::format("reading '{}'", source_));
  if (!done) return fail(std::move(done.error()));
  return {};
}

Result<TemporaryDir> TemporaryDir::make() {
  std::error_code wrong;
  std::string pattern = (fs::temp_directory_path(wrong) / "muster-logs-XXXXXX").string();
  if (wrong) return fail_errno("finding a directory for temporary files", wrong.value());
  if (::mkdtemp(pattern.data()) == nullptr)
    return fail_errno(fmt::format("making '{}'", pattern), errno);
  return TemporaryDir(pattern);
}

TemporaryDir::~TemporaryDir() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

}  // namespace muster::client
