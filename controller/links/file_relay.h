// Relays files from one agent to another, for a start that needs files of another node's own disk.
// The Hub owns it; each transfer lives as long as one of its two streams. It is thread-safe, and
// called on gRPC's threads and on the shell's strand.
//
// One agent asks for files (FetchFiles). The other agent is ordered to send them (FilesWanted) and
// opens SendFiles. The relay writes the parts that it reads from SendFiles to FetchFiles.
//
// Nothing is kept. At most kBufferedBytes of a transfer wait here. Beyond that, the relay does not
// read from the sender, so that gRPC's flow control holds it back.
//
// The end of either stream ends the other. The asking agent always gets an end: FilesEnd, or a
// status with a sentence.
//
// A start fetches one directory after the other, so a part of an attempt has one transfer. When it
// asks again, for instance after a lost connection, the new transfer ends the one before. So two
// nodes cannot make the controller keep more than one transfer for each attempt that they share.
// All transfers together have a bound, too.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "common/rpc/tls_port.h"
#include "controller/access/revocations.h"
#include "controller/core/model/event.h"
#include "controller/core/model/ledger.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::controller {

class FileTransfer;
using FileTransferPtr = std::shared_ptr<FileTransfer>;

class FileRelay {
 public:
  static constexpr std::size_t kBufferedBytes = 4 << 20;
  static constexpr std::size_t kTransfersMost = 8'192;  // two for each node of the largest cluster
  using Taker = grpc::ServerWriteReactor<v1::FetchFilesResponse>;
  using Giver = grpc::ServerReadReactor<v1::SendFilesRequest>;

  // The part of an attempt for whose start files are fetched.
  struct Asker {
    NodeName node;
    core::AttemptKey attempt;
    friend auto operator<=>(const Asker&, const Asker&) = default;
  };

  explicit FileRelay(std::size_t transfers_most = kTransfersMost)
      : book_(std::make_shared<Book>(transfers_most)) {}

  // The asking agent's stream. `judge` is called once, before this returns; it calls open() or
  // refuse(), at once or later.
  Taker* fetch(grpc::CallbackServerContext& context,
               const std::function<void(FileTransferPtr)>& judge, Revocations::Stay stay = {});
  // Sets for whom the files are, and where they come from. Returns the ticket for FilesWanted.
  // Nothing: too many transfers are under way; refuse this one.
  std::optional<std::string> open(const FileTransferPtr& transfer, const Asker& asker,
                                  const NodeName& source, const InstanceId& instance);
  static void refuse(const FileTransferPtr& transfer, const grpc::Status& why);

  // The sending agent's stream. A node sends only its own files.
  Giver* send(rpc::Caller caller, std::function<void(const Error&)> on_refused,
              Revocations::Stay stay = {});

  // Call this when the attempt is over: it ends the attempt's transfers.
  void drop(const core::AttemptKey& attempt);
  // Ends the transfers that this node has not begun to send.
  void node_gone(const NodeName& node);

 private:
  friend class FileTransfer;
  struct Book {
    explicit Book(std::size_t transfers_most) : most(transfers_most) {}
    const std::size_t most;
    Mutex mutex;
    std::map<std::string, std::weak_ptr<FileTransfer>> open MUSTER_GUARDED_BY(mutex);  // by ticket
    std::map<Asker, std::string> tickets MUSTER_GUARDED_BY(mutex);  // of the transfers in `open`
  };
  [[nodiscard]] std::vector<FileTransferPtr> all() const;
  const std::shared_ptr<Book> book_;
};

}  // namespace muster::controller
