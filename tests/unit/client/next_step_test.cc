// What a person is told between two steps of a change of the CA.
#include "client/commands/cert/next_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

v1::ListAuthoritiesResponse with(
    std::initializer_list<std::pair<v1::AuthorityState, std::vector<std::string>>> authorities) {
  v1::ListAuthoritiesResponse all;
  char digit = 'a';
  for (const auto& [state, nodes] : authorities) {
    v1::Authority& one = *all.add_authorities();
    one.set_state(state);
    one.set_sha256(std::string(64, digit++));
    one.mutable_waiting_nodes()->Assign(nodes.begin(), nodes.end());
  }
  return all;
}

TEST(NextStep, NamesTheStepAndTheNodes) {
  EXPECT_THAT(next_step_text(with({{v1::AUTHORITY_STATE_SIGNING, {}}}).authorities()),
              AllOf(HasSubstr("CA aaaaaaaaaaaaaaaa signs"), HasSubstr("cert rotate start")));
  EXPECT_THAT(
      next_step_text(
          with({{v1::AUTHORITY_STATE_NEXT, {"n1", "n2"}}, {v1::AUTHORITY_STATE_SIGNING, {}}})
              .authorities()),
      AllOf(HasSubstr("do not trust it yet: n1, n2\n"), HasSubstr("rotate sign, when they do")));
  EXPECT_THAT(
      next_step_text(
          with({{v1::AUTHORITY_STATE_NEXT, {}}, {v1::AUTHORITY_STATE_SIGNING, {}}}).authorities()),
      AllOf(HasSubstr("every connected node trusts it"),
            HasSubstr("next: muster cert rotate sign")));
  auto old = with({{v1::AUTHORITY_STATE_SIGNING, {}}, {v1::AUTHORITY_STATE_OLD, {"n\x1b[2J"}}});
  old.mutable_authorities(1)->set_user_certificates(2);
  EXPECT_THAT(next_step_text(old.authorities()),
              AllOf(HasSubstr("CA aaaaaaaaaaaaaaaa signs, and certificates of CA bbbbbbbbbbbbbbbb"),
                    HasSubstr("2 certificates of users are from before, and end with"),
                    HasSubstr("rotate finish, when"), Not(HasSubstr("\x1b"))));
  old.mutable_authorities(1)->clear_waiting_nodes();
  old.mutable_authorities(1)->set_user_certificates(1);
  EXPECT_THAT(next_step_text(old.authorities()),
              AllOf(HasSubstr("1 certificate of users is from before, and ends with"),
                    HasSubstr("next: muster cert rotate finish\n")));
}

TEST(NextStep, ManyNodesAreCounted) {
  std::vector<std::string> nodes(25, "n");
  EXPECT_THAT(
      next_step_text(with({{v1::AUTHORITY_STATE_NEXT, nodes}, {v1::AUTHORITY_STATE_SIGNING, {}}})
                         .authorities()),
      HasSubstr("n and 5 more\n"));
}

}  // namespace
}  // namespace muster::client
