#include "deploy/ssh/libssh2_connect.h"
#include "deploy/ssh/libssh2_session.h"
#include "deploy/ssh/openssh_session.h"
#include "deploy/ssh/route.h"
#include "deploy/ssh/session.h"

namespace muster::ssh {
namespace {

class Choice {
 public:
  Choice(const Target& target, const Options& options, Prompts& prompts, Route route)
      : target_(target), options_(options), prompts_(prompts), route_(std::move(route)) {}

  Result<std::unique_ptr<Session>> connect() {
    auto first = by_libssh2(nullptr);
    if (!first.error) return session(std::move(first), "libssh2 can do what the host needs");
    if (!first.openssh_may.empty() && route_.program) {
      auto openssh = by_openssh(first.openssh_may);
      if (openssh || !first.needs_password) return openssh;
    }
    if (!first.needs_password) return fail(std::move(*first.error));
    const std::string account = route_.hops.back().text();
    const auto password = prompts_.ask({.kind = Question::Kind::Password,
                                        .subject = account,
                                        .text = "password of '" + account + "'"});
    if (!password) return fail(std::move(*first.error));
    // A new connection: the host may have waited too long, or counted too many keys.
    auto second = by_libssh2(&*password);
    if (second.error) return fail(std::move(*second.error));
    return session(std::move(second), "passwords are sent by libssh2");
  }

 private:
  Libssh2Outcome by_libssh2(const Secret* password) {
    return connect_by_libssh2({.route = route_,
                               .accept_new = target_.accept_new,
                               .deadline = deadline_after(options_.connect_timeout),
                               .password = password},
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
                                                      .notes = std::move(outcome.notes)});
  }

  const Target& target_;
  const Options& options_;
  Prompts& prompts_;
  Route route_;
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
