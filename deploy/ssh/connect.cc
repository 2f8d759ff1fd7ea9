#include "deploy/ssh/libssh2_connect.h"
#include "deploy/ssh/libssh2_session.h"
#include "deploy/ssh/openssh_session.h"
#include "deploy/ssh/route.h"
#include "deploy/ssh/session.h"

namespace muster::ssh {
namespace {

constexpr int kPasswordTries = 3;  // as ssh's NumberOfPasswordPrompts

class Choice {
 public:
  Choice(const Target& target, const Options& options, Prompts& prompts, Route route)
      : target_(target),
        options_(options),
        prompts_(prompts),
        route_(std::move(route)),
        passwords_(route_.hops.size()),
        alone_(route_.hops.size()) {
    // A jump host is not one of the fleet, so it gets no password of it.
    for (std::size_t hop = 0; hop + 1 < alone_.size(); ++hop) alone_[hop] = true;
  }

  // A password is asked only where nothing else is left. Then it is a new connection: the host may
  // have waited too long, or counted too many keys. The account's password for the other hosts of
  // the run is tried first; a host where it is another one is asked for alone.
  Result<std::unique_ptr<Session>> connect() {
    auto outcome = by_libssh2();
    if (!outcome.error) return session(std::move(outcome), "libssh2 can do what the host needs");
    if (!outcome.openssh_may.empty() && route_.program) {
      auto openssh = by_openssh(outcome.openssh_may);
      if (openssh || !outcome.needs_password) return openssh;
    }
    std::vector<int> tries(route_.hops.size());
    while (outcome.needs_password) {
      const std::size_t hop = *outcome.needs_password;
      if (!passwords_[hop]) {
        // Known from an earlier connection of this run.
        if (prompts_.knows(question_alone(hop))) alone_[hop] = true;
      } else if (prompts_.refused(password_question(hop), *passwords_[hop])) {
        alone_[hop] = true;
        tries[hop] = 0;
      }
      if (++tries[hop] > kPasswordTries) break;
      passwords_[hop] = prompts_.ask(password_question(hop));
      if (!passwords_[hop]) break;
      outcome = by_libssh2();
      if (outcome.error) continue;
      for (std::size_t i = 0; i < passwords_.size(); ++i)
        if (passwords_[i] && !alone_[i]) prompts_.accepted(password_question(i), *passwords_[i]);
      return session(std::move(outcome), "passwords are sent by libssh2");
    }
    return fail(std::move(*outcome.error));
  }

 private:
  [[nodiscard]] Question question_alone(std::size_t hop) const {
    const std::string account = route_.hops[hop].text();
    const bool jump = hop + 1 < route_.hops.size();
    return {.kind = Question::Kind::Password,
            .subject = account,
            .text = "password of '" + account + "'" + (jump ? ", the jump host" : "")};
  }
  [[nodiscard]] Question password_question(std::size_t hop) const {
    Question question = question_alone(hop);
    if (alone_[hop]) return question;
    question.subject = route_.hops[hop].user;
    question.text += ", and of '" + question.subject + "' on the other hosts";
    return question;
  }
  Libssh2Outcome by_libssh2() {
    return connect_by_libssh2({.route = route_,
                               .accept_new = target_.accept_new,
                               .deadline = deadline_after(options_.connect_timeout),
                               .passwords = passwords_},
                              prompts_);
  }
  Result<std::unique_ptr<Session>> by_openssh(const std::string& why) {
    return connect_by_openssh({.route = route_,
                               .ssh_config = options_.ssh_config,
                               .accept_new = target_.accept_new,
                               .why = why},
                              deadline_after(options_.connect_timeout));
  }
  Result<std::unique_ptr<Session>> session(Libssh2Outcome outcome, std::string why) {
    return std::make_unique<Libssh2Session>(std::move(outcome.wire), route_.hops.back().text(),
                                            Transport{.kind = TransportKind::Libssh2,
                                                      .why = std::move(why),
                                                      .notes = std::move(outcome.notes),
                                                      .by_password =
                                                          passwords_.back().has_value()});
  }

  const Target& target_;
  const Options& options_;
  Prompts& prompts_;
  Route route_;
  std::vector<std::optional<Secret>> passwords_;  // by hop
  std::vector<bool> alone_;                       // by hop: its password is its own
};

}  // namespace

Result<std::unique_ptr<Session>> connect(const Target& target, const Options& options,
                                         Prompts& prompts) {
  auto route = find_route(target, options);
  if (!route) return fail(std::move(route).error());
  const Hop& last = route->hops.back();
  const std::string doing = "connecting to '" + last.text() + "'" +
                            (last.host_name == last.alias ? "" : " (" + last.host_name + ")") +
                            " by SSH";
  auto session = Choice(target, options, prompts, std::move(*route)).connect();
  if (!session) return fail(std::move(session).error().in(doing));
  return session;
}

}  // namespace muster::ssh
