#include "common/rpc/grpc_log.h"

#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <gtest/gtest.h>

#include <cstdlib>

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

}  // namespace
}  // namespace muster::rpc
