// Decides whether the key that a host shows is the recorded one, and says in a sentence what to do
// where it is not. It reads the known_hosts files of the hop and, with accept_new, records a new
// key in the first of them. One thread at a time; blocking.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "deploy/ssh/known_hosts.h"
#include "deploy/ssh/ssh_config.h"

namespace muster::ssh {

class HostCheck {
 public:
  static Result<HostCheck> open(const Hop& hop, bool accept_new);

  // The types of the recorded keys, to ask for first.
  [[nodiscard]] std::vector<std::string> recorded_types() const;
  // Errors (reasons without a context) are NotAllowed, or those of record_key. With accept_new, a
  // note says which key was recorded.
  Result<void> check(std::string_view blob);
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  HostCheck(const Hop& hop, bool accept_new, KnownHosts hosts)
      : hop_(hop), accept_new_(accept_new), hosts_(std::move(hosts)), notes_(hosts_.problems()) {}
  Hop hop_;
  bool accept_new_;
  KnownHosts hosts_;
  std::vector<std::string> notes_;
};

// The sentences, which the other transport uses, too. `shown` is "TYPE SHA256:...".
std::string unknown_key_text(const std::string& shown, const std::string& help);
std::string changed_key_text(const std::string& shown, const std::string& place,
                             const std::string& file, const std::string& entry);
std::string revoked_key_text(const std::string& shown, const std::string& place);

}  // namespace muster::ssh
