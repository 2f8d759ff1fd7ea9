// Inputs are brought to a node by a real rclone, from a directory that plays the store.
#include "agent/stage/stage_input.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <unistd.h>

#include <set>

#include "agent/stage/kept_contents.h"
#include "tests/unit/agent_stage/stage_fixture.h"

namespace muster::agent {
namespace {

using testing::HasSubstr;

// Programs of the test come first on PATH while it lives.
class ProgramsFirst {
 public:
  explicit ProgramsFirst(const fs::path& dir) : dir_(dir), before_(::getenv("PATH")) {
    fs::create_directories(dir_);
    ::setenv("PATH", (dir_.native() + ":" + before_).c_str(), 1);
  }
  ~ProgramsFirst() { ::setenv("PATH", before_.c_str(), 1); }
  ProgramsFirst(const ProgramsFirst&) = delete;
  ProgramsFirst& operator=(const ProgramsFirst&) = delete;
  void write(const std::string& name, const std::string& script) const {
    std::ofstream(dir_ / name) << "#!/bin/sh\n" << script;
    fs::permissions(dir_ / name, fs::perms::owner_all);
  }

 private:
  const fs::path dir_;
  const std::string before_;
};

TEST_F(StageInput, ATreeIsAsInTheStore) {
  const std::vector<std::string> names = {"wiki/a b.txt",    "wiki/new\nline", "wiki/100%:#",
                                          "wiki/na\u00efve", "wiki/sub/'q\"",  "wiki/zero"};
  for (const std::string& name : names)
    write(name, name.ends_with("zero") ? "" : "text of " + name);
  fs::create_directories(store() / "wiki/empty/deeper");
  const auto staged = stage("wiki");
  ASSERT_TRUE(staged) << staged.error().message;
  for (const std::string& name : names)
    EXPECT_EQ(text_of(tree("wiki") / name.substr(5)), text_of(store() / name)) << name;
  EXPECT_TRUE(fs::is_directory(tree("wiki") / "empty/deeper"));
  EXPECT_EQ(fs::status(tree("wiki") / "a b.txt").permissions(),
            fs::perms::owner_read | fs::perms::group_read | fs::perms::others_read);
  EXPECT_TRUE(fs::is_empty(root() / "cache/partial") ||
              fs::directory_iterator(root() / "cache/partial")->path().extension() == ".lock");
}

TEST_F(StageInput, OneFileIsAFileOfItsName) {
  write("tokenizer.model", "tokens");
  ASSERT_TRUE(stage("tokenizer.model"));
  EXPECT_EQ(text_of(tree("tokenizer.model")), "tokens");
  write("same/same", "one file in a directory of its name");
  ASSERT_TRUE(stage("same"));
  EXPECT_EQ(text_of(tree("same") / "same"), "one file in a directory of its name");
}

TEST_F(StageInput, WhatIsThereIsNotFetchedAgain) {
  write("wiki/a", "first");
  write("wiki/b", "second");
  ASSERT_TRUE(stage("wiki"));
  EXPECT_GT(fetched_, 0U);
  const ino_t kept = inode_of(tree("wiki") / "a");
  ASSERT_TRUE(stage("wiki", "j2"));
  EXPECT_EQ(fetched_, 0U);
  EXPECT_EQ(inode_of(tree("wiki", "j2") / "a"), kept) << "a link to the same object";
  write("wiki/c", "third");
  ASSERT_TRUE(stage("wiki", "j3"));
  EXPECT_EQ(fetched_, 5U) << "only what is new";
}

TEST_F(StageInput, AnObjectThatSomebodyHasWrittenToIsFetchedAgain) {
  write("wiki/a", "good");
  ASSERT_TRUE(stage("wiki"));
  ASSERT_EQ(::chmod((tree("wiki") / "a").c_str(), 0644), 0);
  std::ofstream(tree("wiki") / "a") << "evil";
  ASSERT_TRUE(stage("wiki", "j2"));
  EXPECT_EQ(text_of(tree("wiki", "j2") / "a"), "good");
}

TEST_F(StageInput, TreesGoWithTheLastRunAndTheObjectsStay) {
  write("wiki/a", "text");
  ASSERT_TRUE(stage("wiki"));
  ASSERT_TRUE(use_trees(root() / "jobs", "j1", "n2.j1.1", dir_ / "other", abandoned_));
  ASSERT_TRUE(leave());
  EXPECT_TRUE(fs::exists(tree("wiki"))) << "another run uses it";
  ASSERT_TRUE(leave_trees(dir_ / "other", "n2.j1.1"));
  EXPECT_FALSE(fs::exists(root() / "jobs/j1"));
  ASSERT_TRUE(leave()) << "again";
  ASSERT_TRUE(stage("wiki", "j2"));
  EXPECT_EQ(fetched_, 0U);
}

TEST_F(StageInput, RoomIsMadeOfWhatNoTreeUses) {
  write("wiki/a", std::string(100'000, 'a'));
  write("other/b", std::string(100'000, 'b'));
  ASSERT_TRUE(stage("wiki"));
  ASSERT_TRUE(stage("other", "j2"));
  ASSERT_TRUE(leave("j2"));
  auto cache = InputCache::open(root());
  ASSERT_TRUE(cache);
  const auto freed = cache->make_room(100'000, {});
  ASSERT_TRUE(freed);
  EXPECT_GE(*freed, 100'000U);
  EXPECT_LT(*freed, 200'000U) << "the one in use stays";
  ASSERT_TRUE(stage("wiki", "j3"));
  EXPECT_EQ(fetched_, 0U);
  ASSERT_TRUE(stage("other", "j4"));
  EXPECT_EQ(fetched_, 100'000U);
}

TEST_F(StageInput, ADamagedIndexIsMadeAnew) {
  write("wiki/a", "text");
  ASSERT_TRUE(stage("wiki"));
  std::ofstream(root() / "cache/index.db") << std::string(8192, 'x');
  const auto again = stage("wiki", "j2");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(text_of(tree("wiki", "j2") / "a"), "text");
}

TEST_F(StageInput, WhatChangesWhileItIsFetchedIsNamed) {
  write("wiki/a", "text");
  at_ = [this](const std::string& what) {
    if (what == "listing again") write("wiki/late", "more");
  };
  const auto staged = stage("wiki");
  ASSERT_FALSE(staged);
  EXPECT_EQ(staged.error().code, ErrorCode::Conflict);
  EXPECT_THAT(staged.error().message,
              HasSubstr("inputs.data: 'dir://d/wiki': it was changed while it was fetched: 'late' "
                        "is new"));
  EXPECT_FALSE(fs::exists(tree("wiki")));
}

TEST_F(StageInput, WhatIsNotThereIsASentence) {
  const auto none = stage("none");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::NotAllowed);
  EXPECT_THAT(none.error().message, HasSubstr("rclone: "));
  EXPECT_THAT(none.error().message, HasSubstr("directory not found"));
  fs::create_directories(store() / "empty");
  EXPECT_THAT(stage("empty").error().message, HasSubstr("there is nothing at this URL"));
}

TEST_F(StageInput, ADiskWithoutRoomIsRefusedBeforeWithTheNumbers) {
  write("wiki/a", std::string(5'000'000, 'a'));
  v1::StagedInput input;
  input.set_name("data");
  input.set_url("dir://d/wiki");
  input.set_root(root());
  input.set_path(tree("wiki"));
  input.mutable_profile()->set_url("dir://d");
  input.mutable_profile()->set_endpoint(store());
  const StageCalls calls{.fetch = {.abandoned = abandoned_,
                                   .progress = {},
                                   .now = [] { return system_clock().now().wall; }},
                         .at = [](const std::string&) {},
                         .news = [](const StageNews&) { FAIL() << "nothing is fetched"; }};
  const auto refused = stage_input(input, "j1", "", nullptr, 1ULL << 60, calls);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::ResourceExhausted);
  EXPECT_THAT(refused.error().message, HasSubstr("it has 4.8 MiB that this node has not"));
}

// A kill at any moment leaves what the next start can use, or removes.
TEST_F(StageInput, WhatAKilledFetchHasLeftIsNotBelieved) {
  write("wiki/a", "text");
  const std::string text = "junk";
  at_ = [&](const std::string& what) {
    if (what != "fetching") return;
    for (const auto& entry : fs::directory_iterator(root() / "cache/partial"))
      if (entry.path().extension() == ".lock") {
        const fs::path partial = entry.path().parent_path() / entry.path().stem();
        fs::create_directories(partial);
        std::ofstream(partial / "a") << text;
      }
  };
  ASSERT_TRUE(stage("wiki"));
  EXPECT_EQ(text_of(tree("wiki") / "a"), "text");
}

// Regression: what was cached and had not been looked for was linked without its object, and the
// agent ended.
TEST_F(StageInput, AStartThatIsAbandonedAtAnyMomentMakesNoTree) {
  for (const char* name : {"wiki/a", "wiki/b", "wiki/c"}) write(name, "text");
  ASSERT_TRUE(stage("wiki"));
  std::vector<std::string> moments;
  at_ = [&](const std::string& what) { moments.push_back(what); };
  ASSERT_TRUE(stage("wiki", "j2"));
  write("wiki/d", "more");
  ASSERT_TRUE(stage("wiki", "j3"));
  EXPECT_GE(moments.size(), 7U);
  for (const std::string moment :
       {"listing", "looking for what the node has already", "fetching", "listing again"}) {
    Abandoned abandoned;
    now_abandoned_ = &abandoned;
    write("wiki/" + moment.substr(0, 9), moment);
    at_ = [&](const std::string& what) {
      if (what == moment) abandoned.set();
    };
    (void)stage("wiki", "j4");
    EXPECT_FALSE(fs::exists(root() / "jobs/j4/data")) << moment;
    EXPECT_FALSE(fs::exists(root() / "jobs/j4/data.new")) << moment;
  }
}

// Regression: a store with another proxy got what the first one's end had said.
TEST_F(StageInput, OfAStoreThatAnotherEndAnswersForNothingIsShared) {
  write("wiki/a", "text");
  ASSERT_TRUE(stage("wiki"));
  profile_.set_proxy("http://127.0.0.1:1");
  ASSERT_TRUE(stage("wiki", "j2"));
  EXPECT_EQ(fetched_, 4U);
  profile_.set_user("bob");
  ASSERT_TRUE(stage("wiki", "j3"));
  EXPECT_EQ(fetched_, 4U);
  EXPECT_EQ(inode_of(tree("wiki", "j3") / "a"), inode_of(tree("wiki") / "a")) << "the same bytes";
  ASSERT_TRUE(stage("wiki", "j4"));
  EXPECT_EQ(fetched_, 0U);
}

TEST_F(StageInput, AnObjectIsTheSameUnderEachUrlThatItIsBelow) {
  write("wiki/train/a", "text");
  ASSERT_TRUE(stage("wiki"));
  ASSERT_TRUE(stage("wiki/train", "j2"));
  EXPECT_EQ(fetched_, 0U);
  ASSERT_TRUE(stage("wiki/train/a", "j3"));
  EXPECT_EQ(fetched_, 0U);
}

// Regression: the tree was removed under ranks that were reading it.
TEST_F(StageInput, ATreeThatAnotherRunUsesStaysAsItIs) {
  write("wiki/a", "text");
  ASSERT_TRUE(stage("wiki"));
  ASSERT_TRUE(use_trees(root() / "jobs", "j1", "n2.j1.1", dir_ / "other", abandoned_));
  const ino_t used = inode_of(tree("wiki"));
  ASSERT_TRUE(stage("wiki"));
  EXPECT_EQ(inode_of(tree("wiki")), used);
  fs::remove(tree("wiki") / "a");
  ASSERT_TRUE(stage("wiki"));
  EXPECT_EQ(text_of(tree("wiki") / "a"), "text") << "it was no more what it had been";
  write("wiki/b", "more");
  ASSERT_TRUE(stage("wiki"));
  EXPECT_EQ(text_of(tree("wiki") / "b"), "more");
  EXPECT_FALSE(fs::exists(root() / "jobs/j1/data.new"));
}

TEST_F(StageInput, WhatKilledFetchesHaveLeftGoesWithTheNextStart) {
  write("wiki/a", "text");
  ASSERT_TRUE(stage("wiki"));
  const fs::path partial = root() / "cache/partial" / std::string(64, 'f');
  fs::create_directories(partial);
  std::ofstream(partial / "a") << "junk";
  std::ofstream(partial.string() + ".lock");
  write("wiki/b", "more");
  ASSERT_TRUE(stage("wiki"));
  EXPECT_FALSE(fs::exists(partial));
  EXPECT_FALSE(fs::exists(partial.string() + ".lock"));
}

// Of a store that takes every connection and then says nothing, a run of rclone shows no error.
TEST_F(StageInput, AStoreThatFallsSilentEndsTheStart) {
  const ProgramsFirst programs(dir_ / "bin");
  const std::string list =
      "[\n{\"Path\":\"a\",\"Name\":\"a\",\"Size\":100,\"ModTime\":\"2024-01-01T00:00:00Z\","
      "\"IsDir\":"
      "false}\n]";
  const std::string silent = "exec tail -f /dev/null\n";
  away_most_ = std::chrono::milliseconds(1500);
  const auto expect_given_up = [&] {
    const auto staged = stage("wiki");
    ASSERT_FALSE(staged);
    EXPECT_EQ(staged.error().code, ErrorCode::Unreachable);
    EXPECT_THAT(staged.error().message, HasSubstr("nothing has come for 1500 ms: "));
  };
  programs.write("rclone", silent);
  expect_given_up();
  // It lists, and brings a part of the object.
  programs.write("rclone", "case $1 in lsjson) echo '" + list +
                               "';; *) for to; do :; done; printf 12345 > \"$to/a\"; " + silent +
                               ";; esac\n");
  expect_given_up();
}

// Regression: a node with such a setpriv could fetch nothing.
TEST_F(StageInput, ASetprivThatKnowsNoPdeathsigIsNotUsed) {
  const ProgramsFirst programs(dir_ / "bin");
  programs.write("setpriv", "echo 'setpriv: unrecognized option' >&2; exit 1\n");
  write("wiki/a", "text");
  const auto staged = stage("wiki");
  ASSERT_TRUE(staged) << staged.error().message;
  EXPECT_EQ(text_of(tree("wiki") / "a"), "text");
}

// Regression: such a start could not be cancelled.
TEST_F(StageInput, AStartThatWaitsForTheTreesOfOthersCanBeAbandoned) {
  write("wiki/a", "text");
  ASSERT_TRUE(stage("wiki"));
  const int trees = ::open((root() / "jobs").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(::flock(trees, LOCK_EX), 0);
  abandoned_.set();
  (void)stage("wiki", "j2");
  ::close(trees);
  EXPECT_FALSE(fs::exists(root() / "jobs/j2/data"));
}

TEST_F(StageInput, TreesThatSomebodyHasRemovedAreLeft) {
  write("wiki/a", "text");
  ASSERT_TRUE(stage("wiki"));
  fs::remove_all(root());
  EXPECT_TRUE(leave());
}

TEST_F(StageInput, OnlyWhatIsWantedIsFetched) {
  for (const char* name : {"wiki/a.bin", "wiki/a.idx", "wiki/other", "wiki/sub/a.bin"})
    write(name, "text");
  fs::create_directories(store() / "wiki/empty");
  include_ = {"/a.*"};
  at_ = [this](const std::string& what) {
    if (what == "listing again") write("wiki/late", "not wanted: no change");
  };
  const auto staged = stage("wiki");
  ASSERT_TRUE(staged) << staged.error().message;
  EXPECT_EQ(fetched_, 8U);
  EXPECT_EQ(std::distance(fs::directory_iterator(tree("wiki")), {}), 2);
  include_ = {"none.*", "*.npy"};
  EXPECT_THAT(stage("wiki", "j2").error().message,
              HasSubstr("there is nothing at this URL of such a name (include: none.*, *.npy)"));
}

// Regression: an agent that was killed when all had been kept left the fetch's directory for good.
TEST_F(StageInput, WhatAKilledFetchHasLeftGoesAlsoWhenNothingIsMissing) {
  write("wiki/a", "text");
  ASSERT_TRUE(stage("wiki"));
  fs::path partial;
  for (const auto& entry : fs::directory_iterator(root() / "cache/partial"))
    if (entry.path().extension() == ".lock")
      partial = entry.path().parent_path() / entry.path().stem();
  ASSERT_FALSE(partial.empty());
  fs::create_directories(partial / "sub");
  ASSERT_TRUE(stage("wiki", "j2"));
  EXPECT_EQ(fetched_, 0U);
  EXPECT_FALSE(fs::exists(partial));
}

TEST_F(StageInput, ALaterAttemptHasWhatTheJobBeganWith) {
  write("wiki/a", "first");
  write("wiki/b", "second");
  const auto began = stage("wiki");
  ASSERT_TRUE(began) << began.error().message;
  EXPECT_EQ(began->name(), "data");
  EXPECT_EQ(began->objects(), 2U);
  EXPECT_EQ(began->bytes(), 11U);
  EXPECT_EQ(began->fetched_bytes(), 11U);
  ASSERT_TRUE(leave()) << "the run directory goes between two attempts";
  write("wiki/a", "another text");
  write("wiki/c", "new");
  fs::remove(store() / "wiki/b");
  began_with_ = began->contents_sha256();
  std::set<std::string> seen;
  at_ = [&](const std::string& what) { seen.insert(what); };
  const auto later = stage("wiki");
  ASSERT_TRUE(later) << later.error().message;
  EXPECT_EQ(later->contents_sha256(), began_with_);
  EXPECT_EQ(later->fetched_bytes(), 0U);
  EXPECT_FALSE(seen.contains("listing")) << "the store is asked for nothing";
  EXPECT_EQ(text_of(tree("wiki") / "a"), "first");
  EXPECT_EQ(text_of(tree("wiki") / "b"), "second");
  EXPECT_FALSE(fs::exists(tree("wiki") / "c"));
}

TEST_F(StageInput, WhatIsMissingOfTheListIsFetched) {
  write("wiki/a", "first");
  write("wiki/b", "second");
  began_with_ = stage("wiki").value_or(v1::InputState()).contents_sha256();
  ASSERT_TRUE(leave());
  ASSERT_TRUE(fs::remove(only_object("second")));
  write("wiki/c", "new");
  const auto later = stage("wiki");
  ASSERT_TRUE(later) << later.error().message;
  EXPECT_EQ(later->contents_sha256(), began_with_);
  EXPECT_EQ(later->fetched_bytes(), 6U);
  EXPECT_EQ(text_of(tree("wiki") / "b"), "second");
  EXPECT_FALSE(fs::exists(tree("wiki") / "c")) << "what is new does not matter";
}

// Regression: what was fetched was put under the key of the list before it was compared, so that
// the next start took it for what the job had begun with.
TEST_F(StageInput, WhatIsMissingAndHasChangedIsNamedEachTime) {
  write("wiki/a", "first");
  write("wiki/b", "second");
  began_with_ = stage("wiki").value_or(v1::InputState()).contents_sha256();
  ASSERT_TRUE(leave());
  ASSERT_TRUE(fs::remove(only_object("second")));
  const auto time = fs::last_write_time(store() / "wiki/b");
  write("wiki/b", "sec0nd");
  fs::last_write_time(store() / "wiki/b", time);
  for (int tries = 0; tries < 2; ++tries) {
    const auto later = stage("wiki");
    ASSERT_FALSE(later);
    EXPECT_EQ(later.error().code, ErrorCode::Conflict) << later.error().message;
    EXPECT_THAT(later.error().message,
                HasSubstr("it was changed since the job began: 'b' was written again"));
  }
  write("wiki/b", "longer than before");
  EXPECT_THAT(stage("wiki").error().message, HasSubstr("'b' has another size (18, was 6)"));
  fs::remove(store() / "wiki/b");
  EXPECT_THAT(stage("wiki").error().message,
              HasSubstr("'b' is not there any more, and this node does not have what the job began "
                        "with; the next attempt takes what is there now"));
  write("wiki/b", "second");
  fs::last_write_time(store() / "wiki/b", time);
  began_with_.clear();
  ASSERT_TRUE(stage("wiki", "j2"));
  EXPECT_EQ(text_of(tree("wiki", "j2") / "b"), "second") << "another job, with the same times";
}

TEST_F(StageInput, WhatIsPutBackIsTakenWhateverItsTime) {
  write("wiki/b", "second");
  began_with_ = stage("wiki").value_or(v1::InputState()).contents_sha256();
  ASSERT_TRUE(leave());
  ASSERT_TRUE(fs::remove(only_object("second")));
  write("wiki/b", "sec0nd");
  ASSERT_FALSE(stage("wiki"));
  write("wiki/b", "second");
  const auto back = stage("wiki");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->contents_sha256(), began_with_);
  EXPECT_EQ(text_of(tree("wiki") / "b"), "second");
}

// Regression: what had come while somebody wrote there stayed in the cache under what was listed.
TEST_F(StageInput, WhatChangedWhileItWasFetchedIsFetchedAgain) {
  write("wiki/a", "first");
  const auto time = fs::last_write_time(store() / "wiki/a");
  at_ = [&](const std::string& what) {
    if (what == "listing again") write("wiki/b", "more");
  };
  ASSERT_FALSE(stage("wiki"));
  at_ = {};
  fs::remove(store() / "wiki/b");
  write("wiki/a", "f1rst");
  fs::last_write_time(store() / "wiki/a", time);
  ASSERT_TRUE(stage("wiki"));
  EXPECT_EQ(text_of(tree("wiki") / "a"), "f1rst");
}

TEST_F(StageInput, AStoreThatGoesAwayBeforeItIsListedAgainCostsNothingThatHasCome) {
  write("wiki/a", "first");
  away_most_ = std::chrono::milliseconds(1);
  at_ = [&](const std::string& what) {
    if (what == "listing again") fs::rename(store(), dir_ / "away");
  };
  ASSERT_FALSE(stage("wiki"));
  at_ = {};
  fs::rename(dir_ / "away", store());
  const auto again = stage("wiki");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->fetched_bytes(), 0U);
}

TEST_F(StageInput, ObjectsThatTheIndexHasForgottenAreThereStill) {
  write("wiki/a", "first");
  began_with_ = stage("wiki").value_or(v1::InputState()).contents_sha256();
  ASSERT_TRUE(InputCache::open(root()));
  fs::remove(root() / "cache/index.db");
  fs::remove_all(store());
  const auto later = stage("wiki");
  ASSERT_TRUE(later) << later.error().message;
  EXPECT_EQ(later->fetched_bytes(), 0U);
  EXPECT_EQ(text_of(tree("wiki") / "a"), "first");
}

TEST_F(StageInput, TheSameFilesAreTheSameWhateverTheirTimes) {
  write("wiki/a", "first");
  const auto one = stage("wiki");
  fs::last_write_time(store() / "wiki/a", fs::file_time_type::clock::now() - std::chrono::hours(5));
  const auto other = stage("wiki", "j2");
  ASSERT_TRUE(one && other);
  EXPECT_EQ(one->contents_sha256(), other->contents_sha256());
}

TEST_F(StageInput, WithoutThatListTheStoreIsListedAnew) {
  write("wiki/a", "first");
  const auto first = stage("wiki");
  ASSERT_TRUE(first);
  const fs::path kept = root() / "cache/contents" / first->contents_sha256();
  std::ofstream(kept, std::ios::app) << "damage";
  write("wiki/b", "second");
  for (const std::string& digest :
       {first->contents_sha256(), std::string(64, 'a'), std::string("../../x")}) {
    began_with_ = digest;
    const auto anew = stage("wiki");
    ASSERT_TRUE(anew) << anew.error().message;
    EXPECT_NE(anew->contents_sha256(), digest);
    EXPECT_EQ(anew->objects(), 2U);
  }
}

TEST_F(StageInput, ContentsThatWereNotUsedForLongGo) {
  const fs::path job = dir_ / "job";
  fs::create_directories(job);
  store::Contents contents;
  std::vector<std::string> digests;
  const auto keep = [&](std::size_t i, const std::string& input) {
    contents.objects = {{.name = std::to_string(i), .size = i, .sha256 = std::string(64, 'a')}};
    EXPECT_TRUE(keep_contents(root(), contents, job, input));
    digests.push_back(contents.sha256());
    const auto age = std::chrono::hours(2 * kContentsMost - i);
    fs::last_write_time(root() / "cache/contents" / digests.back(),
                        fs::file_time_type::clock::now() - age);
  };
  keep(0, "of_a_tree");
  for (std::size_t i = 1; i <= kContentsMost + 2; ++i) keep(i, "another");
  EXPECT_TRUE(kept_contents(root(), digests[0])) << "a job's tree has it";
  EXPECT_FALSE(kept_contents(root(), digests[1])) << "the one that was used least recently";
  EXPECT_TRUE(kept_contents(root(), digests[2])) << "it is used now";
  keep(kContentsMost + 3, "another");
  EXPECT_TRUE(kept_contents(root(), digests[2]));
  EXPECT_FALSE(kept_contents(root(), digests[3]));
  touch_contents(job);
  fs::remove_all(job);
  fs::create_directories(job);
  keep(kContentsMost + 4, "another");
  EXPECT_TRUE(kept_contents(root(), digests[0])) << "the tree has just gone";
}

TEST_F(StageInput, LinksInADirectoryAreWhatIsBehindThem) {
  write("blobs/1", "text");
  fs::create_directories(store() / "hub");
  fs::create_symlink("../blobs/1", store() / "hub/model");
  ASSERT_TRUE(stage("hub"));
  EXPECT_EQ(text_of(tree("hub") / "model"), "text");
}

}  // namespace
}  // namespace muster::agent
