// Converts between the certificates of common/pki and those that the core decides about. Pure; any
// thread.
#pragma once

#include <optional>

#include "common/pki/authority.h"
#include "common/pki/certificate.h"
#include "common/pki/identity.h"
#include "controller/core/model/access_input.h"

namespace muster::controller {

// Nothing: the controller's own identity.
[[nodiscard]] std::optional<core::Subject> subject_of(const pki::Identity& identity);
[[nodiscard]] pki::Identity identity_of(const core::Subject& subject, std::string cluster);
[[nodiscard]] core::NewCertificate record_of(const pki::Certificate& certificate,
                                             const pki::Authority& signer);

}  // namespace muster::controller
