#include "deploy/ssh/host_check.h"

#include "common/text/shell_word.h"
#include "deploy/ssh/host_key.h"
#include "deploy/ssh/host_names.h"
#include "deploy/ssh/known_hosts_file.h"

namespace muster::ssh {

Result<HostCheck> HostCheck::open(const Hop& hop, bool accept_new) {
  auto hosts = read_known_hosts(hop.known_hosts);
  if (!hosts) return fail(std::move(hosts).error());
  return HostCheck(hop, accept_new, std::move(*hosts));
}

std::vector<std::string> HostCheck::recorded_types() const {
  return hosts_.types(hop_.key_name(), hop_.key_port());
}

Result<void> HostCheck::check(std::string_view blob) {
  const std::string type = key_type(blob);
  if (type.empty() || blob.size() > kKeyBytesMost)
    return fail(ErrorCode::NotAllowed, "the host's key cannot be read");
  const std::string shown = type + " " + fingerprint(blob);
  KeyAnswer answer = hosts_.check(hop_.key_name(), hop_.key_port(), blob);
  if (answer.state == KeyState::Unknown && accept_new_ && !hop_.known_hosts.empty()) {
    const std::string& file = hop_.known_hosts.front();
    auto before = record_key(file, {.name = hop_.key_name(),
                                    .port = hop_.key_port(),
                                    .blob = blob,
                                    .hash_name = hop_.hash_known_hosts});
    if (!before) return fail(std::move(before).error());
    if (before->state == KeyState::Unknown) {
      notes_.push_back("the key of host '" + hop_.key_name() + "' is new, and is recorded in '" +
                       file + "': " + shown);
      return {};
    }
    answer = std::move(*before);
  }
  switch (answer.state) {
    case KeyState::Known: return {};
    case KeyState::Unknown: {
      const auto line = known_hosts_line(hop_.key_name(), hop_.key_port(), blob, {});
      if (!line) return fail(Error(line.error()));
      const std::string file = hop_.known_hosts.empty() ? "known_hosts" : hop_.known_hosts.front();
      return fail(ErrorCode::NotAllowed,
                  unknown_key_text(shown, "or add this line to '" + file +
                                              "': " + line->substr(0, line->size() - 1)));
    }
    case KeyState::Changed:
      return fail(ErrorCode::NotAllowed,
                  changed_key_text(shown, answer.at.text() + " (" + answer.recorded_type + ")",
                                   answer.at.file, host_entry(hop_.key_name(), hop_.key_port())));
    case KeyState::Revoked:
      return fail(ErrorCode::NotAllowed, revoked_key_text(shown, answer.at.text()));
  }
  return {};
}

std::string unknown_key_text(const std::string& shown, const std::string& help) {
  return "the host's key is not known: " + shown +
         "; compare it with what `ssh-keygen -lf` prints there for "
         "/etc/ssh/ssh_host_*_key.pub, then set 'host_keys: accept_new' for it in the hosts "
         "file, " +
         help;
}

std::string changed_key_text(const std::string& shown, const std::string& place,
                             const std::string& file, const std::string& entry) {
  return "the host's key has changed: it shows " + shown + ", and another key is recorded at " +
         place +
         "; this may be an attack; only if you know that the host has new keys, remove the old "
         "ones: ssh-keygen -f " +
         shell_word(file) + " -R " + shell_word(entry);
}

std::string revoked_key_text(const std::string& shown, const std::string& place) {
  return "the host's key is revoked at " + place + ": " + shown +
         "; do not use this host before it has new keys";
}

}  // namespace muster::ssh
