#include "controller/access/subject.h"

namespace muster::controller {

std::optional<core::Subject> subject_of(const pki::Identity& identity) {
  switch (identity.role) {
    case pki::Role::Node:
      return core::Subject{.role = core::SubjectRole::Node, .name = identity.name};
    case pki::Role::User:
      return core::Subject{.role = core::SubjectRole::User, .name = identity.name};
    case pki::Role::Controller: break;
  }
  return std::nullopt;
}

pki::Identity identity_of(const core::Subject& subject, std::string cluster) {
  return {.cluster = std::move(cluster),
          .role = subject.role == core::SubjectRole::Node ? pki::Role::Node : pki::Role::User,
          .name = subject.name};
}

core::NewCertificate record_of(const pki::Certificate& certificate, const pki::Authority& signer) {
  return {.serial = certificate.serial(),
          .key = certificate.public_digest(),
          .not_before = certificate.not_before(),
          .not_after = certificate.not_after(),
          .authority = signer.certificate().digest()};
}

}  // namespace muster::controller
