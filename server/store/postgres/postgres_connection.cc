#include "server/store/postgres/postgres_connection.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <poll.h>
#include <postgresql/libpq-fe.h>

#include "common/base/cat.h"
#include "common/base/parse.h"

namespace firn {
namespace {

constexpr Oid kInt8 = 20;  // fixed in all versions of PostgreSQL
constexpr Oid kText = 25;

constexpr std::string_view kReadOnly = "25006";

// Returns whether the server has only rolled back the transaction and accepts another statement: a
// lock or a statement timed out, a concurrent transaction conflicted, or a value does not fit
// (class 22).
bool EndsOneStatement(std::string_view state) {
  constexpr std::array<std::string_view, 4> kStates{"55P03", "57014", "40001", "40P01"};
  return state.starts_with("22") ||
         std::find(kStates.begin(), kStates.end(), state) != kStates.end();
}

// Maps an SQLSTATE, whose first two characters are its class.
Code CodeOf(std::string_view state) {
  const std::string_view kind = state.substr(0, 2);
  if (kind == "28" || state == "42501") return Code::kDenied;
  if (state == "3D000" || state == "3F000" || state == "42P01") return Code::kNotFound;
  if (state == "22003") return Code::kExhausted;
  if (kind == "42" || kind == "22") return Code::kInvalid;
  // The server ended the session during the statement.
  const bool in_the_midst =
      kind == "08" || state == "40003" || state == "57P01" || state == "57P02" || state == "57P05";
  return in_the_midst || state.empty() ? Code::kUnknown : Code::kUnavailable;
}

// Returns whether the server is unreachable, did not answer, is shutting down or starting.
bool IsAway(std::string_view state) {
  constexpr std::array<std::string_view, 3> kStates{"57P01", "57P02", "57P03"};
  return state.empty() || std::find(kStates.begin(), kStates.end(), state) != kStates.end();
}

// Returns whether a failure to connect, which has no SQLSTATE, is about TLS and not about the
// network.
bool IsAboutTls(std::string_view text) {
  const auto says = [&](std::string_view word) { return text.find(word) != text.npos; };
  return !says("SSL SYSCALL") && (says("SSL") || says("certificate"));
}

// Returns whether the server refuses connections without TLS.
bool RefusesPlainText(std::string_view text) {
  return text.find("no encryption") != text.npos || text.find("SSL off") != text.npos;
}

// A failure to connect, parsed from the library's text:
//
//     connection to server at "::1", port 5432 failed: FATAL:  28P01: password authentication ...
//
// `text` is the part without the state and the server; Firn's error names the server in its own
// way.
struct Complaint {
  std::string state{};
  std::string text;
};
Complaint ReadComplaint(std::string text) {
  constexpr std::string_view kServer = " failed: ", kBefore = ":  ", kAfter = ": ";
  if (const size_t server = text.find(kServer); server != text.npos) {
    text.erase(0, server + kServer.size());
  }
  constexpr size_t kStateSize = 5;
  const size_t at = text.find(kBefore);
  const size_t begin = at + kBefore.size(), end = begin + kStateSize;
  std::string state;
  if (at != text.npos && text.compare(end, kAfter.size(), kAfter) == 0) {
    state = text.substr(begin, kStateSize);
    text.erase(begin - 1, kStateSize + kAfter.size());
  }
  return {state, text.substr(0, text.find('\n'))};
}

}  // namespace

struct PostgresConnection::Client {
  explicit Client(PGconn* connection) : handle(connection) {}
  ~Client() { PQfinish(handle); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  PGconn* const handle;
};

struct PostgresConnection::Reply {
  struct Clear {
    void operator()(PGresult* result) const { PQclear(result); }
  };

  explicit Reply(PGresult* result) : handle(result) {}

  bool ok() const {
    const ExecStatusType status = PQresultStatus(handle.get());
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
  }
  std::string Field(int field) const {
    const char* const text = PQresultErrorField(handle.get(), field);
    return text != nullptr ? text : "";
  }
  Answer ToAnswer() const {
    Answer answer{.affected = ParseNumber<uint64_t>(PQcmdTuples(handle.get())).value_or(0)};
    for (int i = 0; i < PQntuples(handle.get()); ++i) {
      Row& row = answer.rows.emplace_back();
      for (int k = 0; k < PQnfields(handle.get()); ++k) {
        row.emplace_back(PQgetvalue(handle.get(), i, k));
      }
    }
    return answer;
  }

  std::unique_ptr<PGresult, Clear> handle;
};

PostgresConnection::PostgresConnection(DatabasePlace place, const Clock& clock)
    : place_(std::move(place)), clock_(clock) {}

PostgresConnection::~PostgresConnection() { Close(); }

void PostgresConnection::Close() { client_.reset(); }

// --- connecting ---------------------------------------------------------------------------------

Status PostgresConnection::Open() {
  Close();
  away_ = false;
  FIRN_ASSIGN(const Credentials credentials, ReadCredentials(place_.credentials_file));
  FIRN_TRY(place_.tls.CheckFiles());
  Status status = Greet(credentials);
  if (status.ok()) status = SetUpSession();
  if (!status.ok()) Close();
  return status.code() == Code::kUnknown ? Unavailable(status.message()) : status;
}

Status PostgresConnection::Greet(const Credentials& credentials) {
  const std::string port = std::to_string(place_.address.port);
  const std::string mode(TlsModeWord(place_.tls.mode) == "off" ? "disable"
                                                               : TlsModeWord(place_.tls.mode));
  std::vector<const char*> keys, values;
  const auto set = [&](const char* key, const char* value) {
    keys.push_back(key);
    values.push_back(value);
  };
  set("host", place_.address.host.c_str());
  set("port", port.c_str());
  set("dbname", place_.database.c_str());
  set("user", credentials.user.c_str());
  set("password", credentials.password.c_str());
  set("gssencmode", "disable");
  set("application_name", "firn");
  set("client_encoding", "UTF8");
  set("sslmode", mode.c_str());
  set("sslrootcert", place_.tls.ca_file.c_str());  // an empty value counts as not set
  set("sslcert", place_.tls.cert_file.c_str());
  set("sslkey", place_.tls.key_file.c_str());
  set(nullptr, nullptr);
  client_ = std::make_unique<Client>(PQconnectStartParams(keys.data(), values.data(), 0));
  PGconn* const client = client_->handle;
  if (client == nullptr) return Internal("out of memory");
  PQsetErrorVerbosity(client, PQERRORS_VERBOSE);
  PQsetNoticeProcessor(
      client, [](void*, const char*) {}, nullptr);

  const BootMs until = clock_.Boot() + place_.time_limit;
  PostgresPollingStatusType next =
      PQstatus(client) == CONNECTION_BAD ? PGRES_POLLING_FAILED : PGRES_POLLING_WRITING;
  while (next == PGRES_POLLING_READING || next == PGRES_POLLING_WRITING) {
    if (!Await(next == PGRES_POLLING_READING ? POLLIN : POLLOUT, until)) {
      away_ = true;
      return Unavailable(place_.address.ToString() + " does not answer");
    }
    next = PQconnectPoll(client);
  }
  if (next == PGRES_POLLING_OK) {
    return PQsetnonblocking(client, 1) == 0 ? Status() : Internal(PQerrorMessage(client));
  }
  return FailedToConnect(PQerrorMessage(client));
}

Status PostgresConnection::FailedToConnect(const std::string& why) {
  const Complaint complaint = ReadComplaint(why);
  const std::string address = place_.address.ToString();
  if (complaint.state.empty() && IsAboutTls(complaint.text)) {
    return place_.tls.Failed(address, complaint.text);
  }
  away_ = IsAway(complaint.state);
  if (place_.tls.mode == TlsMode::kOff && RefusesPlainText(complaint.text)) {
    return Denied(Cat(address, ": ", complaint.text, "; set tls in the store's section"));
  }
  if (complaint.text.find("client certificate") != complaint.text.npos) {
    return Denied(Cat(address, ": ", complaint.text, StoreTls::kSetCertificate));
  }
  return {CodeOf(complaint.state), Cat(address, ": ", complaint.text)};
}

Status PostgresConnection::SetUpSession() {
  // A separate first statement: if transactions are serializable by default, a replica would refuse
  // the query below.
  FIRN_TRY(Execute("SET default_transaction_isolation = 'read committed'", {}).status());
  constexpr const char* kSql =
      "SELECT pg_is_in_recovery(), set_config('statement_timeout', $1, false),"
      " set_config('lock_timeout', $2, false),"
      " set_config('synchronous_commit', CASE current_setting('synchronous_commit')"
      " WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, false)";
  const int64_t limit_ms = place_.time_limit.count();
  FIRN_ASSIGN(const Answer answer,
              Execute(kSql, {std::to_string(limit_ms), std::to_string(limit_ms / 2)}));
  if (answer.rows.size() != 1 || answer.rows[0][0] != "f") {
    return TakesNoWrites(place_, "it is a replica");
  }
  return {};
}

// --- statements ---------------------------------------------------------------------------------

Result<SqlConnection::Answer> PostgresConnection::Execute(
    const std::string& sql, const std::vector<Parameter>& parameters) {
  if (!is_open()) return Unavailable("not connected");
  const BootMs until = clock_.Boot() + place_.time_limit + DatabasePlace::kGrace;
  FIRN_TRY(Send(sql, parameters, until));
  FIRN_ASSIGN(const std::vector<Reply> replies, Receive(until));
  for (const Reply& reply : replies) {
    if (!reply.ok()) return Fail(reply);
  }
  if (replies.size() != 1) return FailUnknown("the server sent more than one result");
  return replies.front().ToAnswer();
}

Status PostgresConnection::Send(const std::string& sql, const std::vector<Parameter>& parameters,
                                BootMs until) {
  std::vector<std::string> texts;
  std::vector<Oid> types;
  for (const Parameter& parameter : parameters) {
    const auto* const number = std::get_if<int64_t>(&parameter);
    texts.push_back(number != nullptr ? std::to_string(*number) : std::get<std::string>(parameter));
    types.push_back(number != nullptr ? kInt8 : kText);
  }
  std::vector<const char*> values;
  for (const std::string& text : texts) values.push_back(text.c_str());
  PGconn* const client = client_->handle;
  if (PQsendQueryParams(client, sql.c_str(), static_cast<int>(values.size()), types.data(),
                        values.data(), nullptr, nullptr, 0) == 0) {
    return FailUnknown(PQerrorMessage(client));
  }
  for (int left = PQflush(client); left != 0; left = PQflush(client)) {
    if (left < 0) return FailUnknown(PQerrorMessage(client));
    if (!Await(POLLIN | POLLOUT, until)) return FailUnknown("the statement could not be sent");
    if (PQconsumeInput(client) == 0) return FailUnknown(PQerrorMessage(client));
  }
  return {};
}

Result<std::vector<PostgresConnection::Reply>> PostgresConnection::Receive(BootMs until) {
  std::vector<Reply> replies;
  for (;;) {
    FIRN_TRY(AwaitReply(until));
    Reply reply(PQgetResult(client_->handle));
    if (reply.handle == nullptr) return replies;
    if (replies.size() == kRowsMax) return FailUnknown("the server sent too many results");
    replies.push_back(std::move(reply));
  }
}

Status PostgresConnection::AwaitReply(BootMs until) {
  PGconn* const client = client_->handle;
  while (PQisBusy(client) != 0) {
    if (!Await(POLLIN, until)) return FailUnknown("no answer came");
    if (PQconsumeInput(client) == 0) return FailUnknown(PQerrorMessage(client));
  }
  return {};
}

bool PostgresConnection::Await(short events, BootMs until) const {
  for (;;) {
    const int64_t left = std::max<int64_t>(0, (until - clock_.Boot()).count());
    pollfd wait{.fd = PQsocket(client_->handle), .events = events, .revents = 0};
    const int ready = poll(&wait, 1, static_cast<int>(left));
    if (ready > 0) return true;
    if (left == 0) return false;
  }
}

// --- failures -----------------------------------------------------------------------------------

Status PostgresConnection::FailUnknown(const std::string& why) {
  away_ = true;
  Status failure = Unknown(why.substr(0, why.find('\n')));
  Close();
  return failure;
}

Status PostgresConnection::Fail(const Reply& reply) {
  const std::string state = reply.Field(PG_DIAG_SQLSTATE);
  if (state.empty()) return FailUnknown(PQresultErrorMessage(reply.handle.get()));
  const std::string text = reply.Field(PG_DIAG_MESSAGE_PRIMARY);
  away_ = IsAway(state);
  if (!EndsOneStatement(state)) Close();  // its state is uncertain; a new connection's is not
  return state == kReadOnly ? TakesNoWrites(place_, text) : Status(CodeOf(state), text);
}

}  // namespace firn
