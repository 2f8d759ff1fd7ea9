#include "deploy/ssh/libssh2_session.h"

#include <array>
#include <chrono>
#include <cstdint>

#include "common/base/controls.h"
#include "deploy/ssh/child.h"
#include "deploy/ssh/deadline.h"

namespace muster::ssh {
namespace {

constexpr std::size_t kChannelPartBytes = std::size_t{32} << 10U;

struct ChannelFree {
  void operator()(LIBSSH2_CHANNEL* channel) const { libssh2_channel_free(channel); }
};
using Channel = std::unique_ptr<LIBSSH2_CHANNEL, ChannelFree>;

// Carries the bytes of one command.
class Exchange {
 public:
  Exchange(Wire& wire, LIBSSH2_CHANNEL* channel, Source& input)
      : wire_(wire), channel_(channel), input_(input) {}

  // Until the other end has closed the channel. Every call of libssh2 takes packets of all kinds
  // from the socket, also for a stream that was read before in the same round. So it waits only
  // after a round in which nothing moved and nothing was taken.
  Result<Output> run() {
    for (;;) {
      moved_ = false;
      const std::uint64_t received = wire_.received();
      if (auto done = send(); !done) return fail(std::move(done).error());
      for (const int stream : {0, SSH_EXTENDED_DATA_STDERR})
        if (auto done = receive(stream); !done) return fail(std::move(done).error());
      if (wire_.late()) return fail(wire_.failure(0));
      const std::size_t waiting = wire_.waiting();
      if (moved_ || waiting != waiting_) moved_at_ = std::chrono::steady_clock::now();
      waiting_ = waiting;
      if (moved_ || wire_.received() != received || can_send()) continue;
      if (libssh2_channel_eof(channel_) != 0) {
        const int rc = libssh2_channel_wait_closed(channel_);  // without waiting
        if (rc == 0) return std::move(output_);
        if (rc != LIBSSH2_ERROR_EAGAIN) return fail(wire_.failure(rc));
      }
      // Behind a jump host the socket does not say that the host is gone. A command may work for
      // long without reading, so this counts only while it has input to come.
      const Deadline stuck = sent_all_ ? Deadline::max() : moved_at_ + stuck_after();
      if (passed(stuck))
        return fail(ErrorCode::TimedOut, "the host has taken nothing for " +
                                             std::to_string(stuck_after().count()) + " s");
      if (auto ready = wire_.wait(stuck); !ready) return fail(std::move(ready).error());
    }
  }

 private:
  // Later than the socket's own bound, which knows the reason.
  [[nodiscard]] std::chrono::seconds stuck_after() const {
    return wire_.alive().most() + wire_.alive().interval;
  }
  bool can_send() {
    return !sent_all_ && wire_.waiting() < kWaitingDataMost &&
           libssh2_channel_window_write(channel_) > 0;
  }

  Result<void> receive(int stream) {
    for (;;) {
      std::array<char, kChannelPartBytes> part{};
      const auto count = libssh2_channel_read_ex(channel_, stream, part.data(), part.size());
      if (count == LIBSSH2_ERROR_EAGAIN || count == 0) return {};
      if (count < 0) return fail(wire_.failure(static_cast<int>(count)));
      moved_ = true;
      if (wire_.late()) return fail(wire_.failure(0));
      const std::string_view bytes(part.data(), static_cast<std::size_t>(count));
      if (stream == 0)
        append_bounded(output_.out, output_.out_cut, bytes);
      else
        append_bounded(output_.err, output_.err_cut, bytes);
    }
  }

  Result<void> send() {
    while (!sent_all_ && wire_.waiting() < kWaitingDataMost) {
      if (next_.empty()) {
        auto more = input_.next(kChannelPartBytes);
        if (!more) return fail(std::move(more).error());
        next_ = *more;
        if (next_.empty()) {
          sent_all_ = moved_ = true;
          libssh2_channel_send_eof(channel_);
          return {};
        }
      }
      const auto count = libssh2_channel_write(channel_, next_.data(), next_.size());
      if (count == LIBSSH2_ERROR_EAGAIN || count == 0) return {};  // the other end's window is full
      // The command closed its input; its output and status still count.
      if (count == LIBSSH2_ERROR_CHANNEL_CLOSED || count == LIBSSH2_ERROR_CHANNEL_EOF_SENT) {
        sent_all_ = true;
        return {};
      }
      if (count < 0) return fail(wire_.failure(static_cast<int>(count)));
      moved_ = true;
      next_.remove_prefix(static_cast<std::size_t>(count));
    }
    return {};
  }

  Wire& wire_;
  LIBSSH2_CHANNEL* channel_;
  Source& input_;
  std::string_view next_;
  bool sent_all_ = false, moved_ = false;
  std::size_t waiting_ = 0;
  std::chrono::steady_clock::time_point moved_at_ = std::chrono::steady_clock::now();
  Output output_;
};

void read_status(Wire& wire, LIBSSH2_CHANNEL* channel, Output& output) {
  char* signal = nullptr;
  std::size_t size = 0;
  libssh2_channel_get_exit_signal(channel, &signal, &size, nullptr, nullptr, nullptr, nullptr);
  if (signal == nullptr) {
    output.status = libssh2_channel_get_exit_status(channel);
    return;
  }
  output.signal = without_controls({signal, size});
  libssh2_free(wire.session(), signal);
  const int number = signal_number(output.signal);
  output.status = number == 0 ? 255 : 128 + number;
}

}  // namespace

Result<Output> Libssh2Session::run(const Command& command, Source input, Duration timeout) {
  const std::string doing = "running a command on '" + name_ + "'";
  if (command.text.size() > kCommandBytesMost)
    return fail(ErrorCode::InvalidArgument,
                doing + ": it has more than 30 KiB; give it to `sh` as its input");
  if (wire_->closed()) return fail(ErrorCode::Unreachable, doing + ": the session is closed");
  wire_->set_deadline(deadline_after(timeout));
  auto output = run_open(command, std::move(input));
  if (output) return output;
  wire_->close();
  return fail(std::move(output).error().in(doing));
}

Result<Output> Libssh2Session::run_open(const Command& command, Source input) {
  Channel channel;
  const auto opened = wire_->finish([&] {
    channel.reset(libssh2_channel_open_session(wire_->session()));
    return channel ? 0 : libssh2_session_last_errno(wire_->session());
  });
  if (!opened) return fail(Error(opened.error()));
  if (!channel) return fail(wire_->failure(*opened).in("opening a channel"));
  const auto started = wire_->finish([&] {
    return libssh2_channel_process_startup(channel.get(), "exec", 4, command.text.data(),
                                           static_cast<unsigned>(command.text.size()));
  });
  // A closed wire lets the channel be freed without waiting for the other end.
  const auto failed = [&](Error error) {
    wire_->close();
    return fail(std::move(error));
  };
  if (!started) return failed(Error(started.error()));
  if (*started != 0) return failed(wire_->failure(*started).in("starting the command"));
  auto output = Exchange(*wire_, channel.get(), input).run();
  if (!output) return failed(std::move(output).error());
  if (wire_->late()) return failed(wire_->failure(0));
  read_status(*wire_, channel.get(), *output);
  return output;
}

}  // namespace muster::ssh
