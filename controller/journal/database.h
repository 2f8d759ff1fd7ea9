// SQLite in our terms: a connection, prepared statements, Results. The only file that includes
// sqlite3.h. One thread at a time; what is not stepped to its end is reset by Statement's next use.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "common/base/error.h"

struct sqlite3;
struct sqlite3_stmt;

namespace muster::journal {

// Bytes are written as BLOB, string_view as TEXT.
struct Bytes {
  std::string_view data;
};
using Bound = std::variant<std::int64_t, std::string_view, Bytes>;

class Database;

class Statement {
 public:
  Statement() = default;
  Statement(Statement&&) = default;
  Statement& operator=(Statement&&) = default;

  // Starts anew with these values. The views must live until the statement has been stepped to its
  // end.
  Statement& with(std::initializer_list<Bound> values);
  // True: a row is there. False: the end.
  Result<bool> step();
  // Steps to the end of a statement that returns no rows.
  Result<void> run();
  void reset();

  [[nodiscard]] std::int64_t number(int column) const;
  [[nodiscard]] std::string_view bytes(int column) const;  // valid until the next step

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  Database* database_ = nullptr;
  std::unique_ptr<sqlite3_stmt, Finalize> handle_;
};

class Database {
 public:
  enum class Mode {
    Write,  // makes the file (0600) where there is none
    // beside a connection of this process that writes, and on a thread of its own: what was
    // committed last, held up by nothing
    Read,
    // reads only: the file and its WAL stay as they are even when closed, and no other file is
    // made; nobody else may have it open
    Inspect,
  };
  static Result<std::unique_ptr<Database>> open(const std::filesystem::path& file, Mode mode);
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database();

  Result<void> execute(const char* sql);
  Result<Statement> prepare(std::string_view sql);
  // BEGIN IMMEDIATE … COMMIT; rolled back when `work` fails or throws. `before_commit` runs
  // between.
  template <class Work>
  Result<void> transaction(const Work& work) {
    if (auto begun = execute("BEGIN IMMEDIATE"); !begun) return begun;
    struct Undo {
      Database& database;
      ~Undo() { database.rollback(); }
    } undo{*this};
    if (Result<void> done = work(); !done) return done;
    return execute("COMMIT");
  }
  // Ends an open transaction without effect; nothing to do outside of one.
  void rollback() noexcept;

  [[nodiscard]] int changes() const;
  // The last failure was for want of room on the disk.
  [[nodiscard]] bool no_room() const;
  // From now on closing moves what the WAL holds into the database file. Until then it does not:
  // what turns out to be damaged, or an old database beside a newer WAL, stays as it was found.
  void checkpoint_on_close();

 private:
  friend class Statement;
  Database() = default;
  [[nodiscard]] std::unexpected<Error> failed(std::string_view doing);

  struct Close {
    void operator()(sqlite3* handle) const;
  };
  std::filesystem::path file_;
  std::unique_ptr<sqlite3, Close> handle_;
  bool no_room_ = false;
};

}  // namespace muster::journal
