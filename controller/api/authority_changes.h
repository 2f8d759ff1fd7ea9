// AuthorityChanges lists the CAs of the cluster and changes them: the work of ListAuthorities and
// ChangeAuthority. run() in main.cc owns it. gRPC's threads call it; files are written on the work
// loop, and the shell decides:
//
//   strand   is it this step's turn, and are the nodes ready for it?
//   work     a next CA is made or read, and is durable in next.pem
//   strand   AuthorityChanged is durable: from here on the step counts
//   work     the files follow (common/pki/authority_files.h), then what the controller shows and
//            trusts; then the answer
//
// One change runs at a time. A crash before the fact leaves a file that the next start removes; a
// crash after it leaves files that the next start puts right.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>

#include "common/async/loop.h"
#include "common/base/time.h"
#include "controller/access/authorities.h"
#include "controller/shell/shell.h"
#include "muster/v1/certificate_service.pb.h"

namespace muster::controller {

class AuthorityChanges {
 public:
  // After each step, on the work loop: what the controller has from now on.
  using OnChanged = std::function<void(const AuthoritiesNow&)>;

  // All must outlive it. `dir`: of the CA's files.
  AuthorityChanges(Shell& shell, Authorities& authorities, async::Loop& work, const Clock& clock,
                   std::filesystem::path dir, OnChanged on_changed)
      : shell_(shell),
        authorities_(authorities),
        work_(work),
        clock_(clock),
        dir_(std::move(dir)),
        on_changed_(std::move(on_changed)) {}

  // Both finish the call, now or later; request and response live until then.
  void list(grpc::ServerUnaryReactor* reactor, v1::ListAuthoritiesResponse& response);
  void change(grpc::ServerUnaryReactor* reactor, const v1::ChangeAuthorityRequest& request,
              v1::ChangeAuthorityResponse& response, const std::string& actor);

 private:
  struct Change;
  using ChangePtr = std::shared_ptr<Change>;
  void check(const ChangePtr& change, const View& view);
  void prepare(const ChangePtr& change);
  void decide(const ChangePtr& change);
  void carry_out(const ChangePtr& change, const pki::AuthorityPlan& plan);
  void finish(const ChangePtr& change, const grpc::Status& status);

  Shell& shell_;
  Authorities& authorities_;
  async::Loop& work_;
  const Clock& clock_;
  const std::filesystem::path dir_;
  const OnChanged on_changed_;
  std::atomic<bool> busy_ = false;
};

}  // namespace muster::controller
