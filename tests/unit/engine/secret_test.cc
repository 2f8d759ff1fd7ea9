#include "common/engine/model/secret.h"

#include <gtest/gtest.h>

namespace muster::engine {
namespace {

std::string name_in(std::string_view value) {
  const auto found = secret_of(value);
  if (!found) return "error";
  return *found ? **found : std::string("none");
}

TEST(Secret, IsTheWholeValue) {
  EXPECT_EQ(name_in("${secret:hf-token_1.x}"), "hf-token_1.x");
  for (const char* text : {"", "plain", "$${secret:x}", "$$${secret", "${out}/x", "secret:x", "$"})
    EXPECT_EQ(name_in(text), "none") << text;
  for (const char* part :
       {"x${secret:hf}", "${secret:hf}x", "${secret:hf", "${secret:a}${secret:b}", "${secret:}",
        "${secret:a b}", "${secret:../x}", "$$${secret:hf}"})
    EXPECT_EQ(name_in(part), "error") << part;
}

TEST(Secret, OfASpec) {
  v1::JobSpec spec;
  (*spec.mutable_runtime()->mutable_env())["A"] = "${secret:one}";
  (*spec.mutable_runtime()->mutable_env())["B"] = "text";
  (*spec.mutable_resume()->mutable_env())["A"] = "${secret:two}";
  EXPECT_EQ(secrets_of(spec), (std::map<std::string, std::string>{{"runtime.env.A", "one"},
                                                                  {"resume.env.A", "two"}}));
}

}  // namespace
}  // namespace muster::engine
