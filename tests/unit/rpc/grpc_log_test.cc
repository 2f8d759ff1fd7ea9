#include "common/rpc/grpc_log.h"

#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <string_view>

namespace muster::rpc {
namespace {

// In a child: the setting is the process's own.
[[noreturn]] void log_an_error(bool silence) {
  if (silence) silence_grpc();
  ::grpc_init();  // it reads GRPC_VERBOSITY
  gpr_log(GPR_ERROR, "a line of gRPC's own");
  std::_Exit(0);
}

TEST(GrpcLog, IsSilentUnlessTheEnvironmentAsksForIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  ::unsetenv("GRPC_VERBOSITY");
  EXPECT_EXIT(log_an_error(false), testing::ExitedWithCode(0), "a line of gRPC's own");
  EXPECT_EXIT(log_an_error(true), testing::ExitedWithCode(0), "^$");
  EXPECT_EXIT(
      {
        ::setenv("GRPC_VERBOSITY", "ERROR", 1);
        log_an_error(true);
      },
      testing::ExitedWithCode(0), "a line of gRPC's own");
}

TEST(GrpcLog, AFailedHandshakeIsHeard) {
  const auto hear = [] {
    silence_grpc();
    ::grpc_init();
    {
      const FailedHandshakes heard(
          [](std::string_view why) { std::cerr << "heard: " << why << '\n'; });
      gpr_log(GPR_ERROR, "Handshake failed with fatal error %s: %s.", "SSL_ERROR_SSL",
              "error:0A000086:SSL routines::certificate verify failed");
      gpr_log(GPR_ERROR, "another line: with a colon");
    }
    gpr_log(GPR_ERROR, "Handshake failed with fatal error %s: %s.", "SSL_ERROR_SSL", "a:late one");
    std::_Exit(0);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  ::unsetenv("GRPC_VERBOSITY");
  EXPECT_EXIT(hear(), testing::ExitedWithCode(0), "^heard: certificate verify failed\n$");
}

}  // namespace
}  // namespace muster::rpc
