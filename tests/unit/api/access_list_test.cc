// The lists of tokens and certificates: their order, and their pages.
#include "controller/api/access_list.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "controller/core/access/fold.h"

namespace muster::controller {
namespace {

constexpr std::size_t kBytes = 3 << 20;

core::AccessRecords records(std::size_t certificates) {
  core::AccessRecords made;
  WallTime at(std::chrono::seconds(1'800'000'000));
  for (std::size_t i = 0; i < certificates; ++i) {
    if (i % 3 != 0) at += std::chrono::seconds(1);  // some are of one moment
    core::fold_access(
        made, at,
        core::CertificateIssued{
            .serial = fmt::format("{:08x}", i),
            .subject = {.role = i % 2 == 0 ? core::SubjectRole::Node : core::SubjectRole::User,
                        .name = fmt::format("x{}", i % 7)},
            .key = fmt::format("{:064x}", i),
            .not_before = at,
            .not_after = at + std::chrono::hours(24 * 30),
            .token = {},
            .actor = "owner"});
  }
  return made;
}

// The serials of all pages.
std::vector<std::string> paged(const core::AccessRecords& from, std::uint32_t size,
                               std::size_t bytes) {
  std::vector<std::string> serials;
  v1::ListCertificatesRequest request;
  request.set_page_size(size);
  for (int pages = 0; pages < 1'000; ++pages) {
    v1::ListCertificatesResponse page;
    EXPECT_TRUE(list_certificates(from, request, bytes, page));
    for (const auto& one : page.certificates()) serials.push_back(one.serial());
    if (page.next_page_token().empty()) return serials;
    EXPECT_FALSE(page.certificates().empty());
    request.set_page_token(page.next_page_token());
  }
  ADD_FAILURE() << "no last page";
  return serials;
}

TEST(AccessList, CertificatesComeNewestFirstAndOnce) {
  const core::AccessRecords some = records(100);
  const auto whole = paged(some, 0, kBytes);
  EXPECT_EQ(whole.size(), 100U);
  EXPECT_EQ(std::set(whole.begin(), whole.end()).size(), 100U);
  // 98 and 99 are of one moment, and in the order of their keys.
  EXPECT_EQ(whole[0], fmt::format("{:08x}", 98));
  EXPECT_EQ(whole[1], fmt::format("{:08x}", 99));
  EXPECT_EQ(whole.back(), fmt::format("{:08x}", 0));
  for (const std::uint32_t size : {1U, 7U, 100U}) EXPECT_EQ(paged(some, size, kBytes), whole);
  EXPECT_EQ(paged(some, 0, 1'000), whole) << "pages that end by their bytes";
}

TEST(AccessList, APageGoesOnThoughItsLastCertificateIsNewNow) {
  core::AccessRecords some = records(10);
  v1::ListCertificatesRequest request;
  request.set_page_size(3);
  v1::ListCertificatesResponse first, second;
  ASSERT_TRUE(list_certificates(some, request, kBytes, first));
  const v1::Certificate& last = first.certificates(2);
  core::fold_access(
      some, WallTime(std::chrono::seconds(1'900'000'000)),
      core::CertificateIssued{
          .serial = "renewed",
          .subject = {.role = last.has_node() ? core::SubjectRole::Node : core::SubjectRole::User,
                      .name = last.has_node() ? last.node() : last.user()},
          .key = last.key_sha256(),
          .not_before = {},
          .not_after = WallTime(std::chrono::seconds(1'900'000'000)),
          .token = {},
          .actor = "owner"});
  request.set_page_token(first.next_page_token());
  ASSERT_TRUE(list_certificates(some, request, kBytes, second));
  for (const auto& one : second.certificates()) EXPECT_NE(one.serial(), "renewed");
  for (const char* bad : {"x", "1", "1:2", "1:2:node", "1:k:nobody:n", "1:k:node:n:more"}) {
    request.set_page_token(bad);
    EXPECT_FALSE(list_certificates(some, request, kBytes, second)) << bad;
  }
}

TEST(AccessList, TokensComeNewestFirstWithoutTheirSecrets) {
  core::AccessRecords some;
  WallTime at(std::chrono::seconds(1'800'000'000));
  for (const char* id : {"b", "c", "a"}) {
    core::fold_access(some, at,
                      core::TokenCreated{.token = id,
                                         .secret_sha256 = std::string(64, '5'),
                                         .nodes = "n*",
                                         .uses = 3,
                                         .ends_at = at + std::chrono::hours(24),
                                         .may_replace = false,
                                         .actor = "owner"});
    at += std::chrono::seconds(1);
  }
  v1::ListTokensResponse listed;
  list_tokens(some, listed);
  ASSERT_EQ(listed.tokens_size(), 3);
  EXPECT_EQ(listed.tokens(0).id(), "a");
  EXPECT_EQ(listed.tokens(2).id(), "b");
  EXPECT_EQ(listed.ShortDebugString().find("5555"), std::string::npos);
}

}  // namespace
}  // namespace muster::controller
