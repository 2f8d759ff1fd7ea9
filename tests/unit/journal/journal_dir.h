// A temporary directory of a test, and journals in it. A test owns them. They run on the test's
// thread.
#pragma once

#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "controller/journal/sqlite_journal.h"
#include "tests/unit/journal/sample_events.h"

namespace muster::journal {

class TempDir {
 public:
  TempDir() {
    // In memory where that is possible: thousands of small copies are made and removed, and no test
    // here needs the disk itself.
    const std::filesystem::path memory = "/dev/shm";
    const bool usable = ::access(memory.c_str(), W_OK | X_OK) == 0;
    std::string pattern =
        ((usable ? memory : std::filesystem::temp_directory_path()) / "muster-journal-XXXXXX")
            .native();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
    path_ = pattern;
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline SqliteOptions options_for(const std::filesystem::path& dir) {
  return {.dir = dir, .ballast_bytes = 0, .low_space_bytes = 0};
}

// An opened and loaded journal, with the rows that load() passed on.
struct Opened {
  std::unique_ptr<SqliteJournal> journal;
  std::vector<std::string> rows;
  std::optional<Error> error;  // of open() or load()
};
inline Opened open_journal(SqliteOptions options) {
  Opened opened;
  auto journal = SqliteJournal::open(std::move(options));
  if (!journal) {
    opened.error = journal.error();
    return opened;
  }
  auto loaded = (*journal)->load([&](const Row& row) { opened.rows.push_back(text_of(row)); });
  if (!loaded) {
    opened.error = loaded.error();
    return opened;
  }
  opened.journal = std::move(*journal);
  return opened;
}
inline Opened open_journal(const std::filesystem::path& dir, bool accept_loss = false) {
  SqliteOptions options = options_for(dir);
  options.accept_loss = accept_loss;
  return open_journal(std::move(options));
}

// The directory's head, or the mark that replaced it. They throw if it has none.
inline Head head_in(const std::filesystem::path& dir) {
  return std::get<Head>(HeadFile::read(dir / "head").value());
}
inline Behind mark_in(const std::filesystem::path& dir) {
  return std::get<Behind>(HeadFile::read(dir / "head").value());
}

// Appends the events as one batch. Returns the texts of the rows.
inline std::vector<std::string> append(Journal& journal, const std::vector<core::Event>& events) {
  std::vector<Row> batch;
  std::vector<std::string> texts;
  for (const core::Event& event : events) {
    batch.push_back(
        {.index = JournalIndex(journal.last().value + batch.size() + 1), .event = event});
    texts.push_back(text_of(batch.back()));
  }
  if (auto done = journal.append(batch); !done) throw std::runtime_error(done.error().message);
  return texts;
}

// Runs any SQL on the database, without the journal.
inline void sql(const std::filesystem::path& dir, const std::string& text) {
  sqlite3* handle = nullptr;
  char* message = nullptr;
  const bool well = sqlite3_open((dir / "journal.db").c_str(), &handle) == SQLITE_OK &&
                    sqlite3_exec(handle, text.c_str(), nullptr, nullptr, &message) == SQLITE_OK;
  const std::string error = message == nullptr ? "" : message;
  sqlite3_free(message);
  sqlite3_close(handle);
  if (!well) throw std::runtime_error("sql: " + text + ": " + error);
}
// The first column of each row.
inline std::vector<std::string> sql_texts(const std::filesystem::path& dir,
                                          const std::string& text) {
  sqlite3* handle = nullptr;
  sqlite3_stmt* statement = nullptr;
  std::vector<std::string> texts;
  const bool well = sqlite3_open((dir / "journal.db").c_str(), &handle) == SQLITE_OK &&
                    sqlite3_prepare_v2(handle, text.c_str(), -1, &statement, nullptr) == SQLITE_OK;
  while (well && sqlite3_step(statement) == SQLITE_ROW)
    texts.emplace_back(reinterpret_cast<const char*>(sqlite3_column_text(statement, 0)));
  sqlite3_finalize(statement);
  sqlite3_close(handle);
  if (!well) throw std::runtime_error("sql: " + text);
  return texts;
}
inline std::int64_t sql_number(const std::filesystem::path& dir, const std::string& text) {
  sqlite3* handle = nullptr;
  sqlite3_stmt* statement = nullptr;
  const bool well =
      sqlite3_open((dir / "journal.db").c_str(), &handle) == SQLITE_OK &&
      sqlite3_prepare_v2(handle, text.c_str(), -1, &statement, nullptr) == SQLITE_OK &&
      sqlite3_step(statement) == SQLITE_ROW;
  const std::int64_t number = well ? sqlite3_column_int64(statement, 0) : -1;
  sqlite3_finalize(statement);
  sqlite3_close(handle);
  if (!well) throw std::runtime_error("sql: " + text);
  return number;
}

inline std::string read_all(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}
inline void write_all(const std::filesystem::path& file, const std::string& content) {
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << content;
  if (!out.flush()) throw std::runtime_error("writing " + file.native());
}
// Copies the directory as it is: this is what a killed process leaves.
inline void copy_dir(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::filesystem::remove_all(to);
  std::filesystem::copy(from, to, std::filesystem::copy_options::recursive);
}

}  // namespace muster::journal
