#include "deploy/rollout/controller_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "common/base/time.h"
#include "common/digest/sha256.h"
#include "common/text/shell_word.h"
#include "deploy/rollout/actions.h"
#include "deploy/rollout/lock_mark.h"
#include "deploy/rollout/send_file.h"
#include "deploy/rollout/unzip.h"

namespace muster::rollout {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;
constexpr auto kTouchEvery = 15s;
constexpr int kLockTaken = 45;

// A touch that the host does not answer ends before the lock is stale.
constexpr Duration kTouchTimeMost = 20s;

// $gone: the content of a lock whose owner is known to be gone. A stale lock stays where it is and
// gets another owner: the one taker whose mkdir of `taken` succeeds compares the owner once more,
// and replaces it. mkdir also touches the lock, so that no third one finds it stale.
// `cat` writes the files: on a full disk sh's own printf says "I/O error".
constexpr std::string_view kTakeLock = R"sh(
LC_ALL=C; export LC_ALL
mkdir -p "$state/deploy" || exit 1
lock=$state/deploy/lock
# A file was the lock of older releases, and its owner touched it. rm leaves a directory.
if [ -f "$lock" ] && [ $(( $(date +%s) - $(stat -c %Y "$lock" 2>/dev/null || date +%s) )) -gt 60 ]
then
  rm -f "$lock" 2>/dev/null
fi
if why=$(mkdir "$lock" 2>&1); then
  printf '%s' "$me" | cat > "$lock/owner" && exit 0
  rm -rf "$lock"
  exit 1
fi
owner=$(cat "$lock/owner" 2>/dev/null)
age=$(( $(date +%s) - $(stat -c %Y "$lock" 2>/dev/null || date +%s) ))
if [ "$age" -gt 60 ] || { [ -n "$gone" ] && [ "$owner" = "$gone" ]; }; then
  took=
  if mkdir "$lock/taken" 2>/dev/null; then
    took=1
  else
    left=$(( $(date +%s) - $(stat -c %Y "$lock/taken" 2>/dev/null || date +%s) ))
    [ "$left" -gt 60 ] && rmdir "$lock/taken" 2>/dev/null && mkdir "$lock/taken" 2>/dev/null && took=1
  fi
  if [ -n "$took" ]; then
    if [ "$(cat "$lock/owner" 2>/dev/null)" = "$owner" ]; then
      printf '%s' "$me" | cat > "$lock/owner.new" && mv -f "$lock/owner.new" "$lock/owner"
      replaced=$?
      rmdir "$lock/taken"
      exit "$replaced"
    fi
    rmdir "$lock/taken"
  fi
fi
# Another one may be replacing the owner at this moment.
turns=0
while [ -d "$lock/taken" ] && [ "$turns" -lt 50 ]; do sleep 0.1; turns=$((turns + 1)); done
owner=$(cat "$lock/owner" 2>/dev/null)
if [ ! -d "$lock" ]; then
  case $why in *xists*) ;; *) printf '%s\n' "$why" >&2; exit 1 ;; esac
fi
printf '%s' "$owner"
exit 45
)sh";

// Between the first two: a command, and between the last two: what its output goes through. The
// rest is compressed, where the host has gzip. The script's status is the command's.
constexpr std::string_view kZipped = R"sh(
zip=cat
command -v gzip >/dev/null && zip='gzip -c'
{ status=$({ { )sh";
constexpr std::string_view kFiltered = R"sh(; echo "$?" >&3; } | )sh";
constexpr std::string_view kZippedEnd = R"sh( | $zip >&4; } 3>&1); } 4>&1
exit "$status"
)sh";
constexpr Duration kNodesTimeMost = 5min;         // for a question about each node
constexpr std::size_t kListBytesMost = 64 << 20;  // inflated: 1,024 nodes have 4 MiB

// Status 1: the lock has another owner.
constexpr std::string_view kIsMine = R"sh([ "$(cat "$lock/owner" 2>/dev/null)" = "$me" ])sh";

std::string variable(std::string_view name, std::string_view value) {
  return fmt::format("{}={}\n", name, shell_word(value));
}

Result<json> parse_answer(std::string_view doing, const std::string& text) {
  json answer = json::parse(text, nullptr, false);
  if (!answer.is_object() || !answer.contains("items") || !answer["items"].is_array())
    return fail(ErrorCode::DataLoss, fmt::format("{}: the answer makes no sense", doing));
  return answer;
}

}  // namespace

Opener opener(const hosts::Login& login, const Crew& crew) {
  return [login, options = crew.options, prompts = crew.prompts] {
    return Host::open(login, options, *prompts);
  };
}

ControllerHost::ControllerHost(Host host, Places places)
    : places_(std::move(places)), mark_(own_lock_mark()), host_(std::move(host)) {}

ControllerHost::~ControllerHost() { stop_touching(); }

std::string ControllerHost::lock_variables() const {
  return variable("me", mark_) + variable("lock", places_.state_dir + "/deploy/lock");
}

std::string ControllerHost::still_mine() const {
  return lock_variables() +
         fmt::format(
             "{} || {{ echo 'another one took the lock of the deployment over; run it again' "
             ">&2; exit 1; }}\n",
             kIsMine);
}

std::string ControllerHost::manifest_file() const {
  return places_.state_dir + "/deploy/manifest.json";
}

Result<void> ControllerHost::lock(Opener open) {
  auto session = open();  // before the lock: without it the lock would not stay this one's
  if (!session) return fail(std::move(session.error()));
  std::string gone;
  for (int tries = 0; tries < 2; ++tries) {
    const std::string script = "umask 077\n" + make_state_dir(places_.state_dir) +
                               variable("state", places_.state_dir) + variable("me", mark_) +
                               variable("gone", gone) + std::string(kTakeLock);
    auto output = with_host([&](Host& host) { return host.run(script); });
    if (!output) return fail(std::move(output.error()));
    if (output->ok()) {
      locked_ = true;
      toucher_ = std::thread(
          [this, again = std::move(open), opened = std::optional(std::move(*session))]() mutable {
            touch_until_stopped(again, std::move(opened));
          });
      return {};
    }
    if (output->status != kLockTaken) {
      Error error = script_error("locking the deployment", *output);
      with_host([&](Host& host) { add_room(error, host, places_.state_dir); });
      error.message += "; nothing was changed";
      return fail(std::move(error));
    }
    const LockOwner owner = parse_lock_mark(output->out);
    if (!owner.gone || tries > 0)
      return fail(ErrorCode::Conflict,
                  fmt::format("locking the deployment: {} deploys since {}; wait for the end, or a "
                              "minute, if that one was killed",
                              owner.who.empty() ? "somebody" : last_line(owner.who),
                              owner.since.empty() ? "a moment ago" : last_line(owner.since)));
    gone = output->out;
  }
  return {};
}

void ControllerHost::touch_until_stopped(const Opener& open, std::optional<Host> session) {
  const std::string script =
      lock_variables() + fmt::format("{} && touch -c \"$lock\"; :\n", kIsMine);
  for (;;) {
    {
      const MutexLock lock(stop_mutex_);
      const auto until = std::chrono::steady_clock::now() + kTouchEvery;
      while (!stop_ && stopped_.wait_until(stop_mutex_, until)) continue;
      if (stop_) return;
    }
    if (!session) {
      auto opened = open();
      if (!opened) continue;  // the host may be back at the next time
      session.emplace(std::move(*opened));
    }
    if (!session->run(script, {}, kTouchTimeMost)) session.reset();
  }
}

void ControllerHost::stop_touching() {
  {
    const MutexLock lock(stop_mutex_);
    stop_ = true;
  }
  stopped_.notify_all();
  if (toucher_.joinable()) toucher_.join();
}

void ControllerHost::unlock() {
  if (!locked_) return;
  stop_touching();
  // A state directory with nothing but its mark goes: this lock made it.
  const std::string script =
      lock_variables() + variable("state", places_.state_dir) + variable("mark", kStateMark) +
      fmt::format("{} && rm -rf \"$lock\"\n", kIsMine) +
      "rmdir \"$state/deploy\" 2>/dev/null\n"
      "above=${state%/*}\n"
      "[ \"$(ls -A \"$state\")\" = \"$mark\" ] && rm -f \"$state/$mark\" && rmdir \"$state\" &&\n"
      "case ${above##*/} in muster|state) rmdir \"$above\" 2>/dev/null ;; esac; :\n";
  (void)with_host([&](Host& host) { return host.run(script); });
  locked_ = false;
}

Result<std::optional<Manifest>> ControllerHost::read_manifest() {
  const std::string file = shell_word(manifest_file());
  auto text = with_host([&](Host& host) {
    return host.need("reading the manifest", fmt::format("[ ! -f {0} ] || cat {0}", file));
  });
  if (!text) return fail(std::move(text.error()));
  if (text->empty()) return std::optional<Manifest>();
  auto manifest = parse_manifest(*text);
  if (!manifest) return fail(std::move(manifest.error()));
  return std::optional(std::move(*manifest));
}

Result<void> ControllerHost::write_manifest(const Manifest& manifest) {
  Manifest signed_one = manifest;
  signed_one.by = operator_name();
  signed_one.at = utc_text(system_clock().now().wall);
  const std::string text = manifest_text(signed_one), sum = sha256_hex(text);
  const SentFile file{.path = manifest_file(), .mode = "600", .bytes = text, .sum = sum};
  return with_host([&](Host& host) {
    return send_file(host, "writing the manifest",
                     still_mine() + "mkdir -p \"$(dirname \"$file\")\"\n", file);
  });
}

Result<void> ControllerHost::remove_manifest() {
  const std::string script =
      still_mine() + fmt::format("rm -f {0} {0}.new", shell_word(manifest_file()));
  auto done = with_host([&](Host& host) { return host.need("removing the manifest", script); });
  if (!done) return fail(std::move(done.error()));
  return {};
}

std::string ControllerHost::asking(std::string_view words) const {
  return fmt::format("{} --controller {} {}", shell_word(places_.current() + "/bin/muster"),
                     shell_word(places_.state_dir + "/endpoint.json"), words);
}

Result<std::string> ControllerHost::muster(std::string_view doing, std::string_view words) {
  const std::string script = "exec " + asking(words);
  return with_host([&](Host& host) { return host.need(doing, script); });
}

Result<std::string> ControllerHost::muster_list(std::string_view doing, std::string_view words,
                                                std::string_view filter) {
  const std::string script =
      fmt::format("{}{}{}{}{}", kZipped, asking(words), kFiltered, filter, kZippedEnd);
  auto packed = with_host([&](Host& host) { return host.need(doing, script); });
  if (!packed) return packed;
  auto text = unzipped(std::move(*packed), kListBytesMost);
  if (!text) return fail(std::move(text.error()).in(doing));
  return text;
}

Result<ssh::Secret> ControllerHost::issue_credentials(const std::string& node, bool renews) {
  // A killed script leaves its directory; the owner of the lock is the only one that makes them.
  const std::string script =
      "set -eu; umask 077\n" + variable("muster", places_.current() + "/bin/muster") +
      variable("endpoint", places_.state_dir + "/endpoint.json") +
      variable("dir", places_.role_dir(Role::Controller)) + variable("node", node) +
      "rm -rf \"$dir\"/issue.??????\n"
      "new=$(mktemp -d \"$dir/issue.XXXXXX\"); trap 'rm -rf \"$new\"' EXIT\n"
      "trap 'exit 1' HUP INT PIPE TERM\n"
      "\"$muster\" --controller \"$endpoint\" cert issue --node \"$node\" -o \"$new/pem\"" +
      (renews ? " --lifetime 30d" : "") + " >/dev/null\ncat \"$new/pem\"\n";
  return with_host([&](Host& host) {
    return host.need_secret(fmt::format("issuing credentials for '{}'", node), script);
  });
}

Result<Nodes> ControllerHost::nodes() {
  constexpr std::string_view kDoing = "asking the controller for its nodes";
  const auto text = muster_list(kDoing, "node ls -o json");
  if (!text) return fail(Error(text.error()));
  const auto answer = parse_answer(kDoing, *text);
  if (!answer) return fail(Error(answer.error()));
  Nodes out;
  try {
    for (const json& item : (*answer)["items"]) {
      NodeSeen& node = out[item.value("name", "")];
      node.alive = item.value("connected", false) && !item.value("silent", false) &&
                   !item.value("dead", false);
      node.version = item.value("version", "");
      node.last_heard = item.value("lastHeard", "");
      node.instance = item.value("instance", "");
      node.drained_for = item.contains("drain") ? item["drain"].value("why", "-") : "";
      for (const json& use : item.value("uses", json::array())) {
        const std::string job = use.value("jobName", "");
        if (std::ranges::find(node.jobs, job) == node.jobs.end()) node.jobs.push_back(job);
      }
    }
  } catch (const json::exception&) {
    return fail(ErrorCode::DataLoss, fmt::format("{}: the answer makes no sense", kDoing));
  }
  return out;
}

Result<std::vector<std::string>> ControllerHost::live_jobs() {
  constexpr std::string_view kDoing = "asking the controller for its jobs";
  auto text = muster(kDoing, "ps --state live -o name");
  if (!text) return fail(std::move(text.error()));
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text->size();) {
    const std::size_t end = std::min(text->find('\n', at), text->size());
    if (end > at) out.push_back(text->substr(at, end - at));
    at = end + 1;
  }
  return out;
}

Result<void> ControllerHost::cancel(const std::string& job) {
  auto done =
      muster(fmt::format("cancelling job '{}'", last_line(job)), "cancel " + shell_word(job));
  if (!done) return fail(std::move(done.error()));
  // Its exit code says how the job ended. What counts is that it has ended, or that the time is up.
  (void)muster("waiting for the job's end", "wait " + shell_word(job) + " --timeout 90s");
  return {};
}

Result<void> ControllerHost::each_node(std::string_view doing,
                                       const std::vector<std::string>& nodes,
                                       std::string_view words) {
  if (nodes.empty()) return {};
  std::string names;
  for (const std::string& node : nodes) names += " " + shell_word(node);
  constexpr int kNotFound = 10;  // exit code of `muster`: there is no such node
  const std::string script = fmt::format(
      "failed=\nfor node in{}; do\n  {} >/dev/null </dev/null || [ $? = {} ] || failed=1\ndone\n"
      "[ -z \"$failed\" ]\n",
      names, asking(words), kNotFound);
  auto done = with_host([&](Host& host) { return host.need_long(doing, script, kNodesTimeMost); });
  if (!done) return fail(std::move(done.error()));
  return {};
}

Result<void> ControllerHost::drain(const std::vector<std::string>& nodes, std::string_view why) {
  return each_node("draining the nodes", nodes,
                   fmt::format("node drain \"$node\" --why {}", shell_word(why)));
}

Result<void> ControllerHost::undrain(const std::vector<std::string>& nodes) {
  return each_node("undraining the nodes", nodes, "node undrain \"$node\"");
}

Result<std::string> ControllerHost::cluster_id() {
  constexpr std::string_view kDoing = "reading the controller's endpoint file";
  const std::string script = "cat " + shell_word(places_.state_dir + "/endpoint.json");
  auto text = with_host([&](Host& host) { return host.need(kDoing, script); });
  if (!text) return fail(std::move(text.error()));
  const json file = json::parse(*text, nullptr, false);
  if (!file.is_object() || !file.contains("cluster_id") || !file["cluster_id"].is_string())
    return fail(ErrorCode::DataLoss, fmt::format("{}: it makes no sense", kDoing));
  return file["cluster_id"].get<std::string>();
}

}  // namespace muster::rollout
