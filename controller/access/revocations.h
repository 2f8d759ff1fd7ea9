// Revocations says at every call over TCP whether the caller's certificate still counts, and ends
// the open streams of one that does not, and of one whose rights a new access file takes away.
// main() of the controller owns it; it must outlive the server. Thread-safe.
//
// The shell's strand publishes what the ledger says, after that is durable. A stream enters when it
// begins, and stays until its OnDone. A check costs a lock and two look-ups. gRPC serves health and
// reflection itself; their streams enter by an interceptor (served_streams.h).
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/base/mutex.h"
#include "common/pki/certificate.h"
#include "common/rpc/tls_port.h"
#include "controller/core/access/revoked.h"

namespace muster::controller {

class Revocations {
 public:
  using End = std::function<void(const grpc::Status&)>;
  // Whether the caller may still see what the stream shows. Any thread calls it; it takes no lock
  // that a stream's callbacks take.
  using May = std::function<Result<void>()>;
  class Stay;

  // Ends every stream whose certificate does not count any more, before it returns. Never with a
  // lock that a stream's callbacks take.
  void publish(core::Revoked revoked);
  // After a new access file: ends every stream whose Stay::keep_while() has an error. Not with a
  // lock that a stream's callbacks take.
  void ask_again();

  // From now on only certificates of these CAs count (PEM, one after the other). Streams of others
  // end, as in publish(). Until the first call it is enough that the handshake was sound.
  void trust(const std::string& ca_pem);

  // NotAllowed, with a sentence. For the check of a call (rpc::CallChecks).
  [[nodiscard]] Result<void> check(const pki::Identity& identity,
                                   const pki::Certificate& certificate) const;

  // For the handler of a stream. The stream ends at once if it was revoked between the check of the
  // call and this. The owner's streams never end.
  [[nodiscard]] Stay enter(grpc::ServerContextBase& context);
  [[nodiscard]] Stay enter(const rpc::Caller& caller, End end);

 private:
  struct Open {
    core::Subject subject;
    std::string key;
    WallTime issued{};
    std::string certificate;  // PEM
    End end;
    May may = {};
  };
  using Cas = std::vector<pki::Certificate>;
  struct Book {
    Mutex mutex;
    std::shared_ptr<const core::Revoked> revoked MUSTER_GUARDED_BY(mutex) =
        std::make_shared<core::Revoked>();
    std::shared_ptr<const Cas> trusted MUSTER_GUARDED_BY(mutex);  // null: every one
    std::map<std::uint64_t, Open> open MUSTER_GUARDED_BY(mutex);
    std::uint64_t last MUSTER_GUARDED_BY(mutex) = 0;
  };
  const std::shared_ptr<Book> book_ = std::make_shared<Book>();
};

// Owns a stream's place among the open ones. A default one has none. keep_while() and leave() may
// run at the same time.
class Revocations::Stay {
 public:
  Stay() = default;
  Stay(Stay&& other) noexcept : book_(std::move(other.book_)), number_(other.number_) {}
  Stay& operator=(Stay&& other) noexcept {
    leave();
    book_ = std::move(other.book_);
    number_ = other.number_;
    return *this;
  }
  ~Stay() { leave(); }
  // The stream goes on as long as `may` has no error. It is asked at once, because the access file
  // may have changed since the check of the call. Without a place nothing happens.
  void keep_while(May may);
  void leave();

 private:
  friend class Revocations;
  Stay(std::shared_ptr<Book> book, std::uint64_t number)
      : book_(std::move(book)), number_(number) {}

  std::shared_ptr<Book> book_;
  std::uint64_t number_ = 0;
};

}  // namespace muster::controller
