// Lists are as `rclone lsjson -R` of 1.60 prints them.
#include "common/store/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <limits>

#include "common/base/utf8.h"

namespace muster::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string file(const std::string& name, std::uint64_t size = 1, const std::string& md5 = "",
                 const std::string& time = "2026-11-28T03:28:22Z") {
  return R"({"Path":")" + name + R"(","Name":"x","Size":)" + std::to_string(size) +
         R"(,"ModTime":")" + time + R"(","IsDir":false,"Hashes":{"md5":")" + md5 + "\"}}";
}
std::string dir(const std::string& name) {
  return R"({"Path":")" + name + R"(","Name":"x","Size":-1,"ModTime":"","IsDir":true})";
}
std::string list(const std::vector<std::string>& entries) {
  std::string text = "[\n";
  for (std::size_t i = 0; i < entries.size(); ++i)
    text += entries[i] + (i + 1 < entries.size() ? ",\n" : "\n");
  return text + "]\n";
}

TEST(Manifest, HasTheObjectsInTheOrderOfTheirNames) {
  const std::string md5 = "415290769594460e2e485922904f345d";
  const auto read = parse_listing(
      list({file("b", 2, md5), file("a/x"), dir("a"), dir("c"), dir("d"), dir("d/e")}));
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->objects.size(), 2U);
  EXPECT_EQ(read->objects[0].name, "a/x");
  EXPECT_EQ(read->objects[1],
            (Object{.name = "b", .size = 2, .md5 = md5, .modified = "2026-11-28T03:28:22Z"}));
  EXPECT_THAT(read->empty, ElementsAre("c", "d/e"));
  EXPECT_EQ(read->bytes(), 3U);
}

TEST(Manifest, LinesOfTheLogAreLeftOut) {
  const auto read = parse_listing("{\"level\":\"notice\",\"msg\":\"x\"}\n" + list({file("a")}));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->objects.size(), 1U);
}

// rclone ends the line of an entry only when it has the next.
TEST(Manifest, ALineOfTheLogMayStandBehindAnEntry) {
  const std::string log = "{\"level\":\"notice\",\"msg\":\"x\"}\n";
  const auto read = parse_listing("[\n" + file("a") + log + ",\n" + log + file("}{") + ",\n" +
                                  file("b") + log + "\n]\n");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->objects.size(), 3U);
}

TEST(Manifest, WhatIsCutOffIsNone) {
  const std::string whole = list({file("a"), file("b")});
  EXPECT_EQ(parse_listing(whole.substr(0, whole.size() - 3)).error().code, ErrorCode::DataLoss);
  EXPECT_EQ(parse_listing("").error().code, ErrorCode::DataLoss);
  EXPECT_EQ(parse_listing(whole.substr(2)).error().code, ErrorCode::DataLoss);
  EXPECT_EQ(parse_listing(whole + file("c") + "\n").error().code, ErrorCode::DataLoss);
  EXPECT_EQ(parse_listing("[\n{\"Path\":5}\n]\n").error().code, ErrorCode::DataLoss);
}

TEST(Manifest, WhatANodeCannotHaveIsNamed) {
  const auto why = [](const std::vector<std::string>& entries) {
    const auto read = parse_listing(list(entries));
    return read ? "taken" : read.error().message;
  };
  EXPECT_THAT(why({file("p"), file("p/q")}), HasSubstr("'p' is an object, and 'p/' has objects"));
  EXPECT_THAT(why({file("p"), file("p-x"), file("p.x"), file("p/q")}),
              HasSubstr("'p' is an object, and 'p/' has objects"))
      << "names that stand between both";
  EXPECT_THAT(why({file("p"), file("p-x/q"), file("p.x"), file("p0")}), "taken");
  EXPECT_THAT(why({file("p"), dir("p")}), HasSubstr("'p' is an object, and a directory, too"));
  EXPECT_THAT(why({file("p"), dir("p-x"), dir("p.x"), dir("p/q")}),
              HasSubstr("'p' is an object, and a directory, too"));
  EXPECT_THAT(why({file("p"), dir("p-x"), dir("p/..")}), "taken");
  EXPECT_THAT(why({file("a"), file("a")}), HasSubstr("'a' is there twice"));
  EXPECT_THAT(why({file("a/../b")}), HasSubstr("a part of it is empty, '.' or '..'"));
  EXPECT_THAT(why({file("a//b")}), HasSubstr("a part of it is empty"));
  EXPECT_THAT(why({file("/etc")}), HasSubstr("a part of it is empty"));
  EXPECT_THAT(why({file("")}), HasSubstr("a part of it is empty"));
  EXPECT_THAT(why({file("a/")}), HasSubstr("a part of it is empty"));
  EXPECT_THAT(why({file(std::string(256, 'x'))}), HasSubstr("a part of it has 256 bytes"));
}

std::string repeated(const std::string& part, std::size_t times) {
  std::string text;
  for (std::size_t i = 0; i < times; ++i) text += part;
  return text;
}
std::string why_not(const std::string& entry) {
  const auto read = parse_listing(list({entry}));
  if (read) return "taken";
  EXPECT_EQ(read.error().code, ErrorCode::InvalidArgument) << read.error().message;
  EXPECT_TRUE(is_utf8(read.error().message)) << read.error().message;
  return read.error().message;
}

TEST(Manifest, AWholeNameHasALimitOfBytesAndOfParts) {
  const std::string name = repeated(std::string(249, 'x') + "/", 12);  // 3,000 bytes
  EXPECT_EQ(why_not(file(name.substr(1) + "y")), "taken");
  EXPECT_THAT(why_not(file(name + "y")), HasSubstr("it has 3001 bytes, at most 3000"));
  EXPECT_EQ(why_not(file(repeated(repeated("\u2401", 249) + "/", 11) + "y")), "taken")
      << "the local name counts";
  EXPECT_EQ(why_not(file(repeated("a/", 254) + "a")), "taken");
  EXPECT_THAT(why_not(file(repeated("a/", 255) + "a")), HasSubstr("it has 256 parts, at most 255"));
}

// rclone 1.60.1 lists the file names of a web server so ("a%0Ab"), and reads the names that it is
// to fetch line by line.
TEST(Manifest, ControlCharactersThatRcloneDoesNotEncodeAreRefused) {
  for (const char* name : {R"(a\nb)", R"(a\rb)", R"(a\u0000b)", R"(a\u0001)", "a\x7f"})
    EXPECT_THAT(why_not(file(name)), HasSubstr("it has a control character")) << name;
  EXPECT_EQ(why_not(file("a\u240a")), "taken");
}

// It writes a U+201B of the store's own as two, asks the store for a name with two, and has a file
// with two at the end, whether the list had one or two (seen with 1.60.1).
TEST(Manifest, QuotesThatRcloneDoesNotReadAsItWritesThemAreRefused) {
  for (const char* name : {"\u201bx", "\u201b\u201bx", "x\u201b", "\u201b\u201b\u240a",
                           "d\u201b/\u240a", "x\u201b\uff0e"})
    EXPECT_THAT(why_not(file(name)), HasSubstr("it has the character U+201B")) << name;
  for (const char* name : {"\u201b\u240a", "x\u201b\u2400", "\u201b\uff0f\u201b\u2421",
                           "d/\u201b\uff0e", "\u201b\uff0e\u201b\uff0e/x"})
    EXPECT_EQ(why_not(file(name)), "taken") << name;
}

TEST(Manifest, ALongNameIsShownUpToTheEndOfACharacter) {
  for (const char* begin : {"", "x", "xx"})
    EXPECT_THAT(why_not(file(begin + repeated("\u4e2d", 100))), HasSubstr("\u4e2d...'"));
  EXPECT_EQ(parse_listing(list({file("a\xff")})).error().code, ErrorCode::DataLoss);
}

TEST(Manifest, AnObjectWithoutALengthIsRefused) {
  const auto with = [](const std::string& size) {
    return R"({"Path":"a/b","Name":"b",)" + size + R"("ModTime":"","IsDir":false})";
  };
  EXPECT_THAT(why_not(with(R"("Size":-1,)")),
              HasSubstr("the store does not say how long 'a/b' is"));
  EXPECT_THAT(why_not(with("")), HasSubstr("the store does not say how long 'a/b' is"));
  EXPECT_EQ(why_not(with(R"("Size":0,)")), "taken");
}

TEST(Manifest, SizesThatAreTooManyAreTheMostThatFits) {
  const std::uint64_t half = 1ULL << 63;
  Manifest manifest{.objects = {{.name = "a", .size = half},
                                {.name = "b", .size = half},
                                {.name = "c", .size = half}}};
  EXPECT_EQ(manifest.bytes(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(batches(manifest.objects, half, 10).size(), 3U);
}

std::string time_read(const std::string& time) {
  const auto read = parse_listing(list({file("a", 1, "", time)}));
  return read ? read->objects.front().modified : read.error().message;
}

// rclone writes these where the store says no time; the first, in the zone of its node, was seen
// with 1.60.1 and a web server without Last-Modified.
TEST(Manifest, ATimeThatTheStoreDoesNotSayIsNone) {
  for (const char* time :
       {"1970-01-01T00:00:00Z", "1970-01-01T09:00:00+09:00", "1969-12-31T19:00:00-05:00",
        "1970-01-01T00:00:00.000000000Z", "0001-01-01T00:00:00Z", "0000-12-31T19:03:58-04:56",
        "2000-01-01T00:00:00.000000000Z", "2000-01-01T05:30:00+05:30", "", "x",
        "2026-11-28T03:28:22", "2026-13-28T03:28:22Z", "2026-11-28T03:28:22Zx",
        "2026-11-28T-3:28:22Z", "2026-11-28T03:28:22+09"})
    EXPECT_EQ(time_read(time), "") << time;
}

TEST(Manifest, ATimeIsTheSameInEachZone) {
  EXPECT_EQ(time_read("2026-11-28T03:28:22Z"), "2026-11-28T03:28:22Z");
  EXPECT_EQ(time_read("2026-11-28T12:28:22.025+09:00"), "2026-11-28T03:28:22.025Z");
  EXPECT_EQ(time_read("2026-12-31T19:30:00-05:00"), "2027-01-01T00:30:00Z");
  EXPECT_EQ(time_read("1970-01-01T00:00:00.000000001Z"), "1970-01-01T00:00:00.000000001Z");
  EXPECT_EQ(time_read("1960-02-29T00:00:00Z"), "1960-02-29T00:00:00Z");
}

TEST(Manifest, ADirectoryIsEmptyWithoutAnythingThatANodeCanHave) {
  const auto read = parse_listing(
      list({dir("d"), dir("d-x"), dir("d.x"), dir("d/e"), dir("d/e"), dir("f"), dir("f-x"),
            file("f/g"), dir("h"), dir("h/.."), dir("h//"), dir(repeated("i/", 255) + "i")}));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_THAT(read->empty, ElementsAre("d-x", "d.x", "d/e", "f-x", "h"));
}

long peak_kib() {
  rusage usage{};
  EXPECT_EQ(::getrusage(RUSAGE_SELF, &usage), 0);
  return usage.ru_maxrss;
}

// Once, each directory above each name was kept as a text of its own: 3 GiB for this list.
TEST(Manifest, DeepNamesNeedNoMoreMemoryThanTheirList) {
  constexpr std::size_t kNames = 20'000;
  std::string output = "[\n";
  for (std::size_t i = 0; i < kNames; ++i)
    output += file(std::to_string(i) + "/" + repeated("abc/", 245) + "x") + ",\n";
  output += "]\n";
  const long before = peak_kib();
  const auto read = parse_listing(output);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->objects.size(), kNames);
  EXPECT_LT(peak_kib() - before, 1 << 20) << "1 GiB: there may be a sanitizer";
}

TEST(Manifest, AChangeIsNamed) {
  const auto change = [](const std::vector<std::string>& before,
                         const std::vector<std::string>& after) {
    return change_between(*parse_listing(list(before)), *parse_listing(list(after)));
  };
  EXPECT_EQ(change({file("a"), file("b")}, {file("b"), file("a")}), "");
  EXPECT_EQ(change({file("a"), file("b")}, {file("a")}), "'b' is not there any more");
  EXPECT_EQ(change({file("b")}, {file("a"), file("b")}), "'a' is new");
  EXPECT_EQ(change({file("a", 4)}, {file("a", 5)}), "'a' has another size (5, was 4)");
  const std::string early = "2026-11-28T03:28:22Z", late = "2026-11-28T03:28:23Z";
  EXPECT_EQ(change({file("a", 4, "", early)}, {file("a", 4, "", late)}),
            "'a' was written again (" + late + ", was " + early + ")");
  EXPECT_EQ(change({file("a", 4, "", early)}, {file("a", 4, "", "")}),
            "'a' was written again (no time, was " + early + ")");
  EXPECT_EQ(change({file("a"), dir("d")}, {file("a")}), "its empty directories are others");
}

TEST(Manifest, BatchesAreBoundedByBytesAndByNumber) {
  std::vector<Object> objects;
  for (const std::uint64_t size : {5, 5, 20, 1, 1, 1})
    objects.push_back({.name = "n" + std::to_string(objects.size()), .size = size});
  std::vector<std::size_t> sizes;
  for (const auto& batch : batches(objects, 10, 2)) sizes.push_back(batch.size());
  EXPECT_THAT(sizes, ElementsAre(2, 1, 2, 1)) << "one that is larger than a batch is one";
  EXPECT_TRUE(batches({}, 10, 2).empty());
}

// What rclone's local backend made of these names was seen with 1.60.1.
TEST(LocalName, ControlCharactersAreWhatTheyStandFor) {
  EXPECT_EQ(local_name("nl\u240ax"), "nl\nx");
  EXPECT_EQ(local_name("del\u2421x"), "del\x7fx");
  EXPECT_EQ(local_name("sym\u201b\u240ax"), "sym\u240ax");
  EXPECT_EQ(local_name("a\uff0fb"), "a\uff0fb");
  EXPECT_EQ(local_name("z\u2400x"), "z\u2400x");
  EXPECT_EQ(local_name("\uff0e"), "\uff0e");
  EXPECT_EQ(local_name("na\u00efve %41:#"), "na\u00efve %41:#");
}

}  // namespace
}  // namespace muster::store
