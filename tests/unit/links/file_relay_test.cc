// Two agents' streams joined by the controller: which parts of a transfer arrive, and what the
// asking agent gets when a transfer fails.
#include "controller/links/file_relay.h"

#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <future>
#include <thread>

#include "muster/v1/agent_service.grpc.pb.h"

namespace muster::controller {
namespace {

class Service final : public v1::AgentService::CallbackService {
 public:
  // The files are on n1. The request's attempt is the number of the test's question.
  FileRelay::Taker* FetchFiles(grpc::CallbackServerContext* context,
                               const v1::FetchFilesRequest* request) override {
    return relay_.fetch(*context, [this, asked = *request](const FileTransferPtr& transfer) {
      if (asked.number() > 0)
        return FileRelay::refuse(transfer, {grpc::StatusCode::OUT_OF_RANGE, "no such directory"});
      const auto ticket = relay_.open(
          transfer, {.node = NodeName(asked.node()), .attempt = {JobId("j"), AttemptNo(1)}},
          NodeName("n1"), InstanceId("i1"));
      if (!ticket) FileRelay::refuse(transfer, {grpc::StatusCode::UNAVAILABLE, "too many"});
      tickets_.at(asked.attempt()).set_value(ticket.value_or("none"));
    });
  }
  FileRelay::Giver* SendFiles(grpc::CallbackServerContext*, v1::SendFilesResponse*) override {
    return relay_.send({.is_owner = true, .identity = {}}, {});
  }

  FileRelay relay_{2};
  std::array<std::promise<std::string>, 4> tickets_;
};

class Relay : public testing::Test {
 protected:
  void SetUp() override {
    grpc::ServerBuilder builder;
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    taker_ = v1::AgentService::NewStub(server_->InProcessChannel({}));
    giver_ = v1::AgentService::NewStub(server_->InProcessChannel({}));
  }
  void TearDown() override { server_->Shutdown(); }

  std::string ticket(std::size_t question) {
    return service_.tickets_.at(question).get_future().get();
  }
  std::unique_ptr<grpc::ClientReader<v1::FetchFilesResponse>> asks(grpc::ClientContext& context,
                                                                   std::uint32_t question,
                                                                   const std::string& node) {
    v1::FetchFilesRequest request;
    request.set_attempt(question);
    request.set_node(node);
    return taker_->FetchFiles(&context, request);
  }
  void ask(std::uint32_t number = 0) {
    v1::FetchFilesRequest request;
    request.set_number(number);
    reader_ = taker_->FetchFiles(&asking_, request);
  }
  // A sender that has sent its ticket.
  void send(const std::string& node = "n1") {
    writer_ = giver_->SendFiles(&sending_, &response_);
    v1::SendFilesRequest request;
    request.mutable_ticket()->set_node(node);
    request.mutable_ticket()->set_instance("i1");
    request.mutable_ticket()->set_ticket(ticket(0));
    writer_->Write(request);
  }
  bool write(const std::string& bytes) {
    v1::SendFilesRequest request;
    request.mutable_part()->set_data(bytes);
    return writer_->Write(request);
  }
  bool write_end() {
    v1::SendFilesRequest request;
    request.mutable_part()->mutable_end()->set_files(1);
    return writer_->Write(request);
  }
  grpc::Status sent() {
    writer_->WritesDone();
    return writer_->Finish();
  }
  // Returns all bytes that arrive, and how the stream ends.
  std::string come() {
    std::string bytes;
    v1::FetchFilesResponse response;
    while (reader_->Read(&response)) {
      bytes += response.part().data();
      if (response.part().has_end()) bytes += "<end>";
    }
    ended_ = reader_->Finish();
    return bytes;
  }

  Service service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::AgentService::Stub> taker_, giver_;
  grpc::ClientContext asking_, sending_;
  std::unique_ptr<grpc::ClientReader<v1::FetchFilesResponse>> reader_;
  std::unique_ptr<grpc::ClientWriter<v1::SendFilesRequest>> writer_;
  v1::SendFilesResponse response_;
  grpc::Status ended_;
};

TEST_F(Relay, MoreThanItMayHoldArrivesInOrder) {
  ask();
  send();
  constexpr int kParts = 64;
  std::thread sender([this] {
    for (int i = 0; i < kParts; ++i)
      EXPECT_TRUE(write(std::string(256 << 10, static_cast<char>('a' + i % 26))));
    EXPECT_TRUE(write_end());
    EXPECT_TRUE(sent().ok());
  });
  const std::string all = come();
  sender.join();
  ASSERT_EQ(all.size(), (std::size_t{kParts} << 18U) + 5);
  EXPECT_TRUE(all.ends_with("<end>"));
  for (int i = 0; i < kParts; ++i) EXPECT_EQ(all[static_cast<std::size_t>(i) << 18U], 'a' + i % 26);
  EXPECT_TRUE(ended_.ok()) << ended_.error_message();
}

TEST_F(Relay, OneThatIsCutOffHasNoGoodEnd) {
  ask();
  send();
  EXPECT_TRUE(write("half"));
  sending_.TryCancel();
  come();
  EXPECT_EQ(ended_.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(ended_.error_message(),
            "the node was cut off while it sent; another start fetches all of it anew");
  (void)writer_->Finish();
}

TEST_F(Relay, AStreamThatStopsWithoutItsEndIsCutOffToo) {
  ask();
  send();
  EXPECT_TRUE(write("half"));
  (void)sent();
  come();
  EXPECT_EQ(ended_.error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(Relay, WhatTheSenderCannotReadItSaysItself) {
  ask();
  send();
  v1::SendFilesRequest request;
  request.mutable_part()->mutable_failed()->set_text(
      "reading '/x' for another node: it has no files on node 'n1'");
  EXPECT_TRUE(writer_->Write(request));
  (void)sent();
  come();
  EXPECT_EQ(ended_.error_message(), "reading '/x' for another node: it has no files on node 'n1'");
}

TEST_F(Relay, ATicketIsOfOneNodeAndOfOneTransfer) {
  ask();
  send("n2");
  EXPECT_EQ(sent().error_code(), grpc::StatusCode::NOT_FOUND);
  service_.relay_.node_gone(NodeName("n3"));
  service_.relay_.node_gone(NodeName("n1"));
  come();
  EXPECT_EQ(ended_.error_message(),
            "the node's agent has gone before it sent any; look after that node");
}

TEST_F(Relay, TheEndOfTheAttemptEndsBoth) {
  ask();
  send();
  EXPECT_TRUE(write("half"));
  v1::FetchFilesResponse first;
  EXPECT_TRUE(reader_->Read(&first));
  service_.relay_.drop({JobId("j"), AttemptNo(2)});
  EXPECT_TRUE(write("more"));
  EXPECT_TRUE(reader_->Read(&first));
  service_.relay_.drop({JobId("j"), AttemptNo(1)});
  come();
  EXPECT_EQ(ended_.error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(writer_->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(Relay, OneThatAskedAndWentEndsTheSending) {
  ask();
  send();
  EXPECT_TRUE(write("half"));
  v1::FetchFilesResponse first;
  EXPECT_TRUE(reader_->Read(&first))
      << "the ticket has been looked at; without it nobody waits for the files any more";
  asking_.TryCancel();
  come();
  EXPECT_EQ(writer_->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

// Regression: two nodes of a job could fill the controller's memory: one asked without end and did
// not read what the other sent.
TEST_F(Relay, APartHasOneTransferAndAllTogetherHaveABound) {
  sending_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  reader_ = asks(asking_, 0, "n2");
  send();
  std::thread sender([this] {
    while (write(std::string(256 << 10, 'x'))) {
    }
  });
  v1::FetchFilesResponse first;
  EXPECT_TRUE(reader_->Read(&first)) << "it reads no more than this";
  grpc::ClientContext contexts[3];
  const auto again = asks(contexts[0], 1, "n2");
  EXPECT_NE(ticket(1), "none");
  sender.join();
  EXPECT_EQ(writer_->Finish().error_code(), grpc::StatusCode::CANCELLED);
  come();
  EXPECT_EQ(ended_.error_code(), grpc::StatusCode::CANCELLED);
  const auto third = asks(contexts[1], 2, "n3");
  EXPECT_NE(ticket(2), "none") << "the relay of this test has two places, and n2 has one";
  const auto fourth = asks(contexts[2], 3, "n4");
  EXPECT_EQ(ticket(3), "none");
  EXPECT_EQ(fourth->Finish().error_message(), "too many");
  for (grpc::ClientContext& one : contexts) one.TryCancel();
  EXPECT_EQ(again->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(third->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(Relay, WhatIsRefusedIsReportedAtOnce) {
  ask(1);
  EXPECT_EQ(come(), "");
  EXPECT_EQ(ended_.error_code(), grpc::StatusCode::OUT_OF_RANGE);
}

}  // namespace
}  // namespace muster::controller
