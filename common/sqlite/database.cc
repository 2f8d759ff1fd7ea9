#include "common/sqlite/database.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "common/base/assert.h"
#include "common/io/unique_fd.h"

namespace muster::sqlite {

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
void Database::Close::operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }

// --- Statement -----------------------------------------------------------------------------------
Statement& Statement::with(std::initializer_list<Bound> values) {
  reset();
  int place = 0;
  for (const Bound& value : values) {
    ++place;
    int code = SQLITE_OK;
    if (const auto* number = std::get_if<std::int64_t>(&value)) {
      code = sqlite3_bind_int64(handle_.get(), place, *number);
    } else if (const auto* text = std::get_if<std::string_view>(&value)) {
      code = sqlite3_bind_text64(handle_.get(), place, text->data() == nullptr ? "" : text->data(),
                                 text->size(), SQLITE_STATIC, SQLITE_UTF8);
    } else {
      const std::string_view data = std::get<Bytes>(value).data;
      code = sqlite3_bind_blob64(handle_.get(), place, data.data() == nullptr ? "" : data.data(),
                                 data.size(), SQLITE_STATIC);
    }
    MUSTER_ASSERT(code == SQLITE_OK, "binding a value of a statement");
  }
  return *this;
}

Result<bool> Statement::step() {
  const int code = sqlite3_step(handle_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) {
    sqlite3_reset(handle_.get());
    return false;
  }
  auto error = database_->failed("using");
  sqlite3_reset(handle_.get());
  return error;
}

Result<void> Statement::run() {
  auto row = step();
  if (!row) return fail(std::move(row.error()));
  MUSTER_ASSERT(!*row, "a statement that should return nothing returned a row");
  return {};
}

void Statement::reset() { sqlite3_reset(handle_.get()); }

std::int64_t Statement::number(int column) const {
  return sqlite3_column_int64(handle_.get(), column);
}

std::string_view Statement::bytes(int column) const {
  const auto* data = static_cast<const char*>(sqlite3_column_blob(handle_.get(), column));
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(handle_.get(), column));
  return data == nullptr ? std::string_view() : std::string_view(data, size);
}

// --- Database ------------------------------------------------------------------------------------
namespace {

// True also when stat() fails: then the WAL may have content.
bool has_wal(const std::filesystem::path& file) {
  struct stat status{};
  return ::stat((file.native() + "-wal").c_str(), &status) == 0 ? status.st_size > 0
                                                                : errno != ENOENT;
}

// A database in one file that nobody changes: SQLite makes no other file, and locks nothing.
std::string immutable_uri(const std::filesystem::path& file) {
  std::string uri = "file:";
  for (const char letter : file.native()) {
    const bool plain = letter != '%' && letter != '?' && letter != '#';
    uri +=
        plain ? std::string(1, letter) : fmt::format("%{:02x}", static_cast<unsigned char>(letter));
  }
  return uri + "?immutable=1";
}

// SQLite would make the file with mode 0644; its -wal and -shm files take their mode from it. A
// file that is there is not opened: to close it would end the locks that other connections of this
// process have on it (fcntl(2)).
Result<void> make_file(const std::filesystem::path& file, const std::string& what) {
  const std::string opening = fmt::format("opening the {} '{}'", what, file.native());
  const std::string closing_it =
      fmt::format("making the {} '{}' readable for its owner only", what, file.native());
  const io::UniqueFd made(::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (made) {
    if (::fchmod(made.get(), 0600) != 0) return fail_errno(closing_it, errno);
    return {};
  }
  struct stat status{};
  if (errno != EEXIST || ::faccessat(AT_FDCWD, file.c_str(), R_OK | W_OK, AT_EACCESS) != 0 ||
      ::stat(file.c_str(), &status) != 0)
    return fail_errno(opening, errno);
  if (S_ISDIR(status.st_mode)) return fail_errno(opening, EISDIR);
  if ((status.st_mode & 07777) != 0600 && ::chmod(file.c_str(), 0600) != 0)
    return fail_errno(closing_it, errno);
  return {};
}

}  // namespace

Result<std::unique_ptr<Database>> Database::open(const std::filesystem::path& file, Mode mode,
                                                 std::string what,
                                                 std::chrono::milliseconds patience) {
  std::unique_ptr<Database> database(new Database);
  database->file_ = file;
  database->what_ = std::move(what);
  if (mode == Mode::Write)
    if (auto made = make_file(file, database->what_); !made) return fail(std::move(made.error()));
  sqlite3* handle = nullptr;
  constexpr int kFlags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  const bool settled = mode == Mode::Inspect && !has_wal(file);
  const int access = mode == Mode::Read ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  const int code = settled
                       ? sqlite3_open_v2(immutable_uri(file).c_str(), &handle,
                                         kFlags | SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nullptr)
                       : sqlite3_open_v2(file.c_str(), &handle, kFlags | access, nullptr);
  database->handle_.reset(handle);
  if (code != SQLITE_OK) return database->failed("opening");
  sqlite3_busy_timeout(handle, static_cast<int>(patience.count()));
  sqlite3_db_config(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  if (mode == Mode::Inspect) {
    // With an exclusive lock, SQLite keeps the index of the WAL in memory: no -shm file is made or
    // changed.
    if (auto set = database->execute("PRAGMA locking_mode=EXCLUSIVE; PRAGMA query_only=ON"); !set)
      return fail(std::move(set.error()));
  } else if (mode == Mode::Write) {
    // If the WAL keeps its size over a restart, it is overwritten in place: then a sync need not
    // write the length of the file, too.
    int keep = 1;
    sqlite3_file_control(handle, "main", SQLITE_FCNTL_PERSIST_WAL, &keep);
  }
  return database;
}

Database::~Database() {
  if (handle_ != nullptr) rollback();
}

Result<void> Database::execute(const char* sql) {
  if (sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK)
    return failed("using");
  return {};
}

Result<Statement> Database::prepare(std::string_view sql) {
  sqlite3_stmt* handle = nullptr;
  const int code = sqlite3_prepare_v3(handle_.get(), sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &handle, nullptr);
  if (code == SQLITE_ERROR) {
    // The statements are muster's own and correct. Tables that do not fit them were not made by
    // muster.
    is_damaged_ = true;
    return fail(ErrorCode::DataLoss,
                fmt::format("using the {} '{}': its tables are damaged: {}", what_, file_.native(),
                            sqlite3_errmsg(handle_.get())));
  }
  if (code != SQLITE_OK) return failed("using");
  Statement statement;
  statement.database_ = this;
  statement.handle_.reset(handle);
  return statement;
}

void Database::rollback() noexcept {
  if (sqlite3_get_autocommit(handle_.get()) == 0)
    sqlite3_exec(handle_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
}

int Database::changes() const { return sqlite3_changes(handle_.get()); }

bool Database::no_room() const { return no_room_; }
bool Database::is_damaged() const { return is_damaged_; }

void Database::checkpoint_on_close() {
  sqlite3_db_config(handle_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, nullptr);
}

std::unexpected<Error> Database::failed(std::string_view doing) {
  const int code = handle_ == nullptr ? SQLITE_NOMEM : sqlite3_extended_errcode(handle_.get());
  const int system = handle_ == nullptr ? 0 : sqlite3_system_errno(handle_.get());
  no_room_ = (code & 0xff) == SQLITE_FULL ||
             ((code & 0xff) == SQLITE_IOERR && (system == ENOSPC || system == EDQUOT));
  const bool damaged = (code & 0xff) == SQLITE_CORRUPT || (code & 0xff) == SQLITE_NOTADB;
  is_damaged_ = is_damaged_ || damaged;
  const std::string what = handle_ == nullptr ? "out of memory" : sqlite3_errmsg(handle_.get());
  return fail(damaged    ? ErrorCode::DataLoss
              : no_room_ ? ErrorCode::ResourceExhausted
                         : ErrorCode::Io,
              fmt::format("{} the {} '{}': {} (SQLite {}{})", doing, what_, file_.native(), what,
                          code, system == 0 ? std::string() : fmt::format(", errno {}", system)));
}

}  // namespace muster::sqlite
