// Files on their way from one agent to another: the one asks (FetchFiles), the other is told to
// send (FilesWanted) and opens SendFiles, and the parts of the one stream become those of the
// other. Nothing is kept: at most kBufferedBytes of a transfer wait here, beyond them the sender is
// not
// read from, so that gRPC's flow control holds it back.
//
// Thread-safe. A transfer lives as long as one of its two streams; the end of either ends the
// other. The asking agent always gets an end: FilesEnd, or a status with a sentence.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "controller/core/event.h"
#include "controller/core/ledger.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::controller {

class FileTransfer;
using FileTransferPtr = std::shared_ptr<FileTransfer>;

class FileRelay {
 public:
  static constexpr std::size_t kBufferedBytes = 4 << 20;
  using Taker = grpc::ServerWriteReactor<v1::FetchFilesResponse>;
  using Giver = grpc::ServerReadReactor<v1::SendFilesRequest>;

  // The asking side. `judge` is called once, before this returns: it calls open() or refuse(), now
  // or later.
  Taker* fetch(const std::function<void(FileTransferPtr)>& judge);
  // Where the files come from, and for which attempt; the ticket for FilesWanted.
  std::string open(const FileTransferPtr& transfer, const NodeName& source,
                   const InstanceId& instance, const core::AttemptKey& attempt);
  static void refuse(const FileTransferPtr& transfer, const grpc::Status& why);

  // The sending side.
  Giver* send();

  // The attempt is over.
  void drop(const core::AttemptKey& attempt);
  // What it has not begun to send it will not.
  void node_gone(const NodeName& node);

 private:
  friend class FileTransfer;
  struct Book {
    std::mutex mutex;
    std::map<std::string, std::weak_ptr<FileTransfer>> open;  // by ticket
  };
  [[nodiscard]] std::vector<FileTransferPtr> all() const;
  const std::shared_ptr<Book> book_ = std::make_shared<Book>();
};

}  // namespace muster::controller
