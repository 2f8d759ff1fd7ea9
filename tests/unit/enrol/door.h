// A real enrolment port on a free port of 127.0.0.1, with a CA of its own, for the tests of this
// folder. In place of the ledger it has `answer`, which sees every sound request. Thread-safe.
#pragma once

#include <gtest/gtest.h>

#include <csignal>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/enrol/client.h"
#include "common/pki/authority.h"
#include "common/pki/authority_dir.h"
#include "controller/enrol/port.h"
#include "tests/support/credentials.h"

namespace muster::test {

struct Asked {
  std::string node, token, secret, registered, public_key;
  std::optional<Duration> lifetime = {};  // of a login
};

class Door {
 public:
  using Answer = std::function<void(
      const Asked&, std::move_only_function<void(Result<controller::EnrolmentAnswer>)>)>;

  explicit Door(controller::EnrolLimits limits = {}, Answer answer = {},
                const std::string& address = "127.0.0.1:0")
      : answer_(std::move(answer)) {
    std::signal(SIGPIPE, SIG_IGN);
    auto own = pki::issue_controller(authority_, "c1", system_clock().now().wall);
    auto port = controller::EnrolPort::start(
        address, *own,
        {.join =
             [this](controller::JoinAsk ask, controller::Enrolments::Done done) {
               on_asked({.node = ask.node,
                         .token = ask.token,
                         .secret = ask.secret,
                         .registered = {},
                         .public_key = ask.public_key},
                        std::move(done));
             },
         .renew =
             [this](controller::RenewAsk ask, controller::Enrolments::Done done) {
               on_asked({.node = ask.node,
                         .token = {},
                         .secret = {},
                         .registered = ask.registered,
                         .public_key = ask.public_key},
                        std::move(done));
             },
         .login =
             [this](controller::LoginAsk ask, controller::Enrolments::Done done) {
               on_asked({.node = {},
                         .token = ask.token,
                         .secret = ask.secret,
                         .registered = {},
                         .public_key = ask.public_key,
                         .lifetime = ask.lifetime},
                        std::move(done));
             }},
        system_clock(), limits);
    if (!port) throw std::runtime_error(port.error().message);
    port_ = std::move(*port);
  }

  [[nodiscard]] const pki::Authority& authority() const { return authority_; }
  [[nodiscard]] const std::string& address() const { return port_->bound(); }
  [[nodiscard]] std::uint16_t port() const {
    return static_cast<std::uint16_t>(std::stoi(address().substr(address().rfind(':') + 1)));
  }
  [[nodiscard]] enrol::Token token() const {
    return {.id = "t1", .secret = "planted-secret", .ca_digest = authority_.certificate().digest()};
  }
  [[nodiscard]] std::vector<Asked> asked() const {
    const std::lock_guard lock(mutex_);
    return asked_;
  }
  void stop() { port_->stop(); }
  [[nodiscard]] Result<void> show(const std::vector<pki::Credentials>& own) {
    return port_->replace(own);
  }

  // What the controller would answer: a certificate for an hour. To a login: user ann's.
  [[nodiscard]] Result<controller::EnrolmentAnswer> issued(const Asked& asked) const {
    const auto key = pki::Key::from_public_der(asked.public_key);
    if (!key) return fail(Error(key.error()));
    const auto made = authority_.issue(*key,
                                       {.cluster = "c1",
                                        .role = asked.lifetime ? pki::Role::User : pki::Role::Node,
                                        .name = asked.lifetime ? "ann" : asked.node},
                                       system_clock().now().wall, std::chrono::hours(1));
    if (!made) return fail(Error(made.error()));
    controller::EnrolmentAnswer answer{.certificate = made->pem(),
                                       .ca = authority_.certificate().pem()};
    if (asked.lifetime) {
      answer.user = "ann";
      answer.addresses = {"127.0.0.1:7070"};
    }
    return answer;
  }

 private:
  void on_asked(Asked asked, controller::Enrolments::Done done) {
    {
      const std::lock_guard lock(mutex_);
      asked_.push_back(asked);
    }
    if (answer_) return answer_(asked, std::move(done));
    done(issued(asked));
  }

  pki::Authority authority_ = *pki::Authority::make("c1", system_clock().now().wall);
  Answer answer_;
  mutable std::mutex mutex_;
  std::vector<Asked> asked_;
  std::unique_ptr<controller::EnrolPort> port_;
};

}  // namespace muster::test
