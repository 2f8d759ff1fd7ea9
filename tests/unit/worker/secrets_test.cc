// The values of a job's secrets on their way into the worker.
#include "worker/secrets.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/io/unique_fd.h"

namespace muster::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

rundir::v1::Launch launch_with(const std::vector<std::string>& variables) {
  rundir::v1::Launch launch;
  for (const std::string& variable : variables) {
    auto& one = *launch.add_secrets();
    one.set_variable(variable);
    one.set_secret("s-" + variable);
  }
  return launch;
}

std::string bytes_of(const std::vector<std::string>& values) {
  rundir::v1::SecretValues given;
  for (const std::string& value : values) given.add_values(value);
  return given.SerializeAsString();
}

io::UniqueFd file_with(const std::string& bytes) {
  io::UniqueFd file(::memfd_create("secrets", MFD_CLOEXEC));
  EXPECT_EQ(::write(file.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  EXPECT_EQ(::lseek(file.get(), 0, SEEK_SET), 0);
  return file;
}

TEST(WorkerSecrets, EachVariableGetsItsValueAndTheDescriptorHasNothingMore) {
  const io::UniqueFd file = file_with(bytes_of({"one", "two\nlines"}));
  const auto read = read_secrets(launch_with({"A", "B"}), file.get());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_THAT(*read, ElementsAre("A=one", "B=two\nlines"));
  ASSERT_EQ(::lseek(file.get(), 0, SEEK_SET), 0);
  char byte = 0;
  EXPECT_EQ(::read(file.get(), &byte, 1), 0) << "it is /dev/null now";
}

// A container's tool passes the bytes on through a pipe.
TEST(WorkerSecrets, APipeWillDo) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const io::UniqueFd reads(ends[0]);
  {
    const io::UniqueFd writes(ends[1]);
    const std::string bytes = bytes_of({std::string(40'000, 'x')});
    ASSERT_EQ(::write(writes.get(), bytes.data(), bytes.size()),
              static_cast<ssize_t>(bytes.size()));
  }
  const auto read = read_secrets(launch_with({"A"}), reads.get());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_THAT(*read, ElementsAre("A=" + std::string(40'000, 'x')));
}

TEST(WorkerSecrets, WithoutSecretsNothingIsRead) {
  const io::UniqueFd file = file_with("of somebody else");
  const auto read = read_secrets(launch_with({}), file.get());
  ASSERT_TRUE(read);
  EXPECT_THAT(*read, IsEmpty());
  EXPECT_EQ(::lseek(file.get(), 0, SEEK_CUR), 0);
}

TEST(WorkerSecrets, WhatIsMissingOrNoAnswerIsRefused) {
  for (const std::string& bytes : {std::string(), bytes_of({"one"}), std::string("\xff\xff\xff")}) {
    const io::UniqueFd file = file_with(bytes);
    const auto read = read_secrets(launch_with({"A", "B"}), file.get());
    ASSERT_FALSE(read);
    EXPECT_THAT(read.error().message, HasSubstr("reading the job's secrets"));
  }
  const io::UniqueFd file = file_with(bytes_of({std::string(kSecretsBytesMost, 'x')}));
  const auto read = read_secrets(launch_with({"A"}), file.get());
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("they are too large"));
}

}  // namespace
}  // namespace muster::worker
