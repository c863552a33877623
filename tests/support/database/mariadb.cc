#include "tests/support/database/mariadb.h"

#include <fstream>
#include <system_error>
#include <utility>

#include <mariadb/mysql.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

namespace firn {
namespace {

namespace fs = std::filesystem;

// Small files, and nothing that only costs time at the start and end of a test server. Writes
// survive the death of the program, not of the machine.
constexpr const char* kConfig = R"([mariadbd]
innodb_log_file_size=4M
innodb_buffer_pool_size=8M
innodb_data_file_path=ibdata1:4M:autoextend
innodb_temp_data_file_path=ibtmp1:4M:autoextend
innodb_undo_tablespaces=0
performance_schema=off
skip_name_resolve
max_connections=500
log_bin=bin
sync_binlog=0
innodb_flush_log_at_trx_commit=2
)";

// Run at each start; not replicated.
constexpr const char* kSetUp =
    "SET SESSION sql_log_bin = 0;\n"
    "CREATE DATABASE IF NOT EXISTS ids CHARACTER SET utf8mb4;\n"
    "CREATE USER IF NOT EXISTS firn@'127.0.0.1' IDENTIFIED BY 'a secret of tests';\n"
    "GRANT SELECT, INSERT, UPDATE ON ids.* TO firn@'127.0.0.1';\n"
    "CREATE USER IF NOT EXISTS copier@'127.0.0.1' IDENTIFIED BY 'another';\n"
    "GRANT REPLICATION SLAVE ON *.* TO copier@'127.0.0.1';\n";

// MariaDB runs as root only with --user=root.
std::string UserFlag() {
  const passwd* const user = getpwuid(geteuid());
  return std::string("--user=") + (user != nullptr ? user->pw_name : "root");
}

Status WriteFile(const fs::path& path, const std::string& text, mode_t mode) {
  std::ofstream(path) << text;
  return chmod(path.c_str(), mode) == 0 ? Status() : Internal("cannot write " + path.string());
}

// A starting server removes other servers' temporary tables from the folder, so each has its own:
// tests run in parallel.
Status WriteConfig(const TempDir& folder) {
  return WriteFile(folder / "my.cnf", kConfig + ("tmpdir=" + folder.path().string()) + "\n", 0600);
}

// The files of a server that has never run.
Result<fs::path> InstallFiles(const TempDir& folder) {
  FIRN_TRY(WriteConfig(folder));
  const fs::path data = folder / "data";
  const Finished install = RunToEnd({"mariadb-install-db", "--defaults-file=" + (folder / "my.cnf"),
                                     "--datadir=" + data.string(), UserFlag(),
                                     "--auth-root-authentication-method=normal", "--skip-test-db",
                                     "--force"});  // even if the machine's name cannot be resolved
  if (install.exit_code == 0) return data;
  return Unavailable("mariadb-install-db (package mariadb-server) failed: " + install.out +
                     install.err);
}

// Creating them takes a second, so it is done once per program.
const Result<fs::path>& FreshFiles() {
  static const TempDir folder;
  static const Result<fs::path> files = InstallFiles(folder);
  return files;
}

// A connection as root through the socket, for one statement.
class Root {
 public:
  explicit Root(const fs::path& folder) {
    const unsigned int seconds = 20;
    mysql_init(&client_);
    mysql_options(&client_, MYSQL_OPT_READ_TIMEOUT, &seconds);
    const std::string socket = folder / "socket";
    connected_ = mysql_real_connect(&client_, nullptr, "root", "", MariaDb::kDatabase, 0,
                                    socket.c_str(), 0) != nullptr;
  }
  ~Root() { mysql_close(&client_); }
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;

  Result<std::vector<MariaDb::Row>> Query(const std::string& sql) {
    if (!connected_ || mysql_real_query(&client_, sql.data(), sql.size()) != 0) return Failure();
    std::vector<MariaDb::Row> rows;
    MYSQL_RES* result = mysql_store_result(&client_);
    if (result == nullptr && mysql_errno(&client_) != 0) return Failure();
    if (result == nullptr) return rows;
    while (const MYSQL_ROW row = mysql_fetch_row(result)) {
      MariaDb::Row& fields = rows.emplace_back();
      for (unsigned int i = 0; i < mysql_num_fields(result); ++i) {
        fields.emplace_back(row[i] != nullptr ? row[i] : "NULL");
      }
    }
    mysql_free_result(result);
    return rows;
  }

 private:
  Status Failure() { return Unavailable(mysql_error(&client_)); }

  MYSQL client_{};
  bool connected_ = false;
};

}  // namespace

Result<std::unique_ptr<MariaDb>> MariaDb::Start() {
  constexpr int kTriesMax = 3;  // another program may take a free port first
  FIRN_ASSIGN(const fs::path fresh, FreshFiles());
  Status failure;
  for (int i = 0; i < kTriesMax; ++i) {
    std::unique_ptr<MariaDb> server(new MariaDb());
    std::error_code error;
    fs::copy(fresh, server->folder_ / "data", fs::copy_options::recursive, error);
    if (error) return Internal("cannot copy " + fresh.string() + ": " + error.message());
    FIRN_TRY(WriteConfig(server->folder_));
    FIRN_TRY(WriteFile(server->folder_ / "setup.sql", kSetUp, 0600));
    FIRN_TRY(server->WriteCredentials());
    failure = server->Restart();
    if (failure.ok()) return server;
    if (i + 1 == kTriesMax) server->KeepFiles();
  }
  return std::move(failure).WithContext("MariaDB");
}

std::vector<std::string> MariaDb::Command() const {
  std::vector<std::string> command{"mariadbd",
                                   "--defaults-file=" + (folder_ / "my.cnf"),
                                   "--datadir=" + (folder_ / "data"),
                                   UserFlag(),
                                   "--bind-address=127.0.0.1,127.0.0.2",
                                   "--port=" + std::to_string(port_),
                                   "--server-id=" + std::to_string(port_),
                                   "--socket=" + (folder_ / "socket"),
                                   "--pid-file=" + (folder_ / "pid"),
                                   "--init-file=" + (folder_ / "setup.sql")};
  command.insert(command.end(), tls_flags_.begin(), tls_flags_.end());
  return command;
}

Status MariaDb::RequireTls(const std::string& cert, const std::string& key,
                           const std::string& client_ca) {
  tls_flags_ = {"--ssl-cert=" + cert, "--ssl-key=" + key, "--require-secure-transport=on"};
  if (!client_ca.empty()) tls_flags_.push_back("--ssl-ca=" + client_ca);
  FIRN_TRY(Restart());
  return Run(std::string("ALTER USER firn@'127.0.0.1' REQUIRE ") +
             (client_ca.empty() ? "NONE" : "X509"));
}

Status MariaDb::Restart() {
  process_.reset();
  process_ = Process(Command(), {.output_file = folder_ / "output.log"});
  return AwaitReady();
}

Status MariaDb::AwaitReady() {
  const bool ready =
      Eventually(kPatience, [this] { return !process_->Running() || Query("SELECT 1").ok(); });
  if (ready && process_->Running()) return {};
  return Unavailable("not serving, see " + folder().string());
}

Result<std::vector<MariaDb::Row>> MariaDb::Query(const std::string& sql) {
  return Root(folder()).Query(sql);
}

// --- replication --------------------------------------------------------------------------------

Result<std::unique_ptr<SqlServer>> MariaDb::StartReplica() {
  FIRN_ASSIGN(std::unique_ptr<SqlServer> replica, Start());
  FIRN_TRY(replica->Run("SET GLOBAL read_only = 1"));
  FIRN_TRY(replica->Run(
      "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=" + std::to_string(port()) +
      ", MASTER_USER='copier', MASTER_PASSWORD='another', MASTER_LOG_FILE='bin.000001',"
      " MASTER_LOG_POS=4, MASTER_CONNECT_RETRY=1, MASTER_SSL=0, MASTER_SSL_VERIFY_SERVER_CERT=0"));
  FIRN_TRY(replica->Run("START SLAVE"));
  return replica;
}

Status MariaDb::AwaitCaughtUp(SqlServer& primary) {
  FIRN_ASSIGN(const auto at, primary.Query("SHOW MASTER STATUS"));
  FIRN_ASSIGN(const auto waited, Query("SELECT MASTER_POS_WAIT('" + at.at(0).at(0) + "', " +
                                       at.at(0).at(1) + ", 15)"));
  const std::string& events = waited.at(0).at(0);
  if (events == "NULL" || events == "-1") return Unavailable("the replica does not catch up");
  return {};
}

Status MariaDb::Promote() {
  FIRN_TRY(Run("STOP SLAVE"));
  FIRN_TRY(Run("RESET SLAVE ALL"));
  return Run("SET GLOBAL read_only = 0");
}

}  // namespace firn
