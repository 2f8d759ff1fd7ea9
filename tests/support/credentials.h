// Makes credentials for tests that call a controller over TCP. A function without state.
#pragma once

#include <chrono>
#include <stdexcept>
#include <string>

#include "common/pki/authority.h"
#include "common/pki/credentials.h"

namespace muster::test {

// Valid for an hour. Throws where OpenSSL refuses.
inline pki::Credentials credentials(const pki::Authority& authority,
                                    const pki::Identity& identity) {
  const auto key = pki::Key::generate();
  if (!key) throw std::runtime_error(key.error().message);
  const auto issued =
      authority.issue(*key, identity, system_clock().now().wall, std::chrono::hours(1));
  if (!issued) throw std::runtime_error(issued.error().message);
  auto made =
      pki::parse_credentials(*key->private_pem() + issued->pem() + authority.certificate().pem());
  if (!made) throw std::runtime_error(made.error().message);
  return std::move(*made);
}

}  // namespace muster::test
