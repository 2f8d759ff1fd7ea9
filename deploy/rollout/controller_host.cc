#include "deploy/rollout/controller_host.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "common/base/time.h"
#include "common/digest/sha256.h"
#include "common/name_service/users.h"
#include "common/process/identity.h"
#include "common/text/shell_word.h"
#include "deploy/rollout/actions.h"

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
constexpr std::string_view kTakeLock = R"sh(
LC_ALL=C; export LC_ALL
mkdir -p "$state/deploy"
lock=$state/deploy/lock
[ -f "$lock" ] && rm -f "$lock"
if why=$(mkdir "$lock" 2>&1); then
  printf '%s' "$me" > "$lock/owner" && exit 0
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
      printf '%s' "$me" > "$lock/owner.new" && mv -f "$lock/owner.new" "$lock/owner"
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

// Status 1: the lock has another owner.
constexpr std::string_view kIsMine = R"sh([ "$(cat "$lock/owner" 2>/dev/null)" = "$me" ])sh";

std::string variable(std::string_view name, std::string_view value) {
  return fmt::format("{}={}\n", name, shell_word(value));
}

std::string own_host_name() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

std::string operator_name() {
  const char* user = std::getenv("USER");
  return fmt::format("{}@{}", user != nullptr && *user != '\0' ? user : std::to_string(::geteuid()),
                     own_host_name());
}

// "ann@laptop|2026-11-26T10:00:00Z|BOOT|PID|START"
std::string own_mark() {
  const auto boot = process::boot_id();
  const auto self = process::self();
  return fmt::format("{}|{}|{}|{}|{}", operator_name(), utc_text(system_clock().now().wall),
                     boot ? boot->str() : "", self ? self->pid : 0, self ? self->start_time : 0);
}

struct LockOwner {
  std::string who, since;
  bool gone = false;  // a process of this machine that does not run
};

LockOwner parse_owner(const std::string& mark) {
  std::vector<std::string> parts(1);
  for (const char c : mark) {
    if (c == '|') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  if (parts.size() != 5) return {};
  LockOwner owner{.who = parts[0], .since = parts[1]};
  const auto boot = process::boot_id();
  if (boot && boot->str() == parts[2]) {
    const process::ProcessId process{
        .pid = static_cast<pid_t>(std::strtol(parts[3].c_str(), nullptr, 10)),
        .start_time = std::strtoull(parts[4].c_str(), nullptr, 10)};
    owner.gone = !process::alive(process);
  }
  return owner;
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
    : places_(std::move(places)), mark_(own_mark()), host_(std::move(host)) {}

ControllerHost::~ControllerHost() { stop_touching(); }

std::string ControllerHost::lock_variables() const {
  return variable("me", mark_) + variable("lock", places_.state_dir + "/deploy/lock");
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
    if (output->status != kLockTaken) return fail(script_error("locking the deployment", *output));
    const LockOwner owner = parse_owner(output->out);
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
      "[ \"$(ls -A \"$state\")\" = \"$mark\" ] && rm -f \"$state/$mark\" && rmdir \"$state\"; :\n";
  (void)with_host([&](Host& host) { return host.run(script); });
  locked_ = false;
}

Result<std::optional<Manifest>> ControllerHost::read_manifest() {
  const std::string file = shell_word(places_.state_dir + "/deploy/manifest.json");
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
  const std::string text = manifest_text(signed_one);
  const std::string script =
      "set -eu; umask 077\n" + lock_variables() +
      variable("file", places_.state_dir + "/deploy/manifest.json") +
      variable("sum", sha256_hex(text)) +
      fmt::format(
          "{} || {{ echo 'another one took the lock of the deployment over; run it again' "
          ">&2; exit 1; }}\n",
          kIsMine) +
      "mkdir -p \"$(dirname \"$file\")\"; cat > \"$file.new\"\n"
      "[ \"$(sha256sum < \"$file.new\" | cut -c1-64)\" = \"$sum\" ]\n"
      "sync \"$file.new\" 2>/dev/null || sync; mv -f \"$file.new\" \"$file\"\n";
  auto done =
      with_host([&](Host& host) { return host.need("writing the manifest", script, text); });
  if (!done) return fail(std::move(done.error()));
  return {};
}

Result<void> ControllerHost::remove_manifest() {
  const std::string file = shell_word(places_.state_dir + "/deploy/manifest.json");
  auto done = with_host([&](Host& host) {
    return host.need("removing the manifest", fmt::format("rm -f {0} {0}.new", file));
  });
  if (!done) return fail(std::move(done.error()));
  return {};
}

Result<std::string> ControllerHost::muster(std::string_view doing, std::string_view words) {
  const std::string script =
      fmt::format("exec {} --controller {} {}", shell_word(places_.current() + "/bin/muster"),
                  shell_word(places_.state_dir + "/endpoint.json"), words);
  return with_host([&](Host& host) { return host.need(doing, script); });
}

Result<ssh::Secret> ControllerHost::issue_credentials(const std::string& node) {
  const std::string script =
      "set -eu; umask 077\n" + variable("muster", places_.current() + "/bin/muster") +
      variable("endpoint", places_.state_dir + "/endpoint.json") +
      variable("dir", places_.role_dir(Role::Controller)) + variable("node", node) +
      "new=$(mktemp -d \"$dir/issue.XXXXXX\"); trap 'rm -rf \"$new\"' EXIT\n"
      "\"$muster\" --controller \"$endpoint\" cert issue --node \"$node\" -o \"$new/pem\" "
      ">/dev/null\n"
      "cat \"$new/pem\"\n";
  auto text = with_host([&](Host& host) {
    return host.need(fmt::format("issuing credentials for '{}'", node), script);
  });
  if (!text) return fail(std::move(text.error()));
  return ssh::Secret(std::move(*text));
}

Result<Nodes> ControllerHost::nodes() {
  constexpr std::string_view kDoing = "asking the controller for its nodes";
  auto text = muster(kDoing, "node ls -o json");
  if (!text) return fail(std::move(text.error()));
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
