// Regression story: a method that is added to a service and to no table would be open to everybody,
// or to nobody. So the table is compared with the descriptors of all services.
#include "controller/access/call_rules.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "muster/v1/agent_service.pb.h"
#include "muster/v1/certificate_service.pb.h"
#include "muster/v1/job_service.pb.h"
#include "muster/v1/node_service.pb.h"
#include "muster/v1/secret_service.pb.h"
#include "muster/v1/store_service.pb.h"
#include "tests/support/checkout.h"

namespace muster::controller {
namespace {

using google::protobuf::FileDescriptor;

std::vector<const FileDescriptor*> files_with_services() {
  return {v1::Hello::descriptor()->file(), v1::IssueCertificateRequest::descriptor()->file(),
          v1::SubmitJobRequest::descriptor()->file(), v1::ListNodesRequest::descriptor()->file(),
          v1::SetSecretRequest::descriptor()->file(), v1::SetStoreRequest::descriptor()->file()};
}

// The methods of muster's services.
std::set<std::string> methods() {
  std::set<std::string> found;
  for (const FileDescriptor* file : files_with_services()) {
    for (int i = 0; i < file->service_count(); ++i)
      for (int j = 0; j < file->service(i)->method_count(); ++j)
        found.insert("/" + file->service(i)->full_name() + "/" +
                     file->service(i)->method(j)->name());
  }
  return found;
}

pki::Identity identity(pki::Role role) {
  return {.cluster = "c0ffee", .role = role, .name = role == pki::Role::Controller ? "" : "x"};
}

TEST(CallRules, KnowEveryFileWithAService) {
  std::set<std::string> known, found;
  for (const FileDescriptor* file : files_with_services()) known.insert(file->name());
  const std::filesystem::path proto = test::checkout("proto");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(proto)) {
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("service "))
        found.insert(entry.path().lexically_relative(proto).string());
    }
  }
  EXPECT_EQ(known, found);
}

TEST(CallRules, ListEveryMethodOnceAndNoOther) {
  std::set<std::string> listed;
  for (const CallRule& rule : call_rules()) {
    if (rule.method.starts_with("/grpc.")) continue;
    EXPECT_TRUE(listed.emplace(rule.method).second) << rule.method << " is listed twice";
  }
  EXPECT_EQ(listed, methods());
}

// What each role may call, written down a second time, by service.
TEST(CallRules, EveryRoleByEveryMethod) {
  const std::map<std::string, std::set<pki::Role>> roles = {
      {"/muster.v1.AgentService/", {pki::Role::Node}},
      {"/muster.v1.CertificateService/", {}},
      {"/muster.v1.JobService/", {pki::Role::User}},
      {"/muster.v1.NodeService/", {pki::Role::User}},
      {"/muster.v1.SecretService/", {pki::Role::User}},
      {"/muster.v1.StoreService/", {pki::Role::User}}};
  std::size_t checked = 0;
  for (const std::string& method : methods()) {
    const auto service = roles.find(method.substr(0, method.rfind('/') + 1));
    ASSERT_NE(service, roles.end()) << method;
    for (const pki::Role role : {pki::Role::Controller, pki::Role::Node, pki::Role::User}) {
      const auto allowed = may_call(identity(role), UserRole::Admin, method);
      // The one method of the service that is not for the socket alone.
      const bool is_admins = method == "/muster.v1.CertificateService/CreateToken";
      EXPECT_EQ(allowed.has_value(),
                service->second.contains(role) || (is_admins && role == pki::Role::User))
          << method;
      if (!allowed) {
        EXPECT_EQ(allowed.error().code, ErrorCode::NotAllowed);
        EXPECT_NE(allowed.error().message.find(method.substr(1)), std::string::npos)
            << allowed.error().message;
      }
      ++checked;
    }
  }
  EXPECT_EQ(checked, methods().size() * 3);
}

TEST(CallRules, UnknownMethodsAreNobodys) {
  for (const char* method : {"", "/", "/muster.v1.JobService/", "/muster.v1.JobService/getjob",
                             "muster.v1.JobService/GetJob", "/muster.v1.JobService/GetJob "})
    for (const pki::Role role : {pki::Role::Controller, pki::Role::Node, pki::Role::User})
      EXPECT_EQ(may_call(identity(role), UserRole::Admin, method).error().code,
                ErrorCode::Unsupported)
          << method;
}

}  // namespace
}  // namespace muster::controller
