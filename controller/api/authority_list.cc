#include "controller/api/authority_list.h"

#include <algorithm>
#include <functional>

#include "common/proto/proto_time.h"

namespace muster::controller {
namespace {

// `host` is null where a connected node has reported nothing yet.
std::vector<std::string> connected_nodes(
    const core::Presence& presence,
    const std::function<bool(const v1::HostReading* host)>& wanted) {
  std::vector<std::string> names;
  for (const auto& [name, seen] : presence.nodes) {
    if (seen.connection.value == 0) continue;
    const v1::HostReading* host = seen.host ? &*seen.host : nullptr;
    const bool over_socket = host != nullptr && !host->has_certificate_ends();
    if (!over_socket && wanted(host)) names.push_back(name.str());
  }
  return names;
}

// It has certificates, and none of them was issued since the present CA signs. A node of the unix
// socket has none at all.
bool has_only_old_certificates(const core::AccessRecords& records, const NodeName& name) {
  const auto found =
      records.certificates.find({.role = core::SubjectRole::Node, .name = name.str()});
  return found != records.certificates.end() &&
         std::ranges::none_of(found->second, [&](const auto& entry) {
           return !entry.second.revoked_at &&
                  entry.second.issued_at >= records.authorities.signs_since;
         });
}

v1::Authority shown(const pki::Authority& authority, v1::AuthorityState state,
                    const core::AuthorityRecords& records) {
  const pki::Certificate& certificate = authority.certificate();
  v1::Authority one;
  one.set_sha256(certificate.digest());
  one.set_state(state);
  one.set_subject(certificate.common_name());
  *one.mutable_not_before() = to_proto(certificate.not_before());
  *one.mutable_not_after() = to_proto(certificate.not_after());
  one.set_imported(records.imported.contains(certificate.digest()));
  return one;
}

}  // namespace

std::vector<std::string> not_trusting(const core::Presence& presence, const std::string& digest) {
  return connected_nodes(presence, [&](const v1::HostReading* host) {
    return host == nullptr || std::ranges::find(host->trusted_authorities(), digest) ==
                                  host->trusted_authorities().end();
  });
}

std::vector<std::string> signed_by(const core::Ledger& ledger, const core::Presence& presence,
                                   const std::string& digest) {
  const auto has_old = [&](const v1::HostReading* host) {
    return host == nullptr || host->certificate_authority().empty() ||
           host->certificate_authority() == digest;
  };
  std::vector<std::string> names = connected_nodes(presence, has_old);
  for (const auto& [name, record] : ledger.nodes) {
    const auto seen = presence.nodes.find(name);
    const bool known = seen != presence.nodes.end();
    if (record.dead || (known && seen->second.connection.value != 0)) continue;
    if (!known || !seen->second.host) {
      if (has_only_old_certificates(ledger.access, name)) names.push_back(name.str());
    } else if (const v1::HostReading& host = *seen->second.host;
               host.has_certificate_ends() && has_old(&host)) {
      names.push_back(name.str());
    }
  }
  std::ranges::sort(names);
  return names;
}

std::uint32_t earlier_user_certificates(const core::AccessRecords& records, WallTime now) {
  std::uint32_t count = 0;
  for (const auto& [subject, keys] : records.certificates) {
    if (subject.role != core::SubjectRole::User) continue;
    count += static_cast<std::uint32_t>(std::ranges::count_if(keys, [&](const auto& entry) {
      const core::CertificateRecord& one = entry.second;
      return !one.revoked_at && one.not_after > now &&
             one.issued_at < records.authorities.signs_since;
    }));
  }
  return count;
}

google::protobuf::RepeatedPtrField<v1::Authority> list_authorities(
    const core::Ledger& ledger, const core::Presence& presence, const AuthoritiesNow& authorities,
    WallTime now) {
  const core::AuthorityRecords& records = ledger.access.authorities;
  const auto waiting = [](v1::Authority& one, const std::vector<std::string>& nodes) {
    one.mutable_waiting_nodes()->Assign(nodes.begin(), nodes.end());
  };
  google::protobuf::RepeatedPtrField<v1::Authority> all;
  const pki::AuthoritySet& set = authorities.set;
  if (set.next) {
    v1::Authority& one = *all.Add() = shown(*set.next, v1::AUTHORITY_STATE_NEXT, records);
    waiting(one, not_trusting(presence, one.sha256()));
  }
  v1::Authority& signing = *all.Add() = shown(set.signing, v1::AUTHORITY_STATE_SIGNING, records);
  if (!set.old) return all;
  waiting(signing, not_trusting(presence, signing.sha256()));
  v1::Authority& old = *all.Add() = shown(*set.old, v1::AUTHORITY_STATE_OLD, records);
  waiting(old, signed_by(ledger, presence, old.sha256()));
  old.set_user_certificates(earlier_user_certificates(ledger.access, now));
  return all;
}

v1::Authorities trusted_by_agents(const AuthoritiesNow& authorities) {
  v1::Authorities message;
  message.set_ca(authorities.trusted);
  message.set_signing(authorities.set.signing.certificate().digest());
  return message;
}

}  // namespace muster::controller
