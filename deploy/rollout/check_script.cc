#include "deploy/rollout/check_script.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

#include "common/base/controls.h"
#include "common/base/utf8.h"
#include "common/spec/keys/values.h"
#include "common/text/shell_word.h"

namespace muster::rollout {
namespace {

// POSIX sh, with the programs that every host has, and awk. All of it is one function, so that sh
// reads the whole text before it runs anything.
constexpr std::string_view kScript = R"sh(
say() { printf '%s %s\n' "$1" "$2"; }
have() { command -v "$1" >/dev/null 2>&1; }
sum() { s=$(sha256sum); printf '%s' "${s%% *}"; }
# d becomes the directory above $d. No program does it: a process for each would be half the check.
up() { case $d in /*/*|[!/]*/*) d=${d%/*} ;; /*) d=/ ;; *) d=. ;; esac; }
near() { d=$1; while [ ! -d "$d" ] && [ "$d" != / ]; do up; done; }
disk() {
  near "$2"
  say "$1-path" "$d"
  set -- "$1" $(df -Pk "$d" 2>/dev/null | tail -n 1)
  say "$1-free" "${5:-}"
  say "$1-options" "$(awk -v m="${7:-}" '$2 == m { o = $4 } END { print o }' /proc/self/mounts)"
  say "$1-type" "$(stat -f -c %T "$d" 2>/dev/null)"
  [ -w "$d" ] && say "$1-writable" yes
}
# The directories from $1 up to /, as its path names them and as they are.
dirs() {
  near "$1"
  real=$(cd -P "$d" && pwd)
  [ "$real" != "$d" ] || real=
  set --
  for d in "$d" "$real"; do
    case $d in /*) ;; *) continue ;; esac
    while :; do
      set -- "$@" "$d"
      [ "$d" = / ] && break
      up
    done
  done
  [ "$#" = 0 ] || stat -L -c 'dir %u %g %a %n' "$@"
}
way() {
  key=$1; shift
  why=
  if have bash && have timeout; then
    why=$(timeout 5 bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$1" "$2" 2>&1); status=$?
  elif have python3; then
    why=$(python3 -c 'import socket, sys
try: socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)
except OSError as error: sys.exit(str(error))' "$1" "$2" 2>&1); status=$?
  elif have nc; then
    why=$(nc -z -w 5 "$1" "$2" 2>&1); status=$?
  else
    return
  fi
  case "$status:$why" in
    0:*) say "$key" open ;;
    124:*|*'timed out'*) say "$key" silent ;;
    *efused*) say "$key" refused ;;
    *'not known'*|*'resolution'*|*'No address'*|*'ad address'*) say "$key" no-name ;;
    # What a firewall's REJECT gives (icmp-admin-prohibited; the second one for IPv6), as firewalld
    # sends it. A router without a route gives the same.
    *'No route to host'*|*'ermission denied'*) say "$key" rejected ;;
    *) say "$key" no-route ;;
  esac
}
main() {
  say begin 1
  uid=$(id -u)
  say uid "$uid"
  user=$(id -un)
  say user "$user"
  say home "$HOME"
  say time "$(date +%s)"
  say arch "$(uname -m)"
  say kernel "$(uname -s)"
  host=$(uname -n)
  say hostname "$host"
  boot=
  read -r boot < /proc/sys/kernel/random/boot_id
  say machine "$boot $host $(readlink /proc/self/ns/net)"
  systemd=
  if [ -d /run/systemd/system ] && [ "$uid" = 0 ] && have systemctl; then
    systemd=yes
    say systemd yes
  fi
  for p in gzip sha256sum; do have "$p" && say have "$p"; done
  [ "$(cat /sys/fs/selinux/enforce 2>/dev/null)" = 1 ] && say selinux enforcing
  # In systemd's hybrid mode it is in `unified` (common/process/cgroup.h).
  for d in "$cgroups" "$cgroups/unified"; do
    [ -f "$d/cgroup.controllers" ] && { say cgroup 2; break; }
  done
  if [ "$uid" = 0 ]; then
    : "${prefix:=/opt/muster}" "${state:=/var/lib/muster/$role}"
  else
    : "${prefix:=$HOME/.muster}" "${state:=$HOME/.muster/state/$role}"
  fi
  say prefix "$prefix"
  say state "$state"
  disk prefix "$prefix"
  disk state "$state"
  dirs "$prefix"
  dirs "$state"
  [ "$(id -gn)" = "$user" ] && say own-group "$(id -g)"
  for p in $programs; do
    [ -f "$prefix/$version/bin/$p" ] && have sha256sum &&
      say program "$p $(sum < "$prefix/$version/bin/$p")"
  done
  [ -L "$prefix/current" ] && say current "$(readlink "$prefix/current")"
  pid=
  config=$prefix/$role/command-line
  unit=muster-$role.service
  if [ -n "$systemd" ]; then
    config=/etc/systemd/system/$unit
    pid=$(systemctl show -p MainPID --value "$unit" 2>/dev/null)
    [ "$pid" = 0 ] && pid=
    # What systemctl names is another file where a package has a unit of this name.
    if [ -f "$config" ]; then
      grep -qF "$mark" "$config" || say config-foreign yes
    else
      case $(systemctl show -p FragmentPath --value "$unit" 2>/dev/null) in
        ''|"$config") ;;
        *) say config-foreign yes ;;
      esac
    fi
  elif [ -f "$prefix/$role/supervisor" ]; then
    read -r boot supervisor began pid started < "$prefix/$role/supervisor"
    running() { [ "$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20)" = "$2" ]; }
    if [ "$boot" != "$(cat /proc/sys/kernel/random/boot_id)" ] ||
       ! running "$supervisor" "$began" || ! running "$pid" "$started"; then pid=; fi
  fi
  [ -f "$config" ] && say config-sha "$(sum < "$config")"
  if [ -n "$pid" ] && [ -d "/proc/$pid" ]; then
    say running "$pid"
    say running-exe "$(sum < "/proc/$pid/exe")"
    say running-words "$(sum < "/proc/$pid/cmdline")"
  fi
  if [ "$role" = agent ] && [ -f "$prefix/agent/credentials.pem" ]; then
    say credentials there
    if shown=$("$prefix/current/bin/muster" cert show "$prefix/agent/credentials.pem" 2>/dev/null)
    then say credentials valid; fi
    say credentials-for "$(printf '%s\n' "$shown" | sed -n 's/^for  *//p')"
    say credentials-until "$(printf '%s\n' "$shown" | sed -n 's/^until  *//p')"
    say credentials-cluster "$(printf '%s\n' "$shown" | sed -n 's/^cluster  *//p')"
    say credentials-key "$(printf '%s\n' "$shown" | sed -n 's/^key  *//p')"
  fi
  # Another program than the controller that runs listens at port $1, at one of the addresses of $2
  # or, where that is empty, at any.
  taken() {
    { [ -n "$pid" ] && ls -l "/proc/$pid/fd" | sed -n 's/.*socket:\[\([0-9]*\)\]$/own \1/p'
      cat /proc/net/tcp /proc/net/tcp6; } 2>/dev/null |
      awk -v port="$(printf '%04X' "$1")" -v at="$2" '
        $1 == "own" { own[$2] = 1; next }
        $4 == "0A" && !($10 in own) && split($2, place, ":") == 2 && place[2] == port &&
          (at == "" || index(at, " " place[1] " ")) { found = 1 }
        END { exit !found }'
  }
  if [ "$role" = controller ]; then
    read -r low < /proc/sys/net/ipv4/ip_unprivileged_port_start && say ports-from "$low"
    [ -n "$listen_port" ] && taken "$listen_port" "$listen_rivals" && say port-taken yes
    [ -n "$enrol_port" ] && taken "$enrol_port" "$enrol_rivals" && say enrol-port-taken yes
    if [ -n "$access" ]; then
      if [ ! -f "$access" ]; then say access missing
      elif [ ! -r "$access" ]; then say access unreadable; fi
    fi
    [ -d "$state/journal" ] &&
      say cluster "$(sed -n 's/.*"cluster_id": *"\([^"]*\)".*/\1/p' "$state/endpoint.json")"
  fi
  [ -n "$way_host" ] && way way "$way_host" "$way_port"
  [ -n "$enrol_host" ] && way enrol-way "$enrol_host" "$enrol_port"
  say end 1
}
main </dev/null 2>/dev/null
)sh";

// As /proc/net/tcp and tcp6 write it: words of 32 bits, the last byte of each first.
std::string kernel_text(std::span<const unsigned char> bytes) {
  std::string out;
  for (std::size_t word = 0; word < bytes.size(); word += 4)
    for (std::size_t i = 4; i-- > 0;) out += fmt::format("{:02X}", bytes[word + i]);
  return out;
}

// The addresses that nobody may listen at where the controller is to listen at `host`, each between
// blanks. Empty: any, for `host` is a wildcard or a name. A wildcard of IPv6 takes both families.
std::string rivals_of(const std::string& host) {
  std::array<unsigned char, 16> bytes{};
  constexpr std::string_view kAny = "00000000000000000000000000000000";
  if (::inet_pton(AF_INET, host.c_str(), bytes.data()) == 1) {
    const std::string text = kernel_text(std::span(bytes).first(4));
    if (text == kAny.substr(0, 8)) return {};
    return fmt::format(" {0} 0000000000000000FFFF0000{0} {1} {2} ", text, kAny.substr(0, 8), kAny);
  }
  if (::inet_pton(AF_INET6, host.c_str(), bytes.data()) != 1) return {};
  const std::string text = kernel_text(bytes);
  return text == kAny ? "" : fmt::format(" {} {} ", text, kAny);
}

bool plain_sha(std::string_view text) {
  return text.size() == 64 && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

template <class Number>
bool read_number(std::string_view text, Number& into) {
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, into);
  return !text.empty() && error == std::errc() && rest == end;
}

bool absolute(std::string_view text) { return text.starts_with('/') && text.size() <= 4096; }

// "UID GID MODE PATH"; empty: the host's stat says nothing.
bool read_dir(std::string_view value, std::vector<WayDir>& into) {
  if (value.empty()) return true;
  const auto word = [&] {
    const std::string_view out = value.substr(0, value.find(' '));
    value.remove_prefix(std::min(value.size(), out.size() + 1));
    return out;
  };
  WayDir dir;
  const bool owners = read_number(word(), dir.uid) && read_number(word(), dir.gid);
  const std::string_view mode = word();
  const auto [rest, error] = std::from_chars(mode.data(), mode.data() + mode.size(), dir.mode, 8);
  dir.path = value;
  into.push_back(dir);
  return owners && !mode.empty() && error == std::errc() && rest == mode.data() + mode.size() &&
         absolute(value);
}

WayState way_of(std::string_view text) {
  if (text == "open") return WayState::Open;
  if (text == "refused") return WayState::Refused;
  if (text == "silent") return WayState::Silent;
  if (text == "no-name") return WayState::NoName;
  if (text == "rejected") return WayState::Rejected;
  return WayState::NoRoute;
}

// Puts one line into the check. False: the value has not the form that the script gives it.
bool take(HostCheck& check, std::string_view key, std::string_view value) {
  const std::string text(value);
  const auto disk = [&](DiskCheck& into, std::string_view field) {
    if (field == "path") return into.path = text, absolute(value);
    // df prints no number where it fails; then the disk has no known room.
    if (field == "free") return value.empty() || read_number(value, into.free_kb);
    if (field == "options") return into.options = text, true;
    if (field == "type") return into.type = text, true;
    if (field == "writable") return into.writable = true;
    return true;
  };
  if (key == "uid") {
    if (!read_number(value, check.uid)) return false;
    check.places.root = check.uid == 0;
    return true;
  }
  if (key == "time") return read_number(value, check.time);
  if (key == "user") return check.user = text, !value.empty();
  if (key == "home") return check.home = text, true;
  if (key == "arch") return check.arch = text, !value.empty();
  if (key == "kernel") return check.kernel = text, true;
  if (key == "hostname") return check.hostname = text, true;
  if (key == "systemd") return check.systemd = check.places.systemd = true;
  if (key == "have") {
    check.gzip |= value == "gzip";
    check.sha256sum |= value == "sha256sum";
    return true;
  }
  if (key == "machine") return check.machine = text, true;
  if (key == "selinux") return check.selinux_enforcing = true;
  if (key == "cgroup") return check.cgroup2 = true;
  if (key == "prefix") return check.places.prefix = text, absolute(value);
  if (key == "state") return check.places.state_dir = text, absolute(value);
  if (key.starts_with("prefix-")) return disk(check.prefix_disk, key.substr(7));
  if (key.starts_with("state-")) return disk(check.state_disk, key.substr(6));
  if (key == "program") {
    const std::size_t blank = value.find(' ');
    if (blank == std::string_view::npos || !plain_sha(value.substr(blank + 1))) return false;
    check.programs[text.substr(0, blank)] = text.substr(blank + 1);
    return true;
  }
  if (key == "current") return check.current = text, true;
  if (key == "config-sha") return check.config_sha = text, plain_sha(value);
  if (key == "config-foreign") return check.config_foreign = true;
  if (key == "running") return check.running = true;
  if (key == "running-exe") return check.running_exe_sha = text, plain_sha(value);
  if (key == "running-words") return check.running_words_sha = text, plain_sha(value);
  if (key == "dir") return read_dir(value, check.way_dirs);
  if (key == "own-group") {
    std::uint32_t gid = 0;
    if (!read_number(value, gid)) return false;
    check.own_gid = gid;
    return true;
  }
  if (key == "ports-from") return read_number(value, check.ports_from);
  if (key == "port-taken") return check.port_taken = true;
  if (key == "enrol-port-taken") return check.enrol_port_taken = true;
  if (key == "access") return check.access_trouble = text, true;
  if (key == "cluster") return check.cluster = text, true;
  if (key == "credentials") {
    check.credentials_there = true;
    check.credentials_valid |= value == "valid";
    return true;
  }
  if (key == "credentials-for") return check.credentials_of = text, true;
  if (key == "credentials-until") return check.credentials_until = text, true;
  if (key == "credentials-cluster") return check.credentials_cluster = text, true;
  // A release before this field prints none.
  if (key == "credentials-key")
    return check.credentials_key = text, value.empty() || plain_sha(value);
  if (key == "way") return check.way = way_of(value), true;
  if (key == "enrol-way") return check.enrol_way = way_of(value), true;
  return true;  // a line of a newer script
}

}  // namespace

bool DiskCheck::has(std::string_view option) const {
  std::string_view rest = options;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(','));
    if (word == option) return true;
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
  }
  return false;
}

std::string check_script(const CheckQuery& query) {
  std::string programs;
  for (const std::string_view name : programs_of(query.wanted.role))
    programs += (programs.empty() ? "" : " ") + std::string(name);
  const auto number = [](unsigned value) { return value == 0 ? "" : fmt::format("{}", value); };
  std::string text = "LC_ALL=C; export LC_ALL; PATH=$PATH:/usr/sbin:/sbin; umask 077\n";
  const auto set = [&](std::string_view name, std::string_view value) {
    text += fmt::format("{}={}\n", name, shell_word(value));
  };
  set("role", to_string(query.wanted.role));
  set("prefix", query.wanted.login.prefix);
  set("state", query.wanted.state_dir);
  set("version", query.version);
  set("programs", programs);
  set("mark", kUnitMark);
  set("access", access_file(query.wanted));
  set("cgroups", "/sys/fs/cgroup");
  set("way_host", query.way_host);
  set("way_port", number(query.way_port));
  set("listen_port", number(query.listen_port));
  set("listen_rivals", rivals_of(query.listen_host));
  const bool agent = query.wanted.role == Role::Agent;
  set("enrol_host", agent ? query.enrol_host : "");
  set("enrol_rivals", agent ? "" : rivals_of(query.enrol_host));
  set("enrol_port", number(query.enrol_port));
  return text + std::string(kScript);
}

Result<HostCheck> parse_check(std::string_view output) {
  const auto broken = [](std::string_view why) {
    return fail(ErrorCode::DataLoss,
                fmt::format("reading the host's check: {}; does its login shell print other text, "
                            "or is it no POSIX shell?",
                            why));
  };
  if (output.size() > kCheckBytesMost) return broken("it has more than 64 KiB");
  HostCheck check;
  bool begun = false, ended = false;
  while (!output.empty()) {
    const std::string_view line = output.substr(0, output.find('\n'));
    output.remove_prefix(std::min(output.size(), line.size() + 1));
    const std::size_t blank = std::min(line.find(' '), line.size());
    const std::string_view key = line.substr(0, blank);
    const std::string_view value = line.substr(std::min(line.size(), blank + 1));
    if (!begun) {  // a login shell may greet first
      begun = key == "begin";
      continue;
    }
    if (ended) return broken("there are lines after its end");
    if (key == "end") {
      ended = true;
      continue;
    }
    if (value.size() > 4096 || has_controls(value) || !is_utf8(value) || !take(check, key, value))
      return broken(fmt::format("line '{}' has a value that makes no sense", spec::shown(key)));
  }
  if (!begun || !ended) return broken("it is not whole");
  if (check.places.prefix.empty() || check.places.state_dir.empty() || check.user.empty() ||
      check.arch.empty())
    return broken("it is not whole");
  return check;
}

}  // namespace muster::rollout
