// Formats what is journaled about tokens, certificates and CAs, for the traces of the scenarios and
// of the simulator. Pure; to be derived from by what formats all events.
#pragma once

#include <fmt/format.h>

#include <string>

#include "controller/core/access/certificates.h"
#include "controller/core/model/event.h"

namespace muster::test {

struct AccessText {
  std::string operator()(const core::TokenCreated& event) const {
    return fmt::format("token {} created for {}", event.token,
                       event.user.empty() ? event.nodes : event.user);
  }
  std::string operator()(const core::TokenRevoked& event) const {
    return fmt::format("token {} revoked", event.token);
  }
  std::string operator()(const core::CertificateIssued& event) const {
    return fmt::format("certificate {} issued to {}", event.serial, core::text_of(event.subject));
  }
  std::string operator()(const core::CertificateRevoked& event) const {
    return fmt::format("certificates of {} revoked{}", core::text_of(event.subject),
                       event.key.empty() ? "" : ": one key");
  }
  std::string operator()(const core::AuthorityChanged& event) const {
    return fmt::format("CA {}: step {}", event.sha256, static_cast<int>(event.step));
  }
};

}  // namespace muster::test
