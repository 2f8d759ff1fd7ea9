// Gzip files that this program and others write and read.
#include "common/io/gzip.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>

#include "common/io/unique_fd.h"

namespace muster::io {
namespace {

std::string zipped(const std::vector<std::string>& pieces) {
  std::string pattern = "/tmp/muster-gzip-XXXXXX";
  const UniqueFd fd(::mkstemp(pattern.data()));
  ::unlink(pattern.c_str());
  GzipWriter writer(fd.get());
  for (const std::string& piece : pieces) EXPECT_TRUE(writer.write(piece));
  EXPECT_TRUE(writer.finish());
  std::string file(static_cast<std::size_t>(::lseek(fd.get(), 0, SEEK_END)), '\0');
  EXPECT_EQ(::pread(fd.get(), file.data(), file.size(), 0), static_cast<ssize_t>(file.size()));
  return file;
}

Result<std::string> unzipped(std::string_view file) {
  std::string text;
  auto done = read_gzip(file, [&](std::string_view piece) {
    text += piece;
    return true;
  });
  if (!done) return fail(std::move(done.error()));
  return text;
}

TEST(Gzip, GivesBackWhatWasWritten) {
  std::string long_text;
  for (int i = 0; i < 100'000; ++i) long_text += std::to_string(i * 7919) + "\n";
  EXPECT_EQ(*unzipped(zipped({"a", "", "bc\n"})), "abc\n");
  EXPECT_EQ(*unzipped(zipped({long_text, long_text})), long_text + long_text);
  EXPECT_EQ(*unzipped(zipped({})), "");
  EXPECT_EQ(zipped({"abc"}), zipped({"a", "bc"})) << "the same bytes, the same file";
}

TEST(Gzip, ATornOrDamagedFileIsAnError) {
  std::string file = zipped({std::string(100'000, 'x') + "end"});
  EXPECT_EQ(unzipped(std::string_view(file).substr(0, file.size() - 1)).error().code,
            ErrorCode::DataLoss);
  EXPECT_EQ(unzipped("plain text").error().code, ErrorCode::DataLoss);
  EXPECT_EQ(unzipped("").error().code, ErrorCode::DataLoss);
  file[file.size() - 6] ^= 1;  // in the checksum
  EXPECT_EQ(unzipped(file).error().code, ErrorCode::DataLoss);
}

TEST(Gzip, AReaderMayStop) {
  std::size_t calls = 0;
  EXPECT_TRUE(read_gzip(zipped({std::string(1'000'000, 'x')}), [&](std::string_view) {
    ++calls;
    return false;
  }));
  EXPECT_EQ(calls, 1U);
}

}  // namespace
}  // namespace muster::io
