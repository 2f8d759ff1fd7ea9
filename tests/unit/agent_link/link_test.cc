#include "agent/link/link.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <future>

#include "common/log/log.h"
#include "tests/support/on_loop.h"
#include "tests/unit/agent_link/fake_controller.h"

namespace muster::agent {
namespace {

class LinkTest : public ::testing::Test {
 protected:
  LinkTest() : loop_("test-link") {
    static const auto logging = log::set_up({.daemon = "test", .level = "off"});
    EXPECT_TRUE(logging);
    std::string pattern = (std::filesystem::temp_directory_path() / "muster-link-XXXXXX").string();
    dir_ = ::mkdtemp(pattern.data());
    address_ = "unix:" + (dir_ / "s").string();
  }
  ~LinkTest() override {
    if (link_) {
      on_loop([&] { link_->stop(); });
      link_->wait();
      on_loop([&] { link_.reset(); });
    }
    controller_.reset();
    loop_.stop();
    std::filesystem::remove_all(dir_);
  }

  void on_loop(const std::function<void()>& task) { test::run_on(loop_, task); }
  void note(const std::string& what) {
    {
      const std::lock_guard lock(mutex_);
      happened_.push_back(what);
    }
    more_.notify_all();
  }
  bool wait_for(const std::string& what, std::size_t times = 1) {
    std::unique_lock lock(mutex_);
    return more_.wait_for(lock, std::chrono::seconds(60), [&] {
      return static_cast<std::size_t>(std::ranges::count(happened_, what)) >= times;
    });
  }
  bool happened(const std::string& what) {
    const std::lock_guard lock(mutex_);
    return std::ranges::count(happened_, what) > 0;
  }
  void start(Duration slow_retry = std::chrono::milliseconds(100)) {
    on_loop([&] {
      link_ = std::make_unique<Link>(
          loop_,
          LinkOptions{.endpoint = [this]() -> Result<rpc::Endpoint> {
                        return rpc::Endpoint{.address = address_};
                      },
                      .slow_retry = slow_retry,
                      .hello_timeout = hello_timeout_,
                      .seed = 1},
          LinkHandlers{
              .hello =
                  [this] {
                    note("hello");
                    v1::Hello hello;
                    hello.set_node("n1");
                    return hello;
                  },
              .on_welcome = [this](const v1::Welcome& welcome, BootTime sent) -> Result<void> {
                EXPECT_LE(sent, system_clock().now().boot);
                if (welcome.cluster_id() == "other")
                  return fail(ErrorCode::Conflict, "another cluster");
                note("welcome");
                return {};
              },
              .on_orders =
                  [this](const v1::Orders& orders) {
                    note("orders " + std::to_string(orders.epoch()));
                  },
              .on_fact_ack =
                  [this](const v1::FactAck& ack) { note("ack " + std::to_string(ack.sequence())); },
              .on_heartbeat_ack =
                  [this](const v1::HeartbeatAck& ack) {
                    note("heartbeat " + std::to_string(ack.number()));
                  },
              .on_down = [this] { note("down"); },
              .on_refused =
                  [this](const Error& error, bool other_cluster) {
                    note((other_cluster ? "refused, other cluster: " : "refused: ") +
                         error.message);
                    return stop_when_refused_;
                  }});
      link_->start();
    });
  }
  static std::optional<grpc::Status> polite(FakeController::Stream& stream,
                                            const v1::ConnectRequest& request) {
    v1::ConnectResponse response;
    if (request.has_hello()) {
      stream.Write(welcome_message());
      response.mutable_orders()->set_epoch(1);
    } else if (request.has_facts()) {
      response.mutable_fact_ack()->set_sequence(request.facts().sequence());
    } else {
      response.mutable_heartbeat_ack()->set_number(request.heartbeat().number());
    }
    stream.Write(response);
    return std::nullopt;
  }
  void serve(FakeController::Answer answer) {
    controller_ = std::make_unique<FakeController>(address_, std::move(answer));
  }

  async::Loop loop_;
  std::filesystem::path dir_;
  std::string address_;
  std::unique_ptr<FakeController> controller_;
  std::unique_ptr<Link> link_;
  bool stop_when_refused_ = false;
  Duration hello_timeout_ = std::chrono::seconds(10);
  std::mutex mutex_;
  std::condition_variable more_;
  std::vector<std::string> happened_;
};

TEST_F(LinkTest, HelloFirstThenOrdersFactsAndHeartbeatsInOrder) {
  serve(polite);
  start();
  ASSERT_TRUE(wait_for("orders 1"));
  on_loop([&] {
    for (std::uint64_t i = 1; i <= 50; ++i) {
      v1::Facts facts;
      facts.set_sequence(i);
      link_->send_facts(std::move(facts));
    }
  });
  ASSERT_TRUE(wait_for("ack 50"));
  const auto heard = controller_->heard();
  ASSERT_EQ(heard.size(), 51U);
  EXPECT_TRUE(heard[0].has_hello());
  for (std::uint64_t i = 1; i <= 50; ++i) EXPECT_EQ(heard[i].facts().sequence(), i);
}

TEST_F(LinkTest, HeartbeatsBehindASlowStreamAreReplacedByTheLatest) {
  serve(polite);
  start();
  ASSERT_TRUE(wait_for("orders 1"));
  on_loop([&] {
    for (std::uint64_t i = 1; i <= 100; ++i) {
      v1::Heartbeat heartbeat;
      heartbeat.set_number(i);
      link_->send_heartbeat(std::move(heartbeat));
    }
  });
  ASSERT_TRUE(wait_for("heartbeat 100"));
  EXPECT_LE(controller_->heard().size(), 5U);
}

TEST_F(LinkTest, NothingIsSentBeforeWelcome) {
  std::promise<void> go;
  auto gone = go.get_future().share();
  serve([gone](FakeController::Stream& stream,
               const v1::ConnectRequest& request) -> std::optional<grpc::Status> {
    if (request.has_hello()) gone.wait();
    return polite(stream, request);
  });
  start();
  ASSERT_TRUE(wait_for("hello"));
  on_loop([&] {
    link_->send_facts({});
    link_->send_heartbeat({});
    EXPECT_FALSE(link_->up());
  });
  go.set_value();
  ASSERT_TRUE(wait_for("orders 1"));
  on_loop([&] {
    v1::Heartbeat heartbeat;
    heartbeat.set_number(7);
    link_->send_heartbeat(std::move(heartbeat));
  });
  ASSERT_TRUE(wait_for("heartbeat 7"));
  EXPECT_EQ(controller_->heard().size(), 2U) << "what was said too early is not kept either";
}

TEST_F(LinkTest, ComesBackAfterTheControllerWasKilled) {
  serve(polite);
  start();
  ASSERT_TRUE(wait_for("orders 1"));
  for (std::size_t incarnation = 2; incarnation <= 4; ++incarnation) {
    controller_.reset();
    ASSERT_TRUE(wait_for("down", incarnation - 1));
    const auto begin = std::chrono::steady_clock::now();
    serve(polite);
    ASSERT_TRUE(wait_for("welcome", incarnation));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
  }
}

TEST_F(LinkTest, SaysHelloAgainWithoutBackOff) {
  serve(polite);
  start();
  on_loop([&] { link_->say_hello_again(); });  // before the Welcome
  for (std::size_t incarnation = 1; incarnation <= 20; ++incarnation) {
    ASSERT_TRUE(wait_for("orders 1", incarnation));
    on_loop([&] { link_->say_hello_again(); });
    ASSERT_TRUE(wait_for("down", incarnation));
    ASSERT_TRUE(wait_for("welcome", incarnation + 1));
  }
  EXPECT_GE(controller_->connections(), 21);
}

// A link that was never up does not go down.
TEST_F(LinkTest, SaysHelloAgainAlsoWithoutAWelcome) {
  serve([](FakeController::Stream&, const v1::ConnectRequest&) { return std::nullopt; });
  start();
  for (std::size_t hello = 1; hello <= 3; ++hello) {
    ASSERT_TRUE(wait_for("hello", hello));
    on_loop([&] { link_->say_hello_again(); });
  }
  EXPECT_TRUE(wait_for("hello", 4));
  EXPECT_FALSE(happened("down"));
}

TEST_F(LinkTest, AControllerThatDoesNotAnswerHelloIsAskedAgain) {
  hello_timeout_ = std::chrono::milliseconds(200);
  const auto answer = std::make_shared<std::atomic<bool>>(false);
  serve([answer](FakeController::Stream& stream,
                 const v1::ConnectRequest& request) -> std::optional<grpc::Status> {
    if (!*answer) return std::nullopt;
    return polite(stream, request);
  });
  start();
  ASSERT_TRUE(wait_for("hello", 3));
  on_loop([&] { EXPECT_FALSE(link_->up()); });
  *answer = true;
  EXPECT_TRUE(wait_for("welcome"));
  EXPECT_FALSE(happened("down"));
}

TEST_F(LinkTest, WaitsForAControllerThatIsNotThereYet) {
  start();
  ASSERT_TRUE(wait_for("hello", 3));
  serve(polite);
  EXPECT_TRUE(wait_for("welcome"));
}

TEST_F(LinkTest, RefusalIsHandedOnWithItsSentenceAndRetriedSlowly) {
  serve([](FakeController::Stream&, const v1::ConnectRequest&) {
    return grpc::Status(grpc::StatusCode::ABORTED, "the name is held");
  });
  start(std::chrono::milliseconds(20));
  EXPECT_TRUE(wait_for("refused: the name is held", 3));
}

// Regression: whether an agent belongs to another cluster was read from the text of the refusal.
// Any refusal that mentioned clusters ended the agent.
TEST_F(LinkTest, ARefusalIsWhatItsCodeSaysAndNotItsSentence) {
  serve([](FakeController::Stream&, const v1::ConnectRequest&) {
    return grpc::Status(grpc::StatusCode::UNAUTHENTICATED,
                        "it belongs to cluster 'c-1', and the token does not");
  });
  start(std::chrono::milliseconds(20));
  EXPECT_TRUE(wait_for("refused: it belongs to cluster 'c-1', and the token does not", 2));
}

TEST_F(LinkTest, PermanentRefusalIsNotTriedAgain) {
  stop_when_refused_ = true;
  serve([](FakeController::Stream&, const v1::ConnectRequest&) {
    return grpc::Status(grpc::StatusCode::PERMISSION_DENIED, "another cluster");
  });
  start(std::chrono::milliseconds(1));
  ASSERT_TRUE(wait_for("refused, other cluster: another cluster"));
  on_loop([&] { EXPECT_FALSE(link_->up()); });
  EXPECT_EQ(controller_->connections(), 1);
}

TEST_F(LinkTest, ThisAgentRefusesAForeignWelcome) {
  serve([](FakeController::Stream& stream,
           const v1::ConnectRequest& request) -> std::optional<grpc::Status> {
    if (request.has_hello()) stream.Write(welcome_message("other"));
    return std::nullopt;
  });
  start(std::chrono::milliseconds(20));
  EXPECT_TRUE(wait_for("refused: another cluster", 2));
  on_loop([&] { EXPECT_FALSE(link_->up()); });
}

TEST_F(LinkTest, UnknownProtocolIsRefused) {
  serve([](FakeController::Stream& stream,
           const v1::ConnectRequest& request) -> std::optional<grpc::Status> {
    if (request.has_hello()) stream.Write(welcome_message("c-1", 1, 9));
    return std::nullopt;
  });
  start(std::chrono::milliseconds(20));
  EXPECT_TRUE(wait_for("refused: connecting to the controller at '" + address_ +
                       "': it chose protocol 9, this agent speaks 1..1; upgrade the older one"));
}

}  // namespace
}  // namespace muster::agent
