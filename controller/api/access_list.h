// The ledger's tokens and certificates as messages of the API. Pure; on the shell's strand.
#pragma once

#include <string>

#include "common/base/error.h"
#include "controller/core/model/access_records.h"
#include "muster/v1/certificate_service.pb.h"

namespace muster::controller {

[[nodiscard]] v1::Token to_v1(const std::string& id, const core::TokenRecord& token);
[[nodiscard]] v1::Certificate to_v1(const core::Subject& subject, const std::string& key,
                                    const core::CertificateRecord& certificate);

void list_tokens(const core::AccessRecords& records, v1::ListTokensResponse& response);
// A page ends at page_size certificates, or at `bytes`. InvalidArgument for a page token that is
// none.
Result<void> list_certificates(const core::AccessRecords& records,
                               const v1::ListCertificatesRequest& request, std::size_t bytes,
                               v1::ListCertificatesResponse& response);

}  // namespace muster::controller
