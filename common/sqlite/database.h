// A small C++ interface to SQLite: a connection, prepared statements, and Results. Whoever opens a
// database owns it. One thread at a time uses a Database and its statements.
//
// Only database.cc includes sqlite3.h. A statement that was not stepped to its end is reset by its
// next use.
#pragma once

#include <chrono>
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

namespace muster::sqlite {

// Bytes are written as BLOB, a string_view as TEXT.
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

  // Resets the statement and binds these values. The views must live until the statement is stepped
  // to its end.
  Statement& with(std::initializer_list<Bound> values);
  // Returns true if there is a row, false at the end.
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
    Write,  // makes the file (mode 0600) if it is missing
    // In addition to a connection of this process that writes, and on another thread. Reads the
    // newest committed state, and waits for nobody.
    Read,
    // Only reads. The file and its WAL do not change, not even when the database is closed, and no
    // other file is made. Nobody else may have the database open.
    Inspect,
  };
  // `what` it is, for messages: "journal". Each statement, also the first, waits up to `patience`
  // for another connection that has the database locked.
  static Result<std::unique_ptr<Database>> open(
      const std::filesystem::path& file, Mode mode, std::string what,
      std::chrono::milliseconds patience = std::chrono::milliseconds(0));
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database();

  Result<void> execute(const char* sql);
  Result<Statement> prepare(std::string_view sql);
  // Runs `work` between BEGIN IMMEDIATE and COMMIT. Rolls back when `work` fails or throws.
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
  // Ends an open transaction without effect. Does nothing outside of a transaction.
  void rollback() noexcept;

  [[nodiscard]] int changes() const;
  // True if the last failure was a lack of room on the disk.
  [[nodiscard]] bool no_room() const;
  // True once a statement has failed with ErrorCode::DataLoss.
  [[nodiscard]] bool is_damaged() const;
  // From now on, closing moves the content of the WAL into the database file. Before this call,
  // closing does not: a database that turns out to be damaged, or an old database next to a newer
  // WAL, stays as it was found.
  void checkpoint_on_close();

 private:
  friend class Statement;
  Database() = default;
  [[nodiscard]] std::unexpected<Error> failed(std::string_view doing);

  struct Close {
    void operator()(sqlite3* handle) const;
  };
  std::filesystem::path file_;
  std::string what_;
  std::unique_ptr<sqlite3, Close> handle_;
  bool no_room_ = false;
  bool is_damaged_ = false;
};

}  // namespace muster::sqlite
