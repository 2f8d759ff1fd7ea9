// code.patches: read from files in the directory of the spec, checked before anything is sent, and
// checked again in a spec from the API.
#include <gtest/gtest.h>

#include <map>

#include "common/spec/rules/rules.h"
#include "common/spec/parse.h"

namespace muster::spec {
namespace {

const std::string kDiff = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n";

Parsed with_patches(const std::string& patches, const std::map<std::string, std::string>& files,
                    const std::string& engine = "command", const std::string& dir = "/home/u/job") {
  ParseOptions options{.base_dir = dir};
  options.read_file = [&](const std::string& path, std::size_t most) -> Result<std::string> {
    const auto found = files.find(path);
    if (found == files.end()) return fail(ErrorCode::NotFound, "no such file");
    if (found->second.size() > most) return fail(ErrorCode::ResourceExhausted, "it is too big");
    return found->second;
  };
  return parse_yaml("name: a\nengine: " + engine +
                        "\nlaunch: {run: [python3, x.py]}\ncode: {patches: " + patches + "}\n",
                    options);
}

std::string patch_problems(const Parsed& result) { return format(result.problems, "job.yaml"); }

TEST(CodePatches, AreReadNextToTheSpec) {
  const auto result =
      with_patches("[fixes/a.diff, /srv/b.diff]",
                   {{"/home/u/job/fixes/a.diff", kDiff}, {"/srv/b.diff", kDiff + "x"}});
  EXPECT_EQ(patch_problems(result), "");
  ASSERT_EQ(result.spec.code().patches_size(), 2);
  EXPECT_EQ(result.spec.code().patches(0).name(), "fixes/a.diff");
  EXPECT_EQ(result.spec.code().patches(0).content(), kDiff);
  EXPECT_EQ(result.spec.code().patches(1).content(), kDiff + "x");
  EXPECT_EQ(patch_problems(with_patches("a.diff", {{"/home/u/job/a.diff", kDiff}})), "")
      << "one is as good as a list of one";
  EXPECT_EQ(with_patches("[]", {}).spec.code().patches_size(), 0);
  EXPECT_EQ(patch_problems(with_patches("builtin:node-local-index", {}, "megatron")), "");
}

TEST(CodePatches, WhatIsWrongHasItsPlace) {
  EXPECT_EQ(patch_problems(with_patches("[a.diff]", {})),
            "job.yaml:4:18: code.patches[0]: 'a.diff': no such file\n");
  EXPECT_EQ(patch_problems(with_patches(
                "[a.diff, b.diff]",
                {{"/home/u/job/a.diff", kDiff},
                 {"/home/u/job/b.diff", "--- a/x\n+++ b/../y\n@@ -1 +1 @@\n-a\n+b\n"}})),
            "job.yaml:4:26: code.patches[1]: 'b.diff': line 2: '../y' leaves the code by '..'\n");
  EXPECT_EQ(patch_problems(with_patches("[a.diff]", {{"/home/u/job/a.diff", ""}})),
            "job.yaml:4:18: code.patches[0]: 'a.diff' is empty\n");
  EXPECT_EQ(patch_problems(with_patches("[\"\"]", {})),
            "job.yaml:4:18: code.patches[0]: is empty (a file | list of files, each a unified diff "
            "relative to the spec's directory, or builtin:NAME; at most 64)\n");
  EXPECT_EQ(patch_problems(with_patches("{a: b}", {})).substr(0, 53),
            "job.yaml:4:17: code.patches: must not be a map (a fil");
  EXPECT_EQ(patch_problems(with_patches("[[a]]", {})),
            "job.yaml:4:18: code.patches[0]: must be one file's name\n");
  EXPECT_EQ(patch_problems(with_patches(
                "[a.diff]", {{"/home/u/job/a.diff", std::string(kCodePatchBytesMax + 1, 'x')}})),
            "job.yaml:4:18: code.patches[0]: 'a.diff': it is too big\n");
  EXPECT_EQ(patch_problems(with_patches("[a.diff]", {{"//a.diff", kDiff}, {"/a.diff", kDiff}},
                                        "command", "/")),
            "job.yaml:4:17: code.patches: are put on a copy of the code, and there is no directory "
            "of it: name it with code.from or code.at\n");
}

TEST(CodePatches, BuiltinsAreKnownByNameAndEngine) {
  EXPECT_EQ(patch_problems(with_patches("[builtin:node-local-index]", {})),
            "job.yaml:4:18: code.patches[0]: 'builtin:node-local-index' is for engine megatron: "
            "every node builds the index files of its data sets, and the C++ helpers, on its own "
            "disk\n");
  EXPECT_EQ(patch_problems(with_patches("[builtin:node-local-indx]", {}, "megatron")),
            "job.yaml:4:18: code.patches[0]: 'builtin:node-local-indx' is none of muster's own; "
            "did you mean 'builtin:node-local-index'? (builtin:node-local-index)\n");
  EXPECT_EQ(patch_problems(with_patches("[builtin:node-local-index, builtin:node-local-index]", {},
                                        "megatron")),
            "job.yaml:4:44: code.patches[1]: 'builtin:node-local-index' is there twice\n");
}

TEST(CodePatches, BoundsHoldForTheApiToo) {
  const auto base = with_patches("a.diff", {{"/home/u/job/a.diff", kDiff}}).spec;
  const auto problems = [](v1::JobSpec spec) { return format(complete(spec), ""); };
  EXPECT_EQ(problems(base), "");
  auto spec = base;
  for (int i = 0; i < kCodePatchesMax; ++i)
    *spec.mutable_code()->add_patches() = base.code().patches(0);
  EXPECT_EQ(problems(spec), "code.patches: has 65 patches, at most 64\n");
  spec = base;
  spec.mutable_code()->mutable_patches(0)->set_content(kDiff +
                                                       std::string(kCodePatchBytesMax, '#'));
  EXPECT_EQ(problems(spec),
            "code.patches[0]: 'a.diff' has " + std::to_string(kDiff.size() + kCodePatchBytesMax) +
                " bytes, at most 512 KiB; put what is so big into the code itself\n");
  spec = base;
  spec.mutable_code()->mutable_patches(0)->set_content(kDiff + std::string(400U << 10U, '#'));
  *spec.mutable_code()->add_patches() = spec.code().patches(0);
  EXPECT_NE(problems(spec).find("code.patches: have 819280 bytes together, at most 768 KiB"),
            std::string::npos)
      << problems(spec);
  spec = base;
  spec.mutable_code()->mutable_patches(0)->set_content(
      "--- a/x\n+++ /etc/passwd\n@@ -1 +1 @@\n-a\n+b\n");
  EXPECT_NE(problems(spec).find("line 2: '/etc/passwd' is absolute"), std::string::npos);
  spec = base;
  spec.mutable_code()->mutable_patches(0)->set_name("builtin:node-local-index");
  EXPECT_EQ(problems(spec),
            "code.patches[0]: 'builtin:node-local-index' is one of muster's own and comes without "
            "content\n");
  spec = base;
  spec.mutable_code()->mutable_patches(0)->clear_name();
  EXPECT_EQ(problems(spec), "code.patches[0]: has no name (a file, or builtin:NAME)\n");
}

TEST(CodePatches, TooManyFilesAreReportedOnce) {
  std::string list = "[";
  for (int i = 0; i < 80; ++i) list += "a.diff,";
  const auto result = with_patches(list + "]", {{"/home/u/job/a.diff", kDiff}});
  EXPECT_EQ(patch_problems(result).substr(patch_problems(result).find("code.patches")),
            "code.patches: has more than 64 patches\n");
}

}  // namespace
}  // namespace muster::spec
