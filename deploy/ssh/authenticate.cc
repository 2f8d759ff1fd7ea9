#include "deploy/ssh/authenticate.h"

#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "deploy/ssh/agent.h"
#include "deploy/ssh/host_key.h"
#include "deploy/ssh/identity.h"

namespace muster::ssh {
namespace {

// One way to prove that the user has a key.
struct Candidate {
  std::string name;  // for people
  std::string blob;  // of the agent; empty: the file signs
  const Identity* file = nullptr;
};

struct AgentSigner {
  Agent& agent;
  const std::string& blob;
  std::string why;  // the agent gave no signature
};

// Called by libssh2 with the pointer that libssh2_userauth_publickey got.
int sign_by_agent(LIBSSH2_SESSION*, unsigned char** signature, size_t* size,
                  const unsigned char* data, size_t data_size, void** abstract) {
  AgentSigner& signer = *static_cast<AgentSigner*>(*abstract);
  const auto bytes =
      signer.agent.sign(signer.blob, {reinterpret_cast<const char*>(data), data_size});
  if (!bytes) {
    signer.why = bytes.error().message;
    return -1;
  }
  *signature = static_cast<unsigned char*>(::malloc(bytes->size() + 1));  // libssh2 frees it
  if (*signature == nullptr) return -1;
  bytes->copy(reinterpret_cast<char*>(*signature), bytes->size());
  *size = bytes->size();
  return 0;
}

void answer_one_question(const char*, int, const char*, int, int count,
                         const LIBSSH2_USERAUTH_KBDINT_PROMPT* questions,
                         LIBSSH2_USERAUTH_KBDINT_RESPONSE* answers, void** abstract) {
  Wire& wire = *static_cast<Wire*>(*abstract);
  // Several questions, or one whose answer is shown, do not ask for the password.
  if (count != 1 || questions[0].echo != 0 || wire.password == nullptr) return;
  answers[0].text = ::strdup(wire.password->c_str());  // libssh2 frees it, and the Wire wipes it
  answers[0].length = answers[0].text == nullptr ? 0 : static_cast<unsigned>(wire.password->size());
  wire.password = nullptr;  // one answer
}

class KeyOffers {
 public:
  KeyOffers(Wire& wire, const Hop& hop, Prompts& prompts, AuthReport& report)
      : wire_(wire), hop_(hop), prompts_(prompts), report_(report) {}

  Result<bool> run() {
    open_agent();
    for (const std::string& path : hop_.identity_files) {
      auto identity = read_identity(path);
      if (identity) identities_.push_back(std::move(*identity));
      if (!identity && identity.error().code != ErrorCode::NotFound)
        report_.notes.push_back(identity.error().message);
    }
    for (const Candidate& candidate : candidates()) {
      auto accepted = candidate.file == nullptr ? by_agent(candidate) : by_file(candidate);
      if (!accepted || *accepted) return accepted;
    }
    return false;
  }

 private:
  void open_agent() {
    std::string socket = hop_.identity_agent;
    if (socket.empty() || socket == "SSH_AUTH_SOCK") {
      const char* variable = ::getenv("SSH_AUTH_SOCK");
      socket = variable == nullptr ? "" : variable;
    }
    if (socket.empty() || socket == "none") return;
    auto agent = Agent::open(socket);
    auto keys = agent ? agent->keys() : Result<std::vector<AgentKey>>(fail(agent.error()));
    if (!keys) return report_.notes.push_back(keys.error().message);
    agent_.emplace(std::move(*agent));
    keys_ = std::move(*keys);
  }

  [[nodiscard]] bool agent_has(const std::string& blob) const {
    return !blob.empty() && std::ranges::find(keys_, blob, &AgentKey::blob) != keys_.end();
  }

  std::vector<Candidate> candidates() {
    std::vector<Candidate> found, with_passphrase;
    const auto usable = [&](const std::string& type, const std::string& name) {
      if (libssh2_signs(type)) return true;
      report_.unusable.push_back(name);
      return false;
    };
    for (const Identity& one : identities_) {
      const std::string name =
          "key '" + one.path + "'" + (one.type.empty() ? "" : " (" + one.type + ")");
      if (!usable(one.type, name)) continue;
      if (agent_has(one.blob))
        found.push_back({.name = name + " in ssh-agent", .blob = one.blob});
      else if (one.has_private)
        (one.encrypted ? with_passphrase : found).push_back({.name = name, .file = &one});
    }
    for (const AgentKey& key : keys_) {
      const bool named =
          std::ranges::find(identities_, key.blob, &Identity::blob) != identities_.end();
      const std::string name =
          "key '" + key.comment + "' (" + key_type(key.blob) + ") in ssh-agent";
      if (named || hop_.identities_only || !usable(key_type(key.blob), name)) continue;
      found.push_back({.name = name, .blob = key.blob});
    }
    found.insert(found.end(), with_passphrase.begin(), with_passphrase.end());
    return found;
  }

  Result<bool> accepted(const Candidate& candidate, const Result<int>& rc) {
    if (!rc) return fail(Error(rc.error()));
    report_.tried.push_back(candidate.name);
    if (*rc == 0) return true;
    if (wire_.late() || *rc == LIBSSH2_ERROR_SOCKET_DISCONNECT ||
        *rc == LIBSSH2_ERROR_SOCKET_SEND || *rc == LIBSSH2_ERROR_SOCKET_RECV)
      return fail(wire_.failure(*rc).in("offering the " + candidate.name));
    return false;
  }

  Result<bool> by_agent(const Candidate& candidate) {
    AgentSigner signer{.agent = *agent_, .blob = candidate.blob, .why = {}};
    void* pointer = &signer;
    const auto rc = wire_.finish([&] {
      return libssh2_userauth_publickey(
          wire_.session(), hop_.user.c_str(),
          reinterpret_cast<const unsigned char*>(candidate.blob.data()), candidate.blob.size(),
          &sign_by_agent, &pointer);
    });
    if (!signer.why.empty()) report_.notes.push_back(candidate.name + ": " + signer.why);
    return accepted(candidate, rc);
  }

  Result<bool> by_file(const Candidate& candidate) {
    const Identity& file = *candidate.file;
    std::optional<Secret> passphrase;
    if (file.encrypted) {
      const auto asked = std::chrono::steady_clock::now();
      passphrase = prompts_.ask(passphrase_question(file.path));
      wire_.set_deadline(wire_.deadline() + (std::chrono::steady_clock::now() - asked));
      if (!passphrase) {
        report_.notes.push_back(candidate.name + ": its passphrase was not given");
        return false;
      }
    }
    const auto rc = wire_.finish([&] {
      return libssh2_userauth_publickey_fromfile_ex(
          wire_.session(), hop_.user.c_str(), static_cast<unsigned>(hop_.user.size()), nullptr,
          file.path.c_str(), passphrase ? passphrase->c_str() : "");
    });
    if (rc && (*rc == LIBSSH2_ERROR_FILE || *rc == LIBSSH2_ERROR_KEYFILE_AUTH_FAILED))
      report_.notes.push_back(candidate.name + ": " +
                              (passphrase ? "its passphrase is wrong" : wire_.last_text()));
    return accepted(candidate, rc);
  }

  Wire& wire_;
  const Hop& hop_;
  Prompts& prompts_;
  AuthReport& report_;
  std::optional<Agent> agent_;
  std::vector<AgentKey> keys_;
  std::vector<Identity> identities_;
};

// Asks for the methods. True: the host needs none.
Result<bool> list_methods(Wire& wire, const Hop& hop, AuthReport& report) {
  const char* list = nullptr;
  const auto rc = wire.finish([&] {
    list = libssh2_userauth_list(wire.session(), hop.user.c_str(),
                                 static_cast<unsigned>(hop.user.size()));
    return list != nullptr ? 0 : libssh2_session_last_errno(wire.session());
  });
  if (!rc) return fail(Error(rc.error()));
  if (libssh2_userauth_authenticated(wire.session()) != 0) return true;
  if (list == nullptr) return fail(wire.failure(*rc).in("asking for ways to authenticate"));
  report.methods.clear();
  for (std::string_view rest = list; !rest.empty();) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    report.methods.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

std::string joined(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : ", ") + text;
  return out.empty() ? "nothing" : out;
}

}  // namespace

bool AuthReport::accepts(std::string_view method) const {
  return std::ranges::find(methods, method) != methods.end();
}

std::string AuthReport::text() const {
  std::string out = "the host refused the authentication; it accepts " + joined(methods) +
                    ", and these were tried: " + joined(tried);
  if (!unusable.empty()) out += "; not usable with libssh2: " + joined(unusable);
  for (const std::string& note : notes) out += "; " + note;
  return out;
}

Result<bool> authenticate_by_keys(Wire& wire, const Hop& hop, Prompts& prompts,
                                  AuthReport& report) {
  auto done = list_methods(wire, hop, report);
  if (!done || *done || !report.accepts("publickey")) return done;
  return KeyOffers(wire, hop, prompts, report).run();
}

Result<bool> authenticate_by_password(Wire& wire, const Hop& hop, const Secret& password,
                                      AuthReport& report) {
  auto done = list_methods(wire, hop, report);
  if (!done || *done) return done;
  const auto size = static_cast<unsigned>(hop.user.size());
  Result<int> rc = 0;
  if (report.accepts("password")) {
    report.tried.emplace_back("the password");
    rc = wire.finish([&] {
      return libssh2_userauth_password_ex(wire.session(), hop.user.c_str(), size, password.c_str(),
                                          static_cast<unsigned>(password.size()), nullptr);
    });
  } else if (report.accepts("keyboard-interactive")) {
    report.tried.emplace_back("the password (keyboard-interactive)");
    wire.password = &password;
    rc = wire.finish([&] {
      return libssh2_userauth_keyboard_interactive_ex(wire.session(), hop.user.c_str(), size,
                                                      &answer_one_question);
    });
    wire.password = nullptr;
  } else {
    return false;
  }
  if (!rc) return fail(Error(rc.error()));
  if (*rc == 0) return true;
  if (*rc == LIBSSH2_ERROR_PASSWORD_EXPIRED)
    report.notes.emplace_back("the password has expired; log in once and change it");
  if (wire.late() || *rc == LIBSSH2_ERROR_SOCKET_DISCONNECT)
    return fail(wire.failure(*rc).in("sending the password"));
  return false;
}

}  // namespace muster::ssh
