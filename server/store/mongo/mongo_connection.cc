#include "server/store/mongo/mongo_connection.h"

#include <string_view>
#include <utility>
#include <vector>

#include "common/base/cat.h"
#include "common/base/secret_file.h"
#include "server/store/mongo/mongo_library.h"

namespace firn {
namespace {

// MongoDB's error codes.
constexpr uint32_t kUserNotFound = 11, kUnauthorized = 13, kAuthenticationFailed = 18;
constexpr uint32_t kMaxTimeMsExpired = 50, kWriteConflict = 112, kDuplicateKey = 11000;
constexpr uint32_t kNotWritablePrimary = 10107, kNotPrimaryNoSecondaryOk = 13435;

int32_t Count(Milliseconds time) { return static_cast<int32_t>(time.count()); }

// Returns the first line of the library's text.
std::string Line(const char* text) {
  const std::string_view all(text);
  return std::string(all.substr(0, all.find('\n')));
}

// Extracts the cause from libmongoc's sentence about a failed handshake, without the surrounding
// commands and options.
std::string HandshakeFault(std::string_view message) {
  constexpr std::string_view kEnd = " calling hello on ";
  for (const std::string_view begin :
       {"TLS handshake failed: ", "certificate verify failed (20): "}) {
    if (const size_t at = message.find(begin); at != message.npos) {
      message.remove_prefix(at + begin.size());
    }
  }
  return std::string(message.substr(0, message.find(kEnd)));
}

// Returns the code for an error that means that the server did not execute the command; nullopt for
// other errors.
std::optional<Code> RefusalOf(uint32_t number) {
  if (number == kUserNotFound || number == kUnauthorized || number == kAuthenticationFailed) {
    return Code::kDenied;
  }
  const bool undone = number == kMaxTimeMsExpired || number == kWriteConflict ||
                      number == kDuplicateKey || number == kNotWritablePrimary ||
                      number == kNotPrimaryNoSecondaryOk;
  return undone ? std::optional(Code::kUnavailable) : std::nullopt;
}

}  // namespace

struct MongoError {
  bson_error_t what{};
};

// A BSON document, for writing or reading.
struct MongoConnection::Document {
  Document() { bson_init(&handle); }
  ~Document() { bson_destroy(&handle); }
  Document(Document&& other) noexcept {
    bson_steal(&handle, &other.handle);
    bson_init(&other.handle);
  }
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;

  // The next functions add a field.
  Document&& Text(const char* key, std::string_view text) && {
    bson_append_utf8(&handle, key, -1, text.data(), static_cast<int>(text.size()));
    return std::move(*this);
  }
  Document&& Number(const char* key, int64_t number) && {
    bson_append_int64(&handle, key, -1, number);
    return std::move(*this);
  }
  Document&& Flag(const char* key, bool flag) && {
    bson_append_bool(&handle, key, -1, flag);
    return std::move(*this);
  }
  Document&& In(const char* key, const Document& inner) && {
    bson_append_document(&handle, key, -1, &inner.handle);
    return std::move(*this);
  }
  Document&& List(const char* key, const Document& only) && {
    Document list;
    bson_append_document(&list.handle, "0", -1, &only.handle);
    bson_append_array(&handle, key, -1, &list.handle);
    return std::move(*this);
  }
  // Adds a list of null, which matches a missing field, and these texts.
  Document&& NullOr(const char* key, const std::vector<std::string>& texts) && {
    Document list;
    bson_append_null(&list.handle, "0", -1);
    for (size_t i = 0; i < texts.size(); ++i) {
      bson_append_utf8(&list.handle, std::to_string(i + 1).c_str(), -1, texts[i].data(),
                       static_cast<int>(texts[i].size()));
    }
    bson_append_array(&handle, key, -1, &list.handle);
    return std::move(*this);
  }

  // Finds the field at a path such as "cursor.firstBatch.0".
  std::optional<bson_iter_t> At(const char* path) const {
    bson_iter_t from, found;
    const bool is_there =
        bson_iter_init(&from, &handle) && bson_iter_find_descendant(&from, path, &found);
    return is_there ? std::optional(found) : std::nullopt;
  }
  std::string TextAt(const char* path) const {
    const auto at = At(path);
    return at && BSON_ITER_HOLDS_UTF8(&*at) ? bson_iter_utf8(&*at, nullptr) : "";
  }
  // A double is corrupt, because doubles skip numbers above 2^53.
  Result<int64_t> NumberAt(const std::string& path, std::string_view name) const {
    const auto at = At(path.c_str());
    if (!at) return Corrupt(Cat("its document has no field ", name));
    if (BSON_ITER_HOLDS_INT32(&*at) || BSON_ITER_HOLDS_INT64(&*at)) return bson_iter_as_int64(&*at);
    return Corrupt(
        Cat("the field ", name, " of its document is not a whole number; store a ", "NumberLong"));
  }
  Result<Counter> CounterAt(const std::string& path) const {
    FIRN_ASSIGN(const int64_t max, NumberAt(path + ".max", "max"));
    FIRN_ASSIGN(const int64_t step, NumberAt(path + ".step", "step"));
    return Counter{.max = max, .step = step, .cluster = TextAt((path + ".cluster").c_str())};
  }

  bson_t handle;
};

struct MongoConnection::Client {
  Client(const MongoLibrary& loaded, mongoc_client_t* client) : library(loaded), handle(client) {}
  ~Client() {
    if (handle != nullptr) library.client_destroy(handle);
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  const MongoLibrary& library;
  mongoc_client_t* const handle;
};

// --- connecting ---------------------------------------------------------------------------------

namespace {

using Uri = std::unique_ptr<mongoc_uri_t, decltype(&mongoc_uri_destroy)>;

Uri UriOf(const MongoPlace& place, const MongoLibrary& library) {
  Uri uri(library.uri_new(Cat("mongodb://", place.ToString(), "/").c_str()), library.uri_destroy);
  if (uri == nullptr) return uri;
  const auto number = [&](const char* key, Milliseconds value) {
    library.uri_set_option_as_int32(uri.get(), key, Count(value));
  };
  number(MONGOC_URI_CONNECTTIMEOUTMS, place.time_limit);
  number(MONGOC_URI_SERVERSELECTIONTIMEOUTMS, place.time_limit);
  number(MONGOC_URI_SOCKETTIMEOUTMS, place.time_limit + MongoConnection::kGrace);
  library.uri_set_option_as_bool(uri.get(), MONGOC_URI_RETRYWRITES, false);
  library.uri_set_option_as_bool(uri.get(), MONGOC_URI_RETRYREADS, false);
  library.uri_set_option_as_utf8(uri.get(), MONGOC_URI_APPNAME, "firn");
  if (!place.replica_set.empty()) {
    library.uri_set_option_as_utf8(uri.get(), MONGOC_URI_REPLICASET, place.replica_set.c_str());
  }
  if (place.tls.mode != TlsMode::kOff) {
    library.uri_set_option_as_bool(uri.get(), MONGOC_URI_TLS, true);
  }
  return uri;
}

// Reads the credentials file and sets user and password.
Status SetCredentials(const MongoPlace& place, const MongoLibrary& library, mongoc_uri_t& uri) {
  if (place.credentials_file.empty()) return {};
  FIRN_ASSIGN(const Credentials credentials, ReadCredentials(place.credentials_file));
  library.uri_set_username(&uri, credentials.user.c_str());
  library.uri_set_password(&uri, credentials.password.c_str());
  library.uri_set_auth_source(&uri, place.auth_database.c_str());
  return {};
}

void SetTls(const StoreTls& tls, const MongoLibrary& library, mongoc_client_t& client) {
  if (tls.mode == TlsMode::kOff) return;
  mongoc_ssl_opt_t options = *library.ssl_opt_get_default();
  options.weak_cert_validation = !tls.verifies();
  options.allow_invalid_hostname = tls.mode != TlsMode::kVerifyFull;
  if (!tls.ca_file.empty()) options.ca_file = tls.ca_file.c_str();
  if (!tls.cert_file.empty()) options.pem_file = tls.cert_file.c_str();
  library.client_set_ssl_opts(&client, &options);
}

}  // namespace

std::string MongoPlace::ToString() const {
  std::string text;
  for (const Endpoint& address : addresses) text += (text.empty() ? "" : ",") + address.ToString();
  return text;
}

MongoConnection::MongoConnection(MongoPlace place) : place_(std::move(place)) {}

MongoConnection::~MongoConnection() { Close(); }

void MongoConnection::Close() { client_.reset(); }

Status MongoConnection::Open() {
  Close();
  FIRN_TRY(place_.tls.CheckFiles());
  FIRN_ASSIGN(const MongoLibrary* const library, MongoLibrary::Load());
  const Uri uri = UriOf(place_, *library);
  if (uri == nullptr) return Invalid(place_.ToString() + " is not a list of addresses");
  FIRN_TRY(SetCredentials(place_, *library, *uri));
  client_ = std::make_unique<Client>(*library, library->client_new_from_uri(uri.get()));
  if (client_->handle == nullptr) return Internal("the MongoDB library refuses the settings");
  library->client_set_error_api(client_->handle, MONGOC_ERROR_API_VERSION_2);
  SetTls(place_.tls, *library, *client_->handle);
  Status status = Run(Document().Number("ping", 1), false).status();
  if (!status.ok()) Close();
  return status.code() == Code::kUnknown ? Unavailable(status.message()) : status;
}

// --- commands -----------------------------------------------------------------------------------

Result<std::optional<MongoConnection::Counter>> MongoConnection::Read(const std::string& tag) {
  FIRN_ASSIGN(const Document reply, Run(Document()
                                            .Text("find", place_.collection)
                                            .In("filter", Document().Text("_id", tag))
                                            .Number("limit", 1)
                                            .Flag("singleBatch", true),
                                        false));
  if (!reply.At("cursor.firstBatch.0")) return std::optional<Counter>();
  FIRN_ASSIGN(const Counter counter, reply.CounterAt("cursor.firstBatch.0"));
  return std::optional(counter);
}

Status MongoConnection::Insert(const std::string& tag, Counter counter) {
  Document document =
      Document().Text("_id", tag).Number("max", counter.max).Number("step", counter.step);
  bson_append_now_utc(&document.handle, "timestamp", -1);
  const auto reply =
      Run(Document().Text("insert", place_.collection).List("documents", document), true);
  if (!reply.ok()) return reply.status();
  const auto code = reply->At("writeErrors.0.code");
  if (!code || bson_iter_as_int64(&*code) == kDuplicateKey) return {};
  return {RefusalOf(static_cast<uint32_t>(bson_iter_as_int64(&*code))).value_or(Code::kUnknown),
          reply->TextAt("writeErrors.0.errmsg")};
}

Status MongoConnection::Raise(const std::string& tag, int64_t least) {
  return Run(Document()
                 .Text("findAndModify", place_.collection)
                 .In("query", Document().Text("_id", tag))
                 .In("update", Document().In("$max", Document().Number("max", least))),
             true)
      .status();
}

Result<std::optional<MongoConnection::Counter>> MongoConnection::Move(const std::string& tag,
                                                                      int64_t least,
                                                                      int64_t ceiling, int64_t size,
                                                                      const std::string& cluster) {
  const Document within = Document().Number("$gte", least).Number("$lte", ceiling);
  const Document query = Document()
                             .Text("_id", tag)
                             .In("max", within)
                             .In("step", Document().Number("$gte", 1))
                             .In("cluster", Document().NullOr("$in", {"", cluster}));
  Document set = Document().Number("step", size).Text("cluster", cluster);
  bson_append_now_utc(&set.handle, "timestamp", -1);
  const Document update = Document().In("$inc", Document().Number("max", size)).In("$set", set);
  FIRN_ASSIGN(const Document reply, Run(Document()
                                            .Text("findAndModify", place_.collection)
                                            .In("query", query)
                                            .In("update", update)
                                            .Flag("new", true),
                                        true));
  const auto value = reply.At("value");
  if (!value || !BSON_ITER_HOLDS_DOCUMENT(&*value)) return std::optional<Counter>();
  FIRN_ASSIGN(const Counter counter, reply.CounterAt("value"));
  return std::optional(counter);
}

Result<MongoConnection::Document> MongoConnection::Run(Document&& command, bool writes) {
  if (!is_open()) return Unavailable("not connected");
  const int64_t limit = place_.time_limit.count();
  bson_append_int64(&command.handle, "maxTimeMS", -1, limit);
  if (writes) {
    // A command's time limit does not end the wait for the other members.
    const Document concern = Document().Text("w", "majority").Number("wtimeout", limit);
    bson_append_document(&command.handle, "writeConcern", -1, &concern.handle);
  }
  Document reply;
  MongoError error;
  bson_destroy(&reply.handle);
  const bool done =
      client_->library.client_command_simple(client_->handle, place_.database.c_str(),
                                             &command.handle, nullptr, &reply.handle, &error.what);
  if (done && !reply.At("writeConcernError")) return reply;
  return Fail(reply, error);
}

// A server that reports an error may have executed the command, unless the error excludes that.
Status MongoConnection::Fail(const Document& reply, const MongoError& error) {
  const std::string concern = reply.TextAt("writeConcernError.errmsg");
  const bool by_server = error.what.domain == MONGOC_ERROR_SERVER;
  const bool selected = error.what.domain != MONGOC_ERROR_SERVER_SELECTION;
  Status failure = Unknown(Line(error.what.message));
  if (reply.At("writeConcernError")) {
    failure = Unknown("no majority has acknowledged the write: " + concern);
  } else if (error.what.domain == MONGOC_ERROR_CLIENT) {
    failure = Denied(Line(error.what.message));
  } else if (by_server) {
    const auto code = RefusalOf(error.what.code);
    if (code) failure = Status(*code, failure.message());
    if (error.what.code == kUnauthorized) {
      failure = Denied(
          Cat(failure.message(), "; grant the user the role readWrite on ", place_.database));
    }
    if (error.what.code == kWriteConflict || error.what.code == kMaxTimeMsExpired) return failure;
  } else if (!selected) {
    failure = Unavailable(failure.message());
  }
  if (place_.tls.mode != TlsMode::kOff && !by_server) {
    failure = FailureOfTls(failure.message(), selected).value_or(failure);
  }
  Close();  // its state is uncertain; a new connection's is not
  return failure;
}

// The library reports a failed handshake explicitly. It reports an unfinished handshake as a
// connection that timed out or was closed before a server was selected.
std::optional<Status> MongoConnection::FailureOfTls(const std::string& message,
                                                    bool selected) const {
  const auto says = [&](const char* words) { return message.find(words) != message.npos; };
  const std::string address = place_.ToString();
  if (says("TLS")) return place_.tls.Failed(address, HandshakeFault(message));
  if (!selected && says("socket timeout")) return place_.tls.Unfinished(address, false);
  if (!selected && says("connection closed")) return place_.tls.Unfinished(address, true);
  return std::nullopt;
}

}  // namespace firn
