#include "controller/secrets/job_secrets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <future>
#include <optional>
#include <string>

namespace muster::controller {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

const JobId kJob("01j8x4a0b7c2d");

class JobSecretsTest : public testing::Test {
 protected:
  JobSecretsTest() {
    std::string pattern = testing::TempDir() + "secrets-XXXXXX";
    dir_ = ::mkdtemp(pattern.data());
    vault_.emplace(std::move(*Vault::open(dir_ / "secrets", dir_ / "key")));
    secrets_.emplace(*vault_, later_);
    core::JobRecord& job = ledger_.jobs[kJob];
    job.id = kJob;
    job.owner = "ann";
    (*job.spec.mutable_runtime()->mutable_env())["HF_TOKEN"] = "${secret:hf}";
  }
  ~JobSecretsTest() override {
    later_.stop();
    fs::remove_all(dir_);
  }
  void release(core::EventBody body) {
    const journal::Row row{.index = JournalIndex(++index_), .event = {.at = {}, .body = body}};
    secrets_->released({&row, 1});
    std::promise<void> done;
    later_.post("test", [&] { done.set_value(); });
    done.get_future().wait();
  }
  // Returns the item.
  std::string set(const std::string& value, const std::string& replaced = {}) {
    const std::string item = *vault_->put(value);
    ledger_.secrets[kKey] = {.item = item, .set_at = {}, .actor = "ann"};
    release(core::SecretSet{.key = kKey, .item = item, .replaced = replaced, .actor = "ann"});
    return item;
  }
  void remove(const std::string& item) {
    ledger_.secrets.erase(kKey);
    release(core::SecretRemoved{.key = kKey, .item = item, .actor = "ann"});
  }
  void place(const std::string& item) {
    core::AttemptRecord attempt;
    attempt.secrets = {{.name = "hf", .item = item}};
    ledger_.jobs.at(kJob).attempts.push_back(attempt);
    core::AttemptPlaced placed;
    placed.job = kJob;
    placed.secrets = attempt.secrets;
    release(placed);
  }
  void restart() {
    secrets_.emplace(*vault_, later_);
    secrets_->start(ledger_, system_clock().now().wall);
  }
  std::string shown(std::string line) {
    v1::Fact fact;
    fact.set_job_id(kJob.str());
    fact.mutable_exited()->set_evidence(std::move(line));
    secrets_->hide(fact);
    return fact.exited().evidence();
  }
  [[nodiscard]] bool is_there(const std::string& item) const {
    return vault_->get(item).has_value();
  }

  const core::OwnedName kKey{.owner = "ann", .shared = false, .name = "hf"};
  fs::path dir_;
  async::Loop later_{"later"};
  core::Ledger ledger_;
  std::optional<Vault> vault_;
  std::optional<JobSecrets> secrets_;
  std::uint64_t index_ = 0;
};

TEST_F(JobSecretsTest, AnAttemptGetsWhatWasPinned) {
  const std::string item = set("first-value");
  const auto given =
      secrets_->give({{.name = "hf", .item = item}}, ledger_.jobs.at(kJob).spec);
  ASSERT_TRUE(given) << given.error().message;
  ASSERT_EQ(given->secrets_size(), 1);
  EXPECT_EQ(given->secrets(0).secret(), "hf");
  EXPECT_EQ(given->secrets(0).value(), "first-value");
  ASSERT_TRUE(vault_->remove(item));
  const auto lost = secrets_->give({{.name = "hf", .item = item}}, ledger_.jobs.at(kJob).spec);
  ASSERT_FALSE(lost);
  EXPECT_THAT(lost.error().message, HasSubstr("secret 'hf' cannot be read"));
  EXPECT_THAT(lost.error().message, Not(HasSubstr(dir_.string()))) << "of no use to its reader";
}

TEST_F(JobSecretsTest, WhatIsTooMuchForAProcessIsTheJobsFault) {
  const std::string item = set(std::string(60'000, 'x'));
  v1::JobSpec spec;
  for (int i = 0; i < 20; ++i)
    (*spec.mutable_runtime()->mutable_env())["V" + std::to_string(i)] = "${secret:hf}";
  const auto much = secrets_->give({{.name = "hf", .item = item}}, spec);
  ASSERT_FALSE(much);
  EXPECT_EQ(much.error().code, ErrorCode::InvalidArgument);
}

TEST_F(JobSecretsTest, WhatAJobHasHadIsHidden) {
  const std::string first = set("first-value");
  EXPECT_EQ(shown("first-value"), "first-value") << "nobody has it";
  place(first);
  EXPECT_EQ(shown("bad token first-value!"), "bad token [secret hf]!");
  place(set("other-value", first));
  EXPECT_EQ(shown("first-value other-value"), "[secret hf] [secret hf]")
      << "the earlier attempt's log has the earlier one";
  v1::Fact failed;
  failed.set_job_id(kJob.str());
  failed.mutable_start_failed()->set_text("runtime.setup: other-value");
  secrets_->hide(failed);
  EXPECT_EQ(failed.start_failed().text(), "runtime.setup: [secret hf]");
  v1::Fact auxiliary;
  auxiliary.set_job_id(kJob.str());
  auxiliary.mutable_auxiliary_exited()->set_evidence("other-value");
  secrets_->hide(auxiliary);
  EXPECT_EQ(auxiliary.auxiliary_exited().evidence(), "[secret hf]");
  v1::Fact others;
  others.set_job_id("01j8x4a0b7c2e");
  others.mutable_exited()->set_evidence("other-value");
  secrets_->hide(others);
  EXPECT_EQ(others.exited().evidence(), "other-value") << "another job's log is its own matter";
}

// Regression story: the owner's secret was removed, a shared one of the same name stayed, and after
// a restart only the shared one's value was hidden.
TEST_F(JobSecretsTest, AfterARestartItKnowsWhatEachAttemptHad) {
  const std::string first = set("first-value");
  place(first);
  remove(first);
  ledger_.secrets[{.owner = {}, .shared = true, .name = "hf"}] = {
      .item = *vault_->put("of-everybody"), .set_at = {}, .actor = "ada"};
  restart();
  EXPECT_EQ(shown("bad first-value"), "bad [secret hf]");
}

TEST_F(JobSecretsTest, AnItemStaysAsLongAsAJobHasIt) {
  const std::string first = set("first-value");
  place(first);
  place(first);
  const std::string other = set("other-value", first);
  EXPECT_TRUE(is_there(first));
  restart();
  EXPECT_TRUE(is_there(first));
  remove(other);
  EXPECT_FALSE(is_there(other)) << "no attempt has it";
  core::JobArchived archived;
  archived.job = kJob;
  release(archived);
  EXPECT_FALSE(is_there(first));
  EXPECT_EQ(shown("first-value"), "first-value") << "nothing is known of the job any more";
}

TEST_F(JobSecretsTest, AValueThatIsLostLeavesEvidenceOutAndNoSentence) {
  const std::string item = set("first-value");
  place(item);
  ASSERT_TRUE(vault_->remove(item));
  restart();
  EXPECT_THAT(shown("bad first-value"), Not(HasSubstr("first-value")));
  v1::Fact failed;
  failed.set_job_id(kJob.str());
  failed.mutable_start_failed()->set_text("there is no '/x/train.py'");
  secrets_->hide(failed);
  EXPECT_EQ(failed.start_failed().text(), "there is no '/x/train.py'");
}

}  // namespace
}  // namespace muster::controller
