#include "deploy/ssh/openssh_session.h"

#include <stdlib.h>

#include <cerrno>
#include <filesystem>

#include "common/io/file.h"
#include "deploy/ssh/child.h"
#include "deploy/ssh/host_names.h"
#include "deploy/ssh/openssh_log.h"

namespace muster::ssh {
namespace {

constexpr Duration kControlTime = std::chrono::seconds(5);
// The program's own code for its own errors; a command may end with it, too.
constexpr int kSshFailed = 255;
// A socket's path has at most 107 bytes, and `ssh` first binds a longer name.
constexpr std::size_t kFolderBytesMost = 60;

// Owns the private directory.
class PrivateFolder {
 public:
  PrivateFolder() = default;
  PrivateFolder(PrivateFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  PrivateFolder& operator=(PrivateFolder&&) = delete;
  ~PrivateFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  static Result<PrivateFolder> make() {
    std::error_code failed;
    std::string base = std::filesystem::temp_directory_path(failed);
    if (failed || base.size() > kFolderBytesMost || base.find('%') != std::string::npos)
      base = "/tmp";
    PrivateFolder folder;
    std::string path = base + "/muster-ssh-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr)
      return fail_errno("making a private directory in '" + base + "'", errno);
    folder.path_ = path;
    return folder;
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string read_log(const std::string& path) {
  auto text = io::read_regular_file(path, kLogBytesMost);
  return text ? std::move(*text) : std::string();
}

class OpenSshSession final : public Session {
 public:
  OpenSshSession(OpenSshRequest request, PrivateFolder folder)
      : request_(std::move(request)), folder_(std::move(folder)) {
    transport_ = {.kind = TransportKind::OpenSsh,
                  .why = request_.why,
                  .notes = {},
                  .by_password = !request_.passwords.empty() && request_.passwords.back()};
  }
  ~OpenSshSession() override {
    if (connected_) (void)ask_master("exit");
  }

  Result<void> connect(Deadline deadline) {
    OpenSshPlan plan = this->plan();
    plan.connect_time = deadline - std::chrono::steady_clock::now();
    ChildRequest child{.program = program(), .args = {}, .deadline = deadline};
    std::unique_ptr<AskpassServer> asked;
    if (!request_.answers.empty()) {
      const std::string socket = folder_.path() + "/a";
      auto server = AskpassServer::start(socket, request_.answers);
      if (!server) return fail(std::move(server).error());
      asked = std::move(*server);
      child.env = askpass_environment(request_.askpass_program, socket);
      plan.has_answers = true;
      plan.passwords = request_.passwords;
    }
    child.args = master_args(plan);
    const auto end = run_child(child, Source::none());
    if (!end) return fail(Error(end.error()));
    const auto& hops = request_.route.hops;
    if (end->output.status == 0 && !end->late) {
      connected_ = true;
      for (std::size_t i = 0; i < hops.size(); ++i)
        for (std::string& note : openssh_notes(read_log(plan.log(i))))
          transport_.notes.push_back(std::move(note));
      return {};
    }
    // A jump host's failure ends the connections behind it, so the first one with an error counts.
    for (std::size_t i = 0; i + 1 < hops.size(); ++i) {
      const std::string log = read_log(plan.log(i));
      if (log.empty()) continue;
      Error error = failure(log, hops[i]);
      if (log.find("Authenticated to ") == std::string::npos ||
          log.find("open failed") != std::string::npos) {
        note_refusal(log, i);
        return fail(std::move(error).in("at the jump host '" + hops[i].text() + "'"));
      }
    }
    if (end->late) return fail(ErrorCode::TimedOut, "the host did not answer in time");
    std::string log = read_log(plan.log(hops.size() - 1));
    if (log.empty()) log = end->output.err;  // options that this `ssh` does not know
    note_refusal(log, hops.size() - 1);
    return fail(failure(log, hops.back()));
  }

  Result<Output> run(const Command& command, Source input, Duration timeout) override {
    const std::string doing = "running a command on '" + request_.route.hops.back().text() + "'";
    if (command.text.size() > kCommandBytesMost)
      return fail(ErrorCode::InvalidArgument,
                  doing + ": it has more than 30 KiB; give it to `sh` as its input");
    if (!connected_) return fail(ErrorCode::Unreachable, doing + ": the session is closed");
    const OpenSshPlan plan = this->plan();
    std::filesystem::remove(plan.run_log());
    auto end = run_child({.program = program(),
                          .args = run_args(plan, command.text),
                          .deadline = deadline_after(timeout)},
                         std::move(input));
    if (!end) return closed(std::move(end).error().in(doing));
    if (end->late)
      return closed({ErrorCode::TimedOut, doing + ": the host did not answer in time"});
    if (end->output.status != kSshFailed && end->output.signal.empty())
      return std::move(end->output);
    if (const std::string log = read_log(plan.run_log()); !log.empty())
      return closed(failure(log, request_.route.hops.back()).in(doing));
    if (!ask_master("check"))
      return closed({ErrorCode::Unreachable, doing + ": the host closed the connection"});
    return std::move(end->output);
  }
  [[nodiscard]] const Transport& transport() const override { return transport_; }
  // After a connect() that failed.
  [[nodiscard]] std::optional<std::size_t> needs_key() const { return needs_key_; }
  [[nodiscard]] std::optional<std::size_t> needs_password() const { return needs_password_; }

 private:
  void note_refusal(std::string_view log, std::size_t hop) {
    if (openssh_needs_key(log)) needs_key_ = hop;
    if (openssh_needs_password(log)) needs_password_ = hop;
  }
  [[nodiscard]] OpenSshPlan plan() const {
    return {.route = request_.route,
            .ssh_config = request_.ssh_config,
            .accept_new = request_.accept_new,
            .folder = folder_.path(),
            .connect_time = {}};
  }
  [[nodiscard]] const std::string& program() const { return *request_.route.program; }
  [[nodiscard]] Error failure(std::string_view log, const Hop& hop) const {
    return openssh_failure(log, host_entry(hop.key_name(), hop.key_port()), hop.known_hosts,
                           !request_.answers.empty());
  }
  [[nodiscard]] bool ask_master(const std::string& question) const {
    const auto end = run_child({.program = program(),
                                .args = control_args(plan(), question),
                                .deadline = deadline_after(kControlTime)},
                               Source::none());
    return end && end->output.ok();
  }
  std::unexpected<Error> closed(Error error) {
    (void)ask_master("exit");
    connected_ = false;
    return fail(std::move(error));
  }

  OpenSshRequest request_;
  PrivateFolder folder_;
  Transport transport_;
  bool connected_ = false;
  std::optional<std::size_t> needs_key_;
  std::optional<std::size_t> needs_password_;
};

}  // namespace

OpenSshOutcome connect_by_openssh(OpenSshRequest request, Deadline deadline) {
  auto folder = PrivateFolder::make();
  if (!folder) return {.session = nullptr, .error = std::move(folder).error()};
  auto session = std::make_unique<OpenSshSession>(std::move(request), std::move(*folder));
  if (auto connected = session->connect(deadline); !connected)
    return {.session = nullptr,
            .error = std::move(connected).error(),
            .needs_key = session->needs_key(),
            .needs_password = session->needs_password()};
  return {.session = std::move(session), .error = std::nullopt};
}

}  // namespace muster::ssh
