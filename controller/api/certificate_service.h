// CertificateService issues certificates for nodes and users. run() in main.cc owns it. gRPC's
// threads call it; a signature takes a fraction of a millisecond, and is made there.
//
// Nothing is kept of what was issued but a line in the log: a certificate counts until it ends.
#pragma once

#include "common/base/time.h"
#include "common/pki/authority.h"
#include "muster/v1/certificate_service.grpc.pb.h"

namespace muster::controller {

class CertificateService final : public v1::CertificateService::CallbackService {
 public:
  // Both must outlive the service. Without an authority its error is the answer.
  CertificateService(const Result<pki::Authority>& authority, const Clock& clock)
      : authority_(authority), clock_(clock) {}

  grpc::ServerUnaryReactor* IssueCertificate(grpc::CallbackServerContext*,
                                             const v1::IssueCertificateRequest*,
                                             v1::IssueCertificateResponse*) override;

 private:
  Result<void> issue(const v1::IssueCertificateRequest& request,
                     v1::IssueCertificateResponse& response) const;

  const Result<pki::Authority>& authority_;
  const Clock& clock_;
};

}  // namespace muster::controller
