#include "common/compat/patch/lookup.h"

#include <gtest/gtest.h>

#include "common/compat/patch/path.h"

namespace muster::patch {
namespace {

std::string found(const std::string& yaml, const std::string& at) {
  const auto document = read_yaml(yaml);
  const auto steps = parse_path(at);
  EXPECT_TRUE(document && steps);
  if (!document || !steps) return "(unread)";
  const Node* node = value_at(*document, *steps);
  return node == nullptr ? "(nothing)" : node->text;
}

TEST(ValueAt, FollowsKeysAliasesAndMerges) {
  const std::string yaml =
      "base: &base {sink_mode: False, epochs: 2}\nown: {<<: *base, epochs: 3}\nsame: *base\nlist: "
      "{<<: [{a: 1}, {a: 2, b: 3}]}\n";
  EXPECT_EQ(found(yaml, "base.sink_mode"), "False");
  EXPECT_EQ(found(yaml, "own.sink_mode"), "False");
  EXPECT_EQ(found(yaml, "own.epochs"), "3") << "the map's own over what is merged";
  EXPECT_EQ(found(yaml, "same.epochs"), "2");
  EXPECT_EQ(found(yaml, "list.a"), "1");
  EXPECT_EQ(found(yaml, "list.b"), "3");
  EXPECT_EQ(found(yaml, "own.other"), "(nothing)");
  EXPECT_EQ(found(yaml, "own.epochs.deeper"), "(nothing)");
  EXPECT_EQ(found(yaml, "list[0]"), "(nothing)") << "keys alone";
  EXPECT_EQ(found("", "a"), "(nothing)");
}

}  // namespace
}  // namespace muster::patch
