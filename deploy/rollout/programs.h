// Programs is what is deployed: the programs of one version, for one or more architectures. They
// come from a directory, or from the archives of a release. Thread-safe once it is made.
//
// An archive is a .tar.gz with muster-VERSION-ARCH/bin/PROGRAM (docs/operations/deploy.md). Other
// members are passed over. ELF: the machine of a program is checked against the architecture.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "deploy/rollout/judge.h"

namespace muster::rollout {

// One program's bytes, also compressed, once for all hosts.
class ProgramBytes {
 public:
  explicit ProgramBytes(std::string raw) : raw_(std::move(raw)) {}
  [[nodiscard]] const std::string& raw() const { return raw_; }
  // As gzip writes it.
  const std::string& compressed() const;

 private:
  std::string raw_;
  mutable std::once_flag once_;
  mutable std::string compressed_;  // written once, under once_
};

class Programs {
 public:
  // The four programs of muster, of the version of this one.
  static Result<Programs> from_directory(const std::filesystem::path& dir);
  // All of one version.
  static Result<Programs> from_bundles(const std::vector<std::string>& files);

  [[nodiscard]] const std::string& version() const { return version_; }
  [[nodiscard]] const ProgramSet* set_for(const std::string& arch) const;
  [[nodiscard]] const ProgramBytes& bytes(const std::string& arch, const std::string& name) const;
  [[nodiscard]] std::string architectures() const;  // "aarch64, x86_64"

 private:
  Result<void> add(const std::string& arch, std::string name, std::string raw,
                   std::string_view from);
  Result<void> check_whole() const;

  std::string version_;
  std::map<std::string, ProgramSet> facts_;
  std::map<std::string, std::map<std::string, std::unique_ptr<ProgramBytes>>> bytes_;
};

// "x86_64" or "aarch64", by the header of an ELF file; empty: neither.
std::string elf_architecture(std::string_view bytes);

}  // namespace muster::rollout
