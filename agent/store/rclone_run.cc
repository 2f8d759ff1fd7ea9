#include "agent/store/rclone_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "agent/store/obscure.h"
#include "common/base/controls.h"
#include "common/store/rclone.h"

namespace muster::agent {
namespace {

constexpr std::size_t kSentenceMost = 600;

// rclone takes options and keys from variables, and refuses to start with some (AWS_CA_BUNDLE).
std::vector<std::string> environment(const std::string& proxy) {
  // Since 1.63 rclone gives a file that it writes another name, and nobody could watch it.
  std::vector<std::string> env = {"HOME=/nonexistent", "LC_ALL=C", "RCLONE_INPLACE=true"};
  for (const std::string& one : process::tool_environment())
    if (one.starts_with("PATH=")) env.push_back(one);
  if (proxy.empty()) return env;
  for (const char* name : {"HTTP_PROXY", "HTTPS_PROXY"})
    env.push_back(std::string(name) + "=" + proxy);
  return env;
}

// The same under setpriv, which lets the kernel end it when the thread that starts it has ended: of
// an agent that was killed, nothing goes on. None: one of the two programs is not there.
std::optional<process::ToolRequest> ending_with_us(const process::ToolRequest& request,
                                                   const std::vector<std::string>& env) {
  constexpr std::string_view kPath = "PATH=";
  const auto path = std::ranges::find_if(
      env, [&](const std::string& variable) { return variable.starts_with(kPath); });
  if (path == env.end()) return std::nullopt;
  const std::string_view directories = std::string_view(*path).substr(kPath.size());
  const auto rclone = process::find_program(request.program, directories);
  const auto setpriv = process::find_program("setpriv", directories);
  if (!rclone || !setpriv) return std::nullopt;
  process::ToolRequest wrapped{.program = *setpriv, .args = {"--pdeathsig", "KILL", *rclone}};
  wrapped.args.insert(wrapped.args.end(), request.args.begin(), request.args.end());
  return wrapped;
}

// An older setpriv, or busybox's, knows no --pdeathsig, and runs nothing. rclone says why it fails.
bool was_not_run(const process::ToolAnswer& answer) {
  return answer.status && *answer.status != 0 && answer.output.empty();
}

Result<store::Remote> remote_with(const v1::StoreProfile& profile, const store::Url& url,
                                  const std::string& key, const std::string& known_hosts) {
  store::Key both{.plain = key, .obscured = {}};
  if (store::needs_obscured(profile, key)) {
    auto obscured = agent::obscured(key);
    if (!obscured) return fail(std::move(obscured.error()));
    both.obscured = *std::move(obscured);
  }
  return store::remote_of(profile, url, both, known_hosts);
}

// Its last words are a line of another form: "DATE TIME Failed to ... "store:x": reason".
std::string failed_line(std::string_view line) {
  constexpr std::string_view kFailed = " Failed to ", kStore = "\": ";
  const std::size_t failed = line.find(kFailed);
  if (failed == std::string_view::npos) return {};
  const std::size_t reason = line.find(kStore);
  return std::string(reason == std::string_view::npos ? line.substr(failed + 1)
                                                      : line.substr(reason + kStore.size()));
}

struct LoggedError {
  std::string object, message;
};
// The last error of its log, each line of which is JSON; else its last words.
LoggedError last_error(std::string_view output) {
  LoggedError found;
  for (std::size_t at = 0; at < output.size();) {
    const std::size_t end = std::min(output.find('\n', at), output.size());
    const std::string_view line = output.substr(at, end - at);
    at = end + 1;
    if (line.starts_with("{\"Path\":")) continue;  // a list's
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object()) {
      if (found.message.empty()) found.message = failed_line(line);
      continue;
    }
    const auto level = json.find("level"), words = json.find("msg");
    if (level == json.end() || words == json.end() || !words->is_string()) continue;
    if (*level != "error" && *level != "critical") continue;
    found = {.object = {}, .message = words->get<std::string>()};
    if (const auto object = json.find("object"); object != json.end() && object->is_string())
      found.object = object->get<std::string>();
  }
  return found;
}

std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\n' || c == '\t') c = ' ';
  text = without_controls(text);
  if (text.size() > kSentenceMost) text = text.substr(0, kSentenceMost) + " ...";
  return text;
}

}  // namespace

Result<RcloneRun> RcloneRun::make(const v1::StoreProfile& profile, const store::Url& url,
                                  const std::string& key) {
  auto known_hosts = io::MemoryFile::make(profile.host_key() + "\n");
  if (!known_hosts) return fail(std::move(known_hosts.error()));
  auto ca = io::MemoryFile::make(profile.ca());
  if (!ca) return fail(std::move(ca.error()));
  auto remote = remote_with(profile, url, key, known_hosts->path());
  if (!remote) return fail(std::move(remote.error()));
  auto config = io::MemoryFile::make(remote->config);
  if (!config) return fail(std::move(config.error()));
  RcloneRun run(*std::move(config), *std::move(known_hosts), *std::move(ca));
  run.has_ca_ = !profile.ca().empty();
  run.source_ = "store:" + remote->path;
  run.proxy_ = profile.proxy();
  return run;
}

std::string RcloneRun::source_above() const {
  return source_.substr(0, source_.find_last_of("/:") + 1);
}

process::ToolAnswer RcloneRun::run(process::ToolRunner& runner, std::string_view verb,
                                   std::vector<std::string> words, Patience patience,
                                   const process::ToolLimits& limits) const {
  const bool is_short = patience == Patience::Short;
  std::vector<std::string> args = {std::string(verb),
                                   "--config",
                                   config_.path(),
                                   "--retries",
                                   "1",
                                   "--low-level-retries",
                                   is_short ? "1" : "5",
                                   "--contimeout",
                                   is_short ? "5s" : "15s",
                                   "--timeout",
                                   is_short ? "8s" : "60s",
                                   "--use-json-log",
                                   "--log-file",
                                   "/dev/stdout"};
  if (has_ca_) args.insert(args.end(), {"--ca-cert", ca_.path()});
  std::ranges::move(words, std::back_inserter(args));
  const std::vector<std::string> env = environment(proxy_);
  process::ToolRequest request{.program = "rclone", .args = std::move(args)};
  if (auto wrapped = ending_with_us(request, env)) {
    process::ToolAnswer answer = runner.run({*std::move(wrapped)}, env, limits).front();
    if (!was_not_run(answer)) return answer;
  }
  return runner.run({std::move(request)}, env, limits).front();
}

RunFailure why_failed(const process::ToolAnswer& answer) {
  if (answer.absent)
    return {.text = "the node has no rclone on its PATH; install it (apt install rclone)",
            .message = {}};
  LoggedError error = last_error(answer.output);
  // "" of a directory that is the whole source: ": error listing"
  while (error.message.starts_with(": ")) error.message.erase(0, 2);
  constexpr std::string_view kAttempt = "Attempt 1/1 failed with ", kAnd = " and: ";
  if (const std::size_t why = error.message.find(kAnd);
      error.message.starts_with(kAttempt) && why != std::string::npos)
    error.message.erase(0, why + kAnd.size());
  std::string text = error.object.empty() ? error.message : error.object + ": " + error.message;
  if (error.message.empty()) text = answer.why;
  return {.text = "rclone: " + one_line(std::move(text)), .message = std::move(error.message)};
}

}  // namespace muster::agent
