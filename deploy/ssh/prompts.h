// Prompts asks a person for secrets: a password of a host, the passphrase of a key file. PromptOnce
// lets any number of sessions share one answer, so that a person answers each question once.
//
// Prompts::ask() may be called from every thread that connects, also at the same time. PromptOnce
// passes on one question at a time; the others wait until it is answered.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "common/base/mutex.h"
#include "deploy/ssh/secret.h"

namespace muster::ssh {

struct Question {
  enum class Kind : std::uint8_t { Passphrase, Password };
  Kind kind = Kind::Password;
  // of a passphrase: the path of the key; of a password: "USER" for all hosts of a run, or
  // "USER@HOST"; of sudo's: the user and the way to the host (rollout/host.cc)
  std::string subject;
  // one line for people, without control characters: "passphrase of the key '/keys/id_ed25519'"
  std::string text;
  // The caller calls Prompts::tried() when it knows whether the answer was right.
  bool is_tried = false;
};

// Of a key's file.
Question passphrase_question(const std::string& path);

class Prompts {
 public:
  virtual ~Prompts() = default;
  // Nothing: nobody can answer (no terminal), or the person gave no answer.
  virtual std::optional<Secret> ask(const Question& question) = 0;
  // It is known now whether a host takes the answer, or it will not be known.
  virtual void tried(const Question& /*question*/) {}
  // A host refused this answer, so it is not given again. An answer that came later stays, and so
  // does one that another host took. True: it is that one, so this host needs another answer.
  virtual bool refused(const Question& /*question*/, const Secret& /*answer*/) { return false; }
  // A host took this answer.
  virtual void accepted(const Question& /*question*/, const Secret& /*answer*/) {}
  // Whether ask() gives an answer without asking a person.
  virtual bool knows(const Question& /*question*/) { return false; }
};

// For programs that run without a person.
class NoPrompts final : public Prompts {
 public:
  std::optional<Secret> ask(const Question&) override { return std::nullopt; }
};

// Remembers each answer that was not refused, also the one that nobody gave, until it is destroyed.
// `inner` must live as long. A host's password that no host has taken yet is tried at one host at a
// time: a slip of the fingers must not lock an account on all of them.
class PromptOnce final : public Prompts {
 public:
  explicit PromptOnce(Prompts& inner) : inner_(inner) {}
  std::optional<Secret> ask(const Question& question) override;
  void tried(const Question& question) override;
  bool refused(const Question& question, const Secret& answer) override;
  void accepted(const Question& question, const Secret& answer) override;
  bool knows(const Question& question) override;

 private:
  struct Answer {
    std::optional<Secret> secret;
    bool taken = false;   // by a host
    bool trying = false;  // at one host; the others wait
  };
  Prompts& inner_;
  Mutex mutex_;
  CondVar changed_;
  std::map<std::pair<Question::Kind, std::string>, Answer> answers_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::ssh
