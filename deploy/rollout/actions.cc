#include "deploy/rollout/actions.h"

#include <fmt/format.h>

#include "common/digest/sha256.h"
#include "common/rundir/layout.h"
#include "common/text/shell_word.h"
#include "deploy/rollout/send_file.h"

namespace muster::rollout {
namespace {

using namespace std::chrono_literals;
constexpr Duration kStopTimeMost = 3min;

// Whether one of the two processes of $dir/supervisor runs (deploy/supervise/supervisor.h).
constexpr std::string_view kStopBySupervisor = R"sh(
[ -d "$dir" ] || exit 0
[ -x "$muster" ] && exec "$muster" deploy supervise stop "$dir"
[ -f "$dir/supervisor" ] || exit 0
boot=; supervisor=; began=; pid=; started=
read -r boot supervisor began pid started < "$dir/supervisor" || :
[ "$boot" = "$(cat /proc/sys/kernel/random/boot_id)" ] || exit 0
runs() { [ -n "$2" ] && [ "$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20)" = "$2" ]; }
left=
if runs "$supervisor" "$began"; then left="$left $supervisor"; fi
if runs "$pid" "$started"; then left="$left $pid"; fi
[ -n "$left" ] || exit 0
echo "it runs, and '$muster', which would stop it, is gone; run 'muster deploy up' to have it again, \
or end it there with: kill$left" >&2
exit 1
)sh";

// The other role has its configuration on this host, maybe under another name of the host.
constexpr std::string_view kOtherRole = R"sh(
[ -f "$other" ] && other_there=yes
if [ -f "$other_unit" ] && grep -qF "$mark" "$other_unit" && grep -qF "$start" "$other_unit"; then
  other_there=yes
fi
)sh";

constexpr std::string_view kPurge = R"sh(
rm -f "$dir/supervisor.log"
if [ -f "$state/$state_mark" ] && [ -n "$keep" ] &&
   [ -n "$(find "$state/$keep" -path "$state/$keep/.muster" -prune -o ! -type d -print 2>/dev/null |
           head -n 1)" ]; then
  rm -rf --one-file-system "$state/$keep/.muster"
  find "$state" -mindepth 1 -maxdepth 1 ! -name "$keep" ! -name "$state_mark" \
    -exec rm -rf --one-file-system {} +
  echo kept-outputs
elif [ -f "$state/$state_mark" ]; then
  rm -rf --one-file-system "$state"
  above=${state%/*}
  case ${above##*/} in muster|state) rmdir "$above" 2>/dev/null || : ;; esac
elif [ -d "$state" ]; then
  echo kept-state
fi
)sh";

// What the agent's check of the outputs' root (agent/probe/outputs_check.h) made: its own files,
// and directories that are empty. A file of a job only where they are to go, too. The cache of
// inputs that lies beside it (agent/stage/input_cache.h) can be fetched again. Where a controller
// is on the host, it is that one's.
constexpr std::string_view kPurgeRoot = R"sh(
if [ -n "$root" ]; then
  rm -rf --one-file-system "$root/.muster" 2>/dev/null || :
  inputs=${root%/*}/inputs
  if [ -d "$inputs/cache/objects" ] && [ ! -e "$other" ] && [ ! -e "$other_unit" ]; then
    rm -rf --one-file-system "$inputs" 2>/dev/null || :
  fi
  [ -z "$purge_root" ] || rm -rf --one-file-system "$root"
  [ ! -d "$root" ] || rmdir "$root" 2>/dev/null || echo kept-root
  above=${root%/*}
  if [ ! -d "$root" ] && rmdir "$above" 2>/dev/null; then
    above=${above%/*}
    case ${above##*/} in muster|state) rmdir "$above" 2>/dev/null || : ;; esac
  fi
fi
)sh";

// What jobs of the node left, by their process tags (common/rundir/layout.h): workers and ranks go
// on without the agent, and would lose their files. $end: kill them, and look again, for a process
// may have made another one meanwhile.
constexpr std::string_view kNoJobs = R"sh(
carriers() {
  for p in $(grep -ls "$tag=" /proc/[0-9]*/environ); do
    run=$(tr '\0' '\n' 2>/dev/null < "$p" | sed -n "s|^$tag=[^/]*/\([^/]*\)@$node\$|\1|p")
    [ -n "$run" ] && [ -d "$state/runs/$run" ] && echo "$p" | cut -d/ -f3
  done || :
}
left=$(carriers | tr '\n' ' ')
turns=0
while [ -n "$left" ] && [ -n "$end" ] && [ "$turns" -lt 100 ]; do
  kill -9 $left 2>/dev/null || :
  sleep 0.1
  turns=$((turns + 1))
  left=$(carriers | tr '\n' ' ')
done
if [ -n "$left" ]; then
  echo "processes of jobs run on it: ${left% }; end them, or use --force; then run it again" >&2
  exit 1
fi
)sh";

std::string make_dir(const std::string& dir, std::string_view mode) {
  return fmt::format("mkdir -p {0}; chmod {1} {0}\n", shell_word(dir), mode);
}

}  // namespace

std::string make_state_dir(const std::string& state_dir) {
  const std::string mark = fmt::format("{}/{}", state_dir, kStateMark);
  return fmt::format(
      "if [ ! -d {0} ]; then mkdir -p -m 700 {0}; echo {2} | cat > {1}; "
      "elif [ -f {1} ]; then chmod 700 {0}; fi\n",
      shell_word(state_dir), shell_word(mark),
      shell_word("Made by muster deploy; 'muster deploy down --purge' removes this directory."));
}

Result<void> install_program(Host& host, const std::string& bin, const std::string& name,
                             const ProgramFacts& facts, const ProgramBytes& bytes, bool gzip) {
  return send_file(host, fmt::format("sending '{}' to '{}' on '{}'", name, bin, host.name()),
                   make_dir(bin, "755"),
                   {.path = bin + "/" + name,
                    .mode = "755",
                    .bytes = gzip ? bytes.compressed() : bytes.raw(),
                    .sum = facts.sha256,
                    .gzip = gzip});
}

Result<void> set_current(Host& host, const Places& places, const std::string& version) {
  auto done = host.need(fmt::format("making {} the current version on '{}'", version, host.name()),
                        with(R"sh(
ln -sfn "$version" "$link.new"
mv -fT "$link.new" "$link" 2>/dev/null || { rm -f "$link.new"; ln -sfn "$version" "$link"; }
)sh",
                             Set{"version", version}, Set{"link", places.current()}));
  if (!done) return fail(std::move(done.error()));
  return {};
}

Result<void> check_config(Host& host, const Wanted& wanted, const Places& places,
                          std::string_view version) {
  std::string script =
      "exec " + shell_word(fmt::format("{}/{}", places.bin(version), program_of(wanted.role)));
  const std::vector<std::string> words = command_words(wanted, places);
  for (std::size_t i = 1; i < words.size(); ++i) script += " " + shell_word(words[i]);
  auto done = host.need(fmt::format("checking the configuration of the {} on '{}'",
                                    to_string(wanted.role), host.name()),
                        script + " --check-config");
  if (!done) return fail(std::move(done.error()));
  return {};
}

Result<void> write_config(Host& host, const Wanted& wanted, const Places& places) {
  const std::string text = config_text(wanted, places);
  const std::string sum = sha256_hex(text);
  return send_file(host, fmt::format("writing the configuration on '{}'", host.name()),
                   make_dir(places.role_dir(wanted.role), "700"),
                   {.path = places.config_file(wanted.role), .bytes = text, .sum = sum});
}

Result<void> write_credentials(Host& host, const Places& places, std::string_view credentials) {
  const std::string sum = sha256_hex(credentials);
  return send_file(host, fmt::format("writing the credentials on '{}'", host.name()),
                   make_dir(places.role_dir(Role::Agent), "700"),
                   {.path = places.credentials(), .mode = "600", .bytes = credentials, .sum = sum});
}

Result<void> start_daemon(Host& host, Role role, const Places& places) {
  const std::string doing = fmt::format("starting the {} on '{}'", to_string(role), host.name());
  const std::string dir = make_state_dir(places.state_dir);
  const std::string script =
      places.systemd
          ? with(dir +
                     "systemctl daemon-reload; systemctl enable --quiet \"$unit\"; systemctl "
                     "restart \"$unit\"",
                 Set{"unit", unit_name(role)})
          : with(dir + "exec \"$muster\" deploy supervise start \"$dir\"",
                 Set{"muster", places.current() + "/bin/muster"},
                 Set{"dir", places.role_dir(role)});
  auto done = host.need(doing, script, {}, kStopTimeMost);
  if (!done) return fail(std::move(done.error()));
  return {};
}

Result<void> stop_daemon(Host& host, Role role, const Places& places) {
  const std::string doing = fmt::format("stopping the {} on '{}'", to_string(role), host.name());
  const std::string script =
      places.systemd ? with("[ -f \"$file\" ] || exit 0; systemctl disable --quiet --now \"$unit\"",
                            Set{"unit", unit_name(role)}, Set{"file", places.config_file(role)})
                     : with(kStopBySupervisor, Set{"muster", places.current() + "/bin/muster"},
                            Set{"dir", places.role_dir(role)});
  auto done = host.need(doing, script, {}, kStopTimeMost);
  if (!done) return fail(std::move(done.error()));
  return {};
}

Result<void> remove_role(Host& host, Role role, const Deployed& deployed,
                         const RoleRemoval& removal,
                         const std::function<void(const std::string&)>& say) {
  const Places& places = deployed.places;
  std::string script(removal.purge && role == Role::Agent ? kNoJobs : "");
  script += R"sh(
rm -f "$dir/command-line" "$dir/command-line.new" "$dir/credentials.pem" "$dir/credentials.pem.new" \
  "$dir/supervisor" "$dir/lock"
)sh";
  if (places.systemd) script += "rm -f \"$file\" \"$file.new\"; systemctl daemon-reload\n";
  if (removal.purge) script += kPurge;
  if (removal.purge) script += kPurgeRoot;
  script += "rmdir \"$dir\" 2>/dev/null || :\n";
  if (removal.programs) {
    script += std::string(kOtherRole) + "if [ -n \"$other_there\" ]; then exit 0; fi\n";
    for (const std::string& version : deployed.versions) {
      const std::string bin = places.bin(version);
      // One process removes what the version has: there may be hundreds of versions.
      script += "rm -f";
      for (const Role each : {Role::Controller, Role::Agent})
        for (const std::string_view name : programs_of(each))
          script += fmt::format(" {0} {0}.new", shell_word(fmt::format("{}/{}", bin, name)));
      script += fmt::format("\nrmdir {} {} 2>/dev/null || :\n", shell_word(bin),
                            shell_word(places.prefix + "/" + version));
    }
    script += "rm -f \"$link\" \"$link.new\"; rmdir \"$prefix\" 2>/dev/null || :\n";
  }
  const Role other = role == Role::Agent ? Role::Controller : Role::Agent;
  Places by_unit = places, by_supervisor = places;
  by_unit.systemd = true;
  by_supervisor.systemd = false;
  // With many versions the script is longer than a command line may be.
  auto done = host.need_long(
      fmt::format("removing the {} from '{}'", to_string(role), host.name()),
      with(script, Set{"dir", places.role_dir(role)}, Set{"file", places.config_file(role)},
           Set{"state", places.state_dir}, Set{"state_mark", kStateMark},
           Set{"link", places.current()}, Set{"prefix", places.prefix}, Set{"other_there", ""},
           Set{"other", by_supervisor.config_file(other)},
           Set{"other_unit", by_unit.config_file(other)}, Set{"mark", kUnitMark},
           Set{"start", unit_start(other, places)}, Set{"tag", rundir::kProcessTagVariable},
           Set{"node", removal.node}, Set{"end", removal.end_jobs ? "yes" : ""},
           Set{"root", removal.outputs_root}, Set{"purge_root", removal.outputs ? "yes" : ""},
           Set{"keep", removal.outputs || role == Role::Agent ? "" : kOutputsDir}));
  if (!done) return fail(std::move(done.error()));
  if (!say) return {};
  if (done->contains("kept-state\n"))
    say(fmt::format("kept '{}', which muster deploy did not make", places.state_dir));
  const std::string kept = done->contains("kept-outputs\n")
                               ? fmt::format("{}/{}", places.state_dir, kOutputsDir)
                           : done->contains("kept-root\n") ? removal.outputs_root
                                                           : std::string();
  if (!kept.empty())
    say(fmt::format("kept '{}', what jobs have written; --outputs removes it, too", kept));
  return {};
}

std::string log_end(Host& host, Role role, const Places& places) {
  auto output =
      host.run(with("tail -n 1 \"$log\" 2>/dev/null || tail -n 1 \"$other\" 2>/dev/null || :",
                    Set{"log", fmt::format("{}/{}.log", places.state_dir, program_of(role))},
                    Set{"other", places.role_dir(role) + "/supervisor.log"}));
  return output ? last_line(output->out) : std::string();
}

}  // namespace muster::rollout
