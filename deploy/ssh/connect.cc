#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "deploy/ssh/identity.h"
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
  // have waited too long, or counted too many keys. libssh2 sends it where it can.
  Result<std::unique_ptr<Session>> connect() {
    auto first = by_libssh2();
    const std::string openssh_may = std::move(first.openssh_may);
    Attempt attempt = attempt_of(std::move(first), "libssh2 can do what the host needs");
    if (!attempt.error) return std::move(attempt.session);
    if (!openssh_may.empty() && route_.program) {
      Attempt openssh = by_openssh_with_keys(openssh_may);
      if (!openssh.error) return std::move(openssh.session);
      if (!attempt.needs_password) {
        if (!may_answer()) return fail(std::move(*openssh.error));
        return with_passwords(std::move(openssh),
                              [&] { return attempt_of(by_openssh(openssh_may)); });
      }
    }
    return with_passwords(std::move(attempt), [&] {
      auto next = by_libssh2();
      // Behind a jump host with a password there may be a host that needs `ssh`.
      if (!next.openssh_may.empty() && !next.needs_password && route_.program && may_answer())
        return by_openssh_with_keys(next.openssh_may);
      return attempt_of(std::move(next), "passwords are sent by libssh2");
    });
  }

 private:
  // Ends what Prompts::ask() began.
  class Trial {
   public:
    Trial(Prompts& prompts, Question question)
        : prompts_(prompts), question_(std::move(question)) {}
    Trial(const Trial&) = delete;
    Trial& operator=(const Trial&) = delete;
    ~Trial() { prompts_.tried(question_); }

   private:
    Prompts& prompts_;
    Question question_;
  };
  struct Attempt {
    std::unique_ptr<Session> session;
    std::optional<Error> error;
    std::optional<std::size_t> needs_password;
  };

  // The account's password for the other hosts of the run is tried first; a host where it is
  // another one is asked for alone.
  Result<std::unique_ptr<Session>> with_passwords(Attempt attempt,
                                                  const std::function<Attempt()>& again) {
    std::vector<int> tries(route_.hops.size());
    std::optional<Trial> trial;  // until it is known whether the host takes the answer
    while (attempt.needs_password) {
      const std::size_t hop = *attempt.needs_password;
      if (!passwords_[hop]) {
        // Known from an earlier connection of this run.
        if (prompts_.knows(question_alone(hop))) alone_[hop] = true;
      } else if (prompts_.refused(password_question(hop), *passwords_[hop])) {
        alone_[hop] = true;
        tries[hop] = 0;
      }
      trial.reset();
      if (++tries[hop] > kPasswordTries) break;
      passwords_[hop] = prompts_.ask(password_question(hop));
      trial.emplace(prompts_, password_question(hop));
      if (!passwords_[hop]) break;
      attempt = again();
      if (attempt.error) continue;
      for (std::size_t i = 0; i < passwords_.size(); ++i)
        if (passwords_[i] && !alone_[i]) prompts_.accepted(password_question(i), *passwords_[i]);
      return std::move(attempt.session);
    }
    return fail(std::move(*attempt.error));
  }

  [[nodiscard]] Question question_alone(std::size_t hop) const {
    const std::string account = route_.hops[hop].text();
    const bool jump = hop + 1 < route_.hops.size();
    return {.kind = Question::Kind::Password,
            .subject = account,
            .text = "password of '" + account + "'" + (jump ? ", the jump host" : ""),
            .is_tried = true};
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
  OpenSshOutcome by_openssh(const std::string& why) {
    OpenSshRequest request{.route = route_,
                           .ssh_config = options_.ssh_config,
                           .accept_new = target_.accept_new,
                           .why = why,
                           .askpass_program = options_.askpass_program};
    for (const auto& one : passphrases_)
      request.answers.passphrases.push_back({.path = one.path, .secret = one.secret.copy()});
    for (std::size_t i = 0; i < passwords_.size(); ++i) {
      request.passwords.push_back(passwords_[i].has_value());
      if (!passwords_[i]) continue;
      const Hop& hop = route_.hops[i];
      AskpassAnswers::Password password{.accounts = {}, .secret = passwords_[i]->copy()};
      for (const std::string& name : {hop.alias, hop.host_name, hop.key_name()})
        if (!is_of_another(hop, name)) password.accounts.push_back(hop.user + "@" + name);
      request.answers.passwords.push_back(std::move(password));
    }
    return connect_by_openssh(std::move(request), deadline_after(options_.connect_timeout));
  }
  [[nodiscard]] bool may_answer() const { return !options_.askpass_program.empty(); }
  // `ssh` shows no port, so two hops may have the same name in its questions.
  [[nodiscard]] bool is_of_another(const Hop& hop, const std::string& name) const {
    return std::ranges::any_of(route_.hops, [&](const Hop& other) {
      return &other != &hop && other.user == hop.user &&
             (name == other.alias || name == other.host_name || name == other.key_name());
    });
  }
  // Where a hop would take a key, also with the passphrases of its key files.
  Attempt by_openssh_with_keys(const std::string& why) {
    auto outcome = by_openssh(why);
    for (std::size_t i = 0; i < route_.hops.size() && outcome.needs_key && may_answer(); ++i) {
      if (!ask_passphrases(route_.hops[*outcome.needs_key])) break;
      outcome = by_openssh(why);
    }
    return attempt_of(std::move(outcome));
  }
  // False: there is no further one, or no answer.
  bool ask_passphrases(const Hop& hop) {
    const std::size_t before = passphrases_.size();
    for (const std::string& path : hop.identity_files) {
      const auto key = read_identity(path);
      if (!key || !key->encrypted || !key->has_private) continue;
      if (std::ranges::find(passphrases_, path, &AskpassAnswers::Passphrase::path) !=
          passphrases_.end())
        continue;
      if (auto answer = prompts_.ask(passphrase_question(path)))
        passphrases_.push_back({.path = path, .secret = std::move(*answer)});
    }
    return passphrases_.size() > before;
  }
  Attempt attempt_of(Libssh2Outcome outcome, std::string why) {
    if (outcome.error)
      return {.session = nullptr,
              .error = std::move(outcome.error),
              .needs_password = outcome.needs_password};
    Transport transport{.kind = TransportKind::Libssh2,
                        .why = std::move(why),
                        .notes = std::move(outcome.notes),
                        .by_password = passwords_.back().has_value()};
    return {.session = std::make_unique<Libssh2Session>(
                std::move(outcome.wire), route_.hops.back().text(), std::move(transport)),
            .error = std::nullopt,
            .needs_password = std::nullopt};
  }
  static Attempt attempt_of(OpenSshOutcome outcome) {
    return {.session = std::move(outcome.session),
            .error = std::move(outcome.error),
            .needs_password = outcome.needs_password};
  }

  const Target& target_;
  const Options& options_;
  Prompts& prompts_;
  Route route_;
  std::vector<std::optional<Secret>> passwords_;  // by hop
  std::vector<bool> alone_;                       // by hop: its password is its own
  std::vector<AskpassAnswers::Passphrase> passphrases_;
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
