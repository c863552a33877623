#include "tests/support/database/postgres.h"

#include <csignal>
#include <fstream>
#include <utility>

#include <postgresql/libpq-fe.h>
#include <pwd.h>
#include <unistd.h>

namespace firn {
namespace {

namespace fs = std::filesystem;

// Without everything that only costs time at the start and end of a test server. Writes survive the
// death of the program, not of the machine.
constexpr const char* kConfig = R"(
listen_addresses = '127.0.0.1,127.0.0.2'
max_connections = 200
shared_buffers = 8MB
fsync = off
full_page_writes = off
autovacuum = off
)";

// `kind` and `more` become part of the rule for programs.
std::string AccessRules(const std::string& kind, const std::string& more = {}) {
  return "local all all trust\n" + kind + " all firn 127.0.0.1/32 scram-sha-256" + more +
         "\nhost replication copier 127.0.0.1/32 trust\n";
}

// One statement per line, before the first start, in the databases `postgres` and `ids`.
constexpr const char* kSetUp =
    "CREATE ROLE firn LOGIN PASSWORD 'a secret of tests'\n"
    "CREATE ROLE copier LOGIN REPLICATION\n"
    "CREATE DATABASE ids\n";
constexpr const char* kSetUpIds =
    "ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT, INSERT, UPDATE ON TABLES TO firn\n";

// The package has its programs in a folder outside of PATH, by version.
std::string Program(const std::string& name) {
  std::error_code error;
  for (const auto& version : fs::directory_iterator("/usr/lib/postgresql", error)) {
    const fs::path program = version.path() / "bin" / name;
    if (fs::exists(program)) return program;
  }
  return name;
}

const passwd* OtherUser() { return geteuid() == 0 ? getpwnam("postgres") : nullptr; }

// After becoming another user, a process no longer dies with its parent.
std::vector<std::string> AsOwner(std::vector<std::string> command) {
  if (OtherUser() == nullptr) return command;
  command.insert(command.begin(), {"setpriv", "--reuid=postgres", "--regid=postgres",
                                   "--clear-groups", "--pdeathsig=KILL"});
  return command;
}

Status GiveToOwner(const fs::path& folder) {
  const passwd* const user = OtherUser();
  if (user == nullptr || chown(folder.c_str(), user->pw_uid, user->pw_gid) == 0) return {};
  return Internal("cannot give away " + folder.string());
}

Status RunAsOwner(const std::vector<std::string>& command) {
  const Finished done = RunToEnd(AsOwner(command));
  if (done.exit_code == 0) return {};
  return Unavailable(command.front() + " (package postgresql) failed: " + done.out + done.err);
}

// Runs statements in a database whose server does not run.
Status RunAlone(const TempDir& folder, const std::string& database, const char* statements) {
  std::ofstream(folder / "statements") << statements;
  return RunAsOwner({"sh", "-c", R"(exec "$1" --single -D "$2" "$3" < "$4")", "sh",
                     Program("postgres"), folder / "data", database, folder / "statements"});
}

// The files of a server that has never served.
Result<fs::path> InstallFiles(const TempDir& folder) {
  FIRN_TRY(GiveToOwner(folder.path()));
  const fs::path data = folder / "data";
  FIRN_TRY(RunAsOwner({Program("initdb"), "--pgdata=" + data.string(), "--username=postgres",
                       "--auth=trust", "--encoding=UTF8", "--locale=C", "--wal-segsize=1",
                       "--no-sync"}));
  std::ofstream(data / "postgresql.conf", std::ios::app) << kConfig;
  std::ofstream(data / "pg_hba.conf") << AccessRules("host");
  FIRN_TRY(RunAlone(folder, "postgres", kSetUp));
  FIRN_TRY(RunAlone(folder, SqlServer::kDatabase, kSetUpIds));
  return data;
}

// Creating them takes seconds, so it is done once per program.
const Result<fs::path>& FreshFiles() {
  static const TempDir folder;
  static const Result<fs::path> files = InstallFiles(folder);
  return files;
}

// A connection as the owner through the socket, for one statement.
class Owner {
 public:
  Owner(const fs::path& folder, int port) {
    const std::string number = std::to_string(port);
    const char* const keys[] = {"host", "port", "user", "dbname", "options", "connect_timeout",
                                nullptr};
    const char* const values[] = {folder.c_str(),
                                  number.c_str(),
                                  "postgres",
                                  SqlServer::kDatabase,
                                  "-c statement_timeout=20s",
                                  "20",
                                  nullptr};
    client_ = PQconnectdbParams(keys, values, 0);
    PQsetNoticeProcessor(
        client_, [](void*, const char*) {}, nullptr);
  }
  ~Owner() { PQfinish(client_); }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;

  Result<std::vector<SqlServer::Row>> Query(const std::string& sql) {
    PGresult* const result = PQexec(client_, sql.c_str());
    const ExecStatusType status = PQresultStatus(result);
    std::vector<SqlServer::Row> rows;
    for (int i = 0; i < PQntuples(result); ++i) {
      SqlServer::Row& row = rows.emplace_back();
      for (int k = 0; k < PQnfields(result); ++k) {
        row.emplace_back(PQgetisnull(result, i, k) != 0 ? "NULL" : PQgetvalue(result, i, k));
      }
    }
    PQclear(result);
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) return rows;
    return Unavailable(PQerrorMessage(client_));
  }

 private:
  PGconn* client_;
};

}  // namespace

template <typename Fill>
Result<std::unique_ptr<Postgres>> Postgres::StartOn(Fill fill) {
  constexpr int kTriesMax = 3;  // another program may take a free port first
  for (int i = 0; i < kTriesMax; ++i) {
    std::unique_ptr<Postgres> server(new Postgres());
    FIRN_TRY(GiveToOwner(server->folder()));
    FIRN_TRY(server->WriteCredentials());
    FIRN_TRY(fill(server->folder_ / "data"));
    server->Launch();
    const bool ready = Eventually(
        kPatience, [&] { return !server->process_->Running() || server->Query("SELECT 1").ok(); });
    if (ready && server->process_->Running()) return server;
    if (i + 1 == kTriesMax) server->KeepFiles();
  }
  return Unavailable("PostgreSQL does not serve");
}

Result<std::unique_ptr<Postgres>> Postgres::Start() {
  FIRN_ASSIGN(const fs::path fresh, FreshFiles());
  return StartOn([&](const std::string& data) {
    return RunAsOwner({"cp", "-a", fresh.string(), data});
  });
}

// If killed without notice, its helper processes would write into the folder for a moment.
Postgres::~Postgres() {
  if (!process_) return;
  process_->Signal(SIGQUIT);
  process_->Wait(kPatience);
}

void Postgres::Launch() {
  process_ = Process(AsOwner({Program("postgres"), "-D", folder_ / "data", "-p",
                              std::to_string(port_), "-k", folder().string()}),
                     {.output_file = folder_ / "output.log"});
}

// A killed server leaves helper processes behind; a new server must wait until they have ended.
Status Postgres::Restart() {
  process_.reset();
  const bool ready = Eventually(kPatience, [this] {
    if (!process_ || !process_->Running()) Launch();
    return Query("SELECT 1").ok();
  });
  return ready ? Status() : Unavailable("not serving, see " + folder().string());
}

Result<std::vector<SqlServer::Row>> Postgres::Query(const std::string& sql) {
  return Owner(folder(), port_).Query(sql);
}

// The server reads no key that others can read, so it gets a copy. A new name shows when the new
// files are in use.
Status Postgres::RequireTls(const std::string& cert, const std::string& key,
                            const std::string& client_ca) {
  const std::string data = folder_ / "data", name = "tls" + std::to_string(++tls_changes_);
  const auto copy = [&](const std::string& from, const std::string& kind) {
    const std::string to = data + "/" + name + kind;
    std::error_code error;
    fs::copy_file(from, to, error);
    fs::permissions(to, fs::perms::owner_read, error);
    FIRN_TRY(GiveToOwner(to));
    return Run("ALTER SYSTEM SET ssl_" + kind + "_file = '" + name + kind + "'");
  };
  FIRN_TRY(copy(cert, "cert"));
  FIRN_TRY(copy(key, "key"));
  if (!client_ca.empty()) FIRN_TRY(copy(client_ca, "ca"));
  FIRN_TRY(Run("ALTER SYSTEM SET ssl = on"));
  std::ofstream(data + "/pg_hba.conf")
      << AccessRules("hostssl", client_ca.empty() ? "" : " clientcert=verify-ca");
  FIRN_TRY(Run("SELECT pg_reload_conf()"));
  const bool serves = Eventually(kPatience, [&] {
    return First(Query("SELECT current_setting('ssl') || current_setting('ssl_cert_file')")) ==
           "on" + name + "cert";
  });
  return serves ? Status() : Unavailable("the server does not load the certificate");
}

// --- replication --------------------------------------------------------------------------------

Result<std::unique_ptr<SqlServer>> Postgres::StartReplica() {
  FIRN_ASSIGN(std::unique_ptr<SqlServer> replica, StartOn([this](const std::string& data) {
                return RunAsOwner({Program("pg_basebackup"), "--pgdata=" + data, "--host=127.0.0.1",
                                   "--port=" + std::to_string(port_), "--username=copier",
                                   "--write-recovery-conf", "--checkpoint=fast", "--no-sync"});
              }));
  return replica;
}

Status Postgres::AwaitCaughtUp(SqlServer& primary) {
  FIRN_ASSIGN(const auto at, primary.Query("SELECT pg_current_wal_lsn()"));
  const std::string there = "SELECT pg_last_wal_replay_lsn() >= '" + at.at(0).at(0) + "'";
  const bool caught_up = Eventually(kPatience, [&] {
    const auto rows = Query(there);
    return rows.ok() && rows->at(0).at(0) == "t";
  });
  return caught_up ? Status() : Unavailable("the replica does not catch up");
}

Status Postgres::StopFollowing() {
  FIRN_TRY(Run("ALTER SYSTEM SET primary_conninfo = ''"));
  FIRN_TRY(Run("SELECT pg_reload_conf()"));
  const bool stopped = Eventually(kPatience, [this] {
    const auto rows = Query("SELECT pid FROM pg_stat_wal_receiver");
    return rows.ok() && rows->empty();
  });
  return stopped ? Status() : Unavailable("the replica does not stop");
}

Status Postgres::Promote() { return Run("SELECT pg_promote(true, 60)"); }

}  // namespace firn
