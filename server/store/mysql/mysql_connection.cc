#include "server/store/mysql/mysql_connection.h"

#include <algorithm>
#include <array>
#include <deque>
#include <mutex>
#include <utility>

#include <mariadb/errmsg.h>
#include <mariadb/mysql.h>
#include <mariadb/mysqld_error.h>

#include "common/base/cat.h"
#include "common/base/secret_file.h"
#include "server/store/mysql/mysql_tls.h"

#ifndef ER_SECURE_TRANSPORT_REQUIRED  // only MySQL reports it, not MariaDB 10
#define ER_SECURE_TRANSPORT_REQUIRED 3159
#endif

namespace firn {
namespace {

// The library's own initialization is not thread-safe.
void InitializeLibrary() {
  static std::once_flag once;
  std::call_once(once, [] { mysql_library_init(0, nullptr, nullptr); });
}

unsigned int Seconds(Milliseconds time) {
  return static_cast<unsigned int>(std::max<int64_t>(1, (time.count() + 999) / 1000));
}

// Returns the SQL for the settings of a new connection, so that they do not depend on the server's
// defaults. Without strict mode, a number too large for its column is truncated without an error.
// The default lock timeout is 50 s, even if the client has disconnected. MariaDB has a time limit
// for all statements, MySQL only for reads. The executable comments make each server skip the
// setting of the other.
std::string SessionSql(Milliseconds limit) {
  const unsigned int lock_seconds = std::max(1U, Seconds(limit) / 2);
  return Cat("SET SESSION autocommit = 1, sql_mode = 'STRICT_ALL_TABLES', lock_wait_timeout = ",
             lock_seconds, ", innodb_lock_wait_timeout = ", lock_seconds,
             " /*M!100101 , max_statement_time = ", Seconds(limit),
             " */ /*!50708 , max_execution_time = ", Seconds(limit) * 1000, " */");
}

Code CodeOf(unsigned int number) {
  switch (number) {
    case ER_ACCESS_DENIED_ERROR:
    case ER_DBACCESS_DENIED_ERROR:
    case ER_TABLEACCESS_DENIED_ERROR:
    case ER_COLUMNACCESS_DENIED_ERROR:
    case ER_SECURE_TRANSPORT_REQUIRED:
      return Code::kDenied;
    case ER_BAD_DB_ERROR:
    case ER_NO_SUCH_TABLE:
      return Code::kNotFound;
    case ER_BAD_FIELD_ERROR:
    case ER_PARSE_ERROR:
      return Code::kInvalid;
    case ER_WARN_DATA_OUT_OF_RANGE:
    case ER_DATA_OUT_OF_RANGE:
      return Code::kExhausted;
    // The server was shut down during the statement.
    case ER_SERVER_SHUTDOWN:
    case ER_QUERY_INTERRUPTED:
    case ER_CONNECTION_KILLED:
    case ER_ERROR_DURING_COMMIT:
      return Code::kUnknown;
    default:
      return Code::kUnavailable;
  }
}

// Returns whether the server has only rolled back the statement and accepts another one.
bool EndsOneStatement(unsigned int number) {
  switch (number) {
    case ER_LOCK_WAIT_TIMEOUT:
    case ER_LOCK_DEADLOCK:
    case ER_STATEMENT_TIMEOUT:
      return true;
    default:
      return CodeOf(number) == Code::kExhausted;
  }
}

bool IsReadOnly(unsigned int number) {
  return number == ER_OPTION_PREVENTS_STATEMENT || number == ER_READ_ONLY_MODE ||
         number == ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION;
}

bool IsOfTheClient(unsigned int number) {
  return (number >= CR_MIN_ERROR && number <= CR_MAX_ERROR) || number >= 5000;
}

// Returns whether the server is unreachable, did not answer, or is shutting down.
bool IsAway(unsigned int number) {
  switch (number) {
    case CR_CONNECTION_ERROR:
    case CR_CONN_HOST_ERROR:
    case CR_IPSOCK_ERROR:
    case CR_UNKNOWN_HOST:
    case CR_SERVER_GONE_ERROR:
    case CR_SERVER_HANDSHAKE_ERR:
    case CR_SERVER_LOST:
    case CR_SERVER_LOST_EXTENDED:
    case ER_SERVER_SHUTDOWN:
      return true;
    default:
      return false;
  }
}

}  // namespace

struct MysqlConnection::Client {
  Client() { mysql_init(&handle); }
  ~Client() { mysql_close(&handle); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  MYSQL handle{};
};

struct MysqlConnection::Statement {
  explicit Statement(MYSQL& client) : handle(mysql_stmt_init(&client)) {}
  ~Statement() {
    if (handle != nullptr) mysql_stmt_close(handle);
  }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Status Bind(const std::vector<Parameter>& parameters, std::vector<MYSQL_BIND>& binds);
  // Returns false if the library reports a failure.
  bool FetchRows(std::vector<Row>& rows);
  unsigned int error() const { return mysql_stmt_errno(handle); }

  MYSQL_STMT* const handle;
};

Status MysqlConnection::Statement::Bind(const std::vector<Parameter>& parameters,
                                        std::vector<MYSQL_BIND>& binds) {
  if (mysql_stmt_param_count(handle) != parameters.size()) {
    return Internal("a statement with the wrong number of parameters");
  }
  for (const Parameter& parameter : parameters) {
    MYSQL_BIND& bind = binds.emplace_back();
    bind = {};
    // The library requires mutable pointers, although it only reads the values.
    if (const auto* number = std::get_if<int64_t>(&parameter)) {
      bind.buffer_type = MYSQL_TYPE_LONGLONG;
      bind.buffer = const_cast<int64_t*>(number);
    } else {
      const std::string& text = std::get<std::string>(parameter);
      bind.buffer_type = MYSQL_TYPE_STRING;
      bind.buffer = const_cast<char*>(text.data());
      bind.buffer_length = text.size();
    }
  }
  return mysql_stmt_bind_param(handle, binds.data()) == 0 ? Status()
                                                          : Internal(mysql_stmt_error(handle));
}

bool MysqlConnection::Statement::FetchRows(std::vector<Row>& rows) {
  struct Field {
    std::array<char, kFieldBytesMax> text;
    unsigned long size = 0;
    my_bool is_null = 0;
  };
  std::deque<Field> fields(mysql_stmt_field_count(handle));
  std::vector<MYSQL_BIND> binds;
  for (Field& field : fields) {
    MYSQL_BIND& bind = binds.emplace_back();
    bind = {};
    bind.buffer_type = MYSQL_TYPE_STRING;
    bind.buffer = field.text.data();
    bind.buffer_length = field.text.size();
    bind.length = &field.size;
    bind.is_null = &field.is_null;
  }
  if (mysql_stmt_bind_result(handle, binds.data()) != 0) return false;
  while (rows.size() < kRowsMax) {
    const int fetched = mysql_stmt_fetch(handle);
    if (fetched == MYSQL_NO_DATA) return true;
    if (fetched != 0) return false;
    Row& row = rows.emplace_back();
    for (const Field& field : fields) {
      row.emplace_back(field.text.data(), field.is_null ? 0 : field.size);
    }
  }
  return false;
}

MysqlConnection::MysqlConnection(DatabasePlace place) : place_(std::move(place)) {}

MysqlConnection::~MysqlConnection() { Close(); }

void MysqlConnection::Close() {
  statements_.clear();
  client_.reset();
}

Status MysqlConnection::Open() {
  Close();
  away_ = false;
  FIRN_ASSIGN(const Credentials credentials, ReadCredentials(place_.credentials_file));
  FIRN_TRY(place_.tls.CheckFiles());
  InitializeLibrary();
  client_ = std::make_unique<Client>();
  MYSQL* const client = &client_->handle;
  const unsigned int seconds = Seconds(place_.time_limit);
  const unsigned int patience = Seconds(place_.time_limit + DatabasePlace::kGrace);
  const std::string session = SessionSql(place_.time_limit);
  const my_bool off = 0;
  const unsigned int tcp = MYSQL_PROTOCOL_TCP;  // otherwise `localhost` means a UNIX socket
  mysql_options(client, MYSQL_OPT_PROTOCOL, &tcp);
  mysql_options(client, MYSQL_OPT_CONNECT_TIMEOUT, &seconds);
  mysql_options(client, MYSQL_OPT_READ_TIMEOUT, &patience);
  mysql_options(client, MYSQL_OPT_WRITE_TIMEOUT, &patience);
  mysql_options(client, MYSQL_OPT_RECONNECT, &off);
  mysql_options(client, MYSQL_OPT_LOCAL_INFILE, &off);
  mysql_options(client, MYSQL_SET_CHARSET_NAME, "utf8mb4");
  mysql_options(client, MYSQL_INIT_COMMAND, session.c_str());
  SetTls(*client, place_.tls);
  Status status;
  if (mysql_real_connect(client, place_.address.host.c_str(), credentials.user.c_str(),
                         credentials.password.c_str(), place_.database.c_str(), place_.address.port,
                         nullptr, 0) == nullptr) {
    status = FailedToConnect(mysql_errno(client), mysql_error(client));
  } else if (place_.tls.mode >= TlsMode::kRequire && mysql_get_ssl_cipher(client) == nullptr) {
    status = place_.tls.Failed(place_.address.ToString(), "the server does not offer TLS");
  } else {
    status = RefuseAReplica();
  }
  if (!status.ok()) Close();
  return status.code() == Code::kUnknown ? Unavailable(status.message()) : status;
}

// This check is necessary because an account with many privileges can write to a replica.
Status MysqlConnection::RefuseAReplica() {
  FIRN_ASSIGN(const Answer answer, Execute("SELECT @@global.read_only", {}));
  const bool writes = answer.rows.size() == 1 && answer.rows.front().size() == 1 &&
                      (answer.rows[0][0] == "0" || answer.rows[0][0] == "OFF");
  return writes ? Status() : TakesNoWrites(place_, "read_only is on");
}

Status MysqlConnection::FailedToConnect(unsigned int number, const std::string& text) {
  away_ = IsAway(number);
  const std::string address = place_.address.ToString();
  if (number == CR_SSL_CONNECTION_ERROR) return place_.tls.Failed(address, text);
  std::string remedy;
  // The only error that MariaDB 10 reports if it requires TLS, and that MariaDB reports if it
  // requires a client certificate.
  const bool denied = number == ER_ACCESS_DENIED_ERROR;
  if (number == ER_SECURE_TRANSPORT_REQUIRED || (denied && place_.tls.mode == TlsMode::kOff)) {
    remedy = "; if the server requires TLS, set tls in the store's section";
  } else if (denied && place_.tls.cert_file.empty()) {
    remedy = "; correct " + place_.credentials_file +
             ", or, if the account requires a client certificate, set tls_cert and tls_key";
  }
  const Code code = CodeOf(number);
  return {code == Code::kUnknown ? Code::kUnavailable : code, Cat(address, ": ", text, remedy)};
}

Status MysqlConnection::Fail(unsigned int number, const std::string& text) {
  away_ = IsAway(number);
  const Code code = IsOfTheClient(number) ? Code::kUnknown : CodeOf(number);
  Status failure = IsReadOnly(number) ? TakesNoWrites(place_, text) : Status(code, text);
  if (EndsOneStatement(number)) return failure;
  Close();  // its state is uncertain; a new connection's is not
  return failure;
}

Result<MysqlConnection::Statement*> MysqlConnection::Prepare(const std::string& sql) {
  std::unique_ptr<Statement>& known = statements_[sql];
  if (known != nullptr) return known.get();
  auto made = std::make_unique<Statement>(client_->handle);
  if (made->handle == nullptr) return Internal("out of memory");
  if (mysql_stmt_prepare(made->handle, sql.data(), sql.size()) != 0) {
    const unsigned int number = made->error();
    const std::string text = mysql_stmt_error(made->handle);
    made.reset();
    return Fail(number, text);
  }
  known = std::move(made);
  return known.get();
}

Result<MysqlConnection::Answer> MysqlConnection::Execute(const std::string& sql,
                                                         const std::vector<Parameter>& parameters) {
  if (!is_open()) return Unavailable("not connected");
  FIRN_ASSIGN(Statement* const statement, Prepare(sql));
  std::vector<MYSQL_BIND> binds;
  FIRN_TRY(statement->Bind(parameters, binds));
  Answer answer;
  MYSQL_STMT* const handle = statement->handle;
  bool done = mysql_stmt_execute(handle) == 0;
  if (done && mysql_stmt_field_count(handle) != 0) {
    done = statement->FetchRows(answer.rows);
  } else if (done) {
    answer.affected = mysql_stmt_affected_rows(handle);
    answer.insert_id = mysql_stmt_insert_id(handle);
  }
  const unsigned int number = statement->error();
  if (!done)
    return Fail(number,
                number != 0 ? mysql_stmt_error(handle) : "the answer is larger than expected");
  mysql_stmt_free_result(handle);
  return answer;
}

}  // namespace firn
