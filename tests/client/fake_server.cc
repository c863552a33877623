#include "tests/client/fake_server.h"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/transport/TBufferTransports.h>
#include <unistd.h>

#include "common/id/layout.h"
#include "tests/support/process.h"
#include "tests/support/tls_authority.h"
#include "thrift/gen/IdService.h"

namespace firn {
namespace {

using Kind = Behaviour::Kind;
using apache::thrift::protocol::TBinaryProtocol;
using apache::thrift::transport::TMemoryBuffer;

constexpr size_t kLengthBytes = 4;

// TLS state of this thread's connection; null: a plain one.
thread_local SSL* encryption = nullptr;

bool ReceiveAll(int fd, char* into, size_t size) {
  for (size_t held = 0; held < size;) {
    const size_t rest = size - held;
    const ssize_t got = encryption == nullptr
                            ? recv(fd, into + held, rest, 0)
                            : SSL_read(encryption, into + held, static_cast<int>(rest));
    if (got <= 0) return false;
    held += static_cast<size_t>(got);
  }
  return true;
}

bool SendAll(int fd, std::string_view bytes) {
  const auto size = static_cast<int>(bytes.size());
  if (encryption != nullptr) return SSL_write(encryption, bytes.data(), size) == size;
  return send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

std::string Framed(const std::string& body) {
  const uint32_t length = htonl(static_cast<uint32_t>(body.size()));
  return std::string(reinterpret_cast<const char*>(&length), kLengthBytes) + body;
}

// Returns the position of a message's sequence id, which follows the method's name.
size_t SequenceAt(const std::string& framed) {
  uint32_t name_length;
  std::memcpy(&name_length, framed.data() + kLengthBytes + 4, sizeof name_length);
  return kLengthBytes + 8 + ntohl(name_length);
}

int64_t NextFirstId() {
  static std::atomic<int64_t> server{0};
  return (++server << 40) + 1;
}

// The certificate of all fake servers of a process, if they use TLS.
struct Shown {
  Shown() {
    authority.Sign("server", "DNS:localhost,IP:127.0.0.1");
    SSL_CTX_use_certificate_chain_file(context.get(), authority.File("server.crt").c_str());
    SSL_CTX_use_PrivateKey_file(context.get(), authority.File("server.key").c_str(),
                                SSL_FILETYPE_PEM);
    std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes to sockets without MSG_NOSIGNAL
  }

  TlsAuthority authority{"fake"};
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context{SSL_CTX_new(TLS_server_method()),
                                                            SSL_CTX_free};
};

const Shown* Certificates() {
  static const auto shown =
      std::getenv("FIRN_FAKE_SERVERS_TLS") == nullptr ? nullptr : std::make_unique<Shown>();
  return shown.get();
}

}  // namespace

std::optional<TlsOptions> FakeServer::Tls() {
  if (Certificates() == nullptr) return std::nullopt;
  return TlsOptions{.ca = Certificates()->authority.File("ca.crt")};
}

// Gives correct answers, except for the fields that a behaviour changes.
class FakeServer::Service final : public wire::IdServiceNull {
 public:
  Service(FakeServer& server, const Behaviour& behaviour)
      : server_(server), behaviour_(behaviour) {}

  int64_t getId(const std::string& tag) override { return Give(tag); }
  void getIds(std::vector<int64_t>& out, const std::string& tag, const int32_t count) override {
    Give(tag);
    for (int32_t i = 0; i < Count(count); ++i) out.push_back(Give(tag));
    if (behaviour_.kind == Kind::kTwice) out.back() = out.front();
  }
  void getRuns(std::vector<wire::IdRun>& out, const std::string& tag,
               const int64_t count) override {
    wire::IdRun run;
    run.count = Count(static_cast<int32_t>(count));
    run.first = Give(tag, run.count);
    run.stride = 1;
    out.push_back(run);
    if (behaviour_.kind != Kind::kTwice || run.count < 2) return;
    out.front().count = 1;
    --run.count;
    out.push_back(run);
  }
  void getText(std::string& out, const std::string& tag) override {
    const std::string text = std::to_string(Give(tag));
    if (Count(1) == 1) out = text;
  }
  void explain(wire::IdFields& out, const int64_t id, const std::string&) override {
    out.id = id;
    out.machine = 5;
    out.layout = "firn";
  }
  void status(wire::ServerStatus& out) override {
    if (behaviour_.in_status) RefuseWhenAsked({});
    out.cluster_uuid = server_.uuid_;
    if (behaviour_.kind == Kind::kForeign) out.cluster_uuid = "another cluster";
    if (behaviour_.kind == Kind::kUnaware) out.cluster_uuid = "";
    out.cluster_name = "fake";
    out.layout = behaviour_.kind == Kind::kOtherLayout ? "twitter" : "firn";
    const bool drains = behaviour_.reason == Reason::kDraining;
    out.state = drains && behaviour_.only_tag.empty() ? wire::ServerState::DRAINING
                                                      : wire::ServerState::READY;
    // The times in its ids are near the time of the first id.
    const IdFields first = Layout::Firn().Unpack(server_.first_id_).value();
    out.wall_ms = Layout::Firn().StartOf(first.tick).ms();
    wire::TagStatus tag;
    tag.tag = "order";
    tag.strategy = "snowflake";
    tag.__set_as_issued(true);
    out.tags.push_back(tag);
  }

  void lease(wire::LeaseTerms& out, const wire::LeaseAsk& ask) override {
    server_.Note("lease " + ask.token + " " + ask.name);
    RefuseWhenAsked({});
    server_.leases().Promise("lease of " + ask.token, out);
  }
  void renewLease(wire::LeaseTerms& out, const wire::LeaseRenewal& renewal) override {
    server_.Note("renew " + renewal.lease + " " + renewal.turn + " " + renewal.acknowledged);
    RefuseWhenAsked({});
    server_.leases().Promise(renewal.lease, out);
  }
  void releaseLease(const wire::LeaseEnd& end) override {
    server_.Note("release " + end.lease + " " + end.turn + " " + std::to_string(end.used_tick));
    RefuseWhenAsked({});
    server_.leases().Refuse();
  }

 private:
  void RefuseWhenAsked(const std::string& tag) const {
    if (behaviour_.kind != Kind::kRefuse) return;
    if (!behaviour_.only_tag.empty() && behaviour_.only_tag != tag) return;
    wire::Refusal refusal;
    refusal.reason = static_cast<wire::Reason::type>(static_cast<int>(behaviour_.reason) + 1);
    refusal.message = "as the test says";
    refusal.retry_after_ms = static_cast<int32_t>(behaviour_.retry_after.count());
    refusal.another_server_may_help = behaviour_.another_may_help;
    throw refusal;
  }
  // Returns the first of `count` ids.
  int64_t Give(const std::string& tag, int64_t count = 1) {
    RefuseWhenAsked(tag);
    const int64_t id = server_.first_id_ + server_.given_.fetch_add(count);
    if (behaviour_.kind == Kind::kFarTime) return id + (int64_t{1} << 62);
    return behaviour_.kind == Kind::kZeroIds ? 0 : id;
  }
  int32_t Count(int32_t count) const {
    return behaviour_.kind == Kind::kWrongCount ? count - 1 : count;
  }

  FakeServer& server_;
  const Behaviour behaviour_;
};

FakeServer::FakeServer() : port_(FreePort()), first_id_(NextFirstId()) { Up(); }

FakeServer::~FakeServer() { Down(); }

void FakeServer::Behave(Behaviour behaviour) {
  const std::lock_guard lock(mutex_);
  behaviour_ = behaviour;
}

void FakeServer::BehaveAboutLeases(FakeLeases leases) {
  const std::lock_guard lock(mutex_);
  leases_ = std::move(leases);
}

FakeLeases FakeServer::leases() {
  const std::lock_guard lock(mutex_);
  return leases_;
}

void FakeServer::Note(std::string lease_request) {
  const std::lock_guard lock(mutex_);
  lease_requests_.push_back(std::move(lease_request));
}

std::vector<std::string> FakeServer::LeaseRequests() {
  const std::lock_guard lock(mutex_);
  return lease_requests_;
}

Behaviour FakeServer::behaviour() {
  const std::lock_guard lock(mutex_);
  return behaviour_;
}

// --- connections --------------------------------------------------------------------------------

void FakeServer::Up() {
  const std::lock_guard lock(mutex_);
  if (up_) return;
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port_));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener_, 128) != 0) {
    std::perror("fake server");
    std::abort();
  }
  up_ = true;
  thread_ = std::thread([this, listener = listener_] { Accept(listener); });
}

void FakeServer::Down() {
  {
    const std::lock_guard lock(mutex_);
    if (!up_) return;
    up_ = false;
    shutdown(listener_, SHUT_RDWR);
  }
  down_.notify_all();
  thread_.join();
  CloseConnections();
  const std::lock_guard lock(mutex_);
  close(listener_);
}

void FakeServer::CloseConnections() {
  std::list<Peer> ended;
  {
    const std::lock_guard lock(mutex_);
    ended.swap(peers_);
    for (const Peer& peer : ended) shutdown(peer.fd, SHUT_RDWR);
  }
  for (Peer& peer : ended) {
    peer.thread.join();
    close(peer.fd);
  }
}

void FakeServer::Accept(int listener) {
  for (int fd; (fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ++accepted_;
    ++open_;
    const std::lock_guard lock(mutex_);
    Forget();
    Peer& peer = peers_.emplace_back(fd);
    peer.thread = std::thread([this, &peer] {
      Serve(peer.fd);
      peer.gone = true;
    });
  }
}

// Joins ended threads, because an unjoined thread keeps its stack.
void FakeServer::Forget() {
  peers_.remove_if([](Peer& peer) {
    if (!peer.gone) return false;
    peer.thread.join();
    close(peer.fd);
    return true;
  });
}

void FakeServer::Serve(int fd) {
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl(nullptr, SSL_free);
  if (Certificates() != nullptr) {
    ssl.reset(SSL_new(Certificates()->context.get()));
    SSL_set_fd(ssl.get(), fd);
    SSL_accept(ssl.get());  // if it fails, the first read fails, too
    encryption = ssl.get();
  }
  std::string frame;
  for (uint32_t length; ReceiveAll(fd, reinterpret_cast<char*>(&length), sizeof length);) {
    frame.resize(ntohl(length));
    if (!ReceiveAll(fd, frame.data(), frame.size()) || !AnswerFrame(fd, frame)) break;
  }
  shutdown(fd, SHUT_RDWR);  // closed when this thread is joined
  --open_;
}

bool FakeServer::Wait(Milliseconds time) {
  std::unique_lock lock(mutex_);
  return !down_.wait_for(lock, time, [this] { return !up_; });
}

// --- answers ------------------------------------------------------------------------------------

bool FakeServer::AnswerFrame(int fd, std::string frame) {
  const Behaviour how = behaviour();
  const bool asks_ids = frame.find("status") == std::string::npos;
  if (how.kind == Kind::kHttp) return SendAll(fd, "HTTP/1.1 400 Bad Request\r\n\r\n"), false;
  if (asks_ids) ++requests_;
  const bool of_lease =
      frame.find("ease") == 9 || frame.find("newLease") == 10 || frame.find("leaseLease") == 10;
  const bool lacks_it = of_lease && leases().answer == FakeLeases::Answer::kNoMethod;
  if (how.kind == Kind::kNoMethod || lacks_it) frame[8] = '?';  // the first letter of the method
  auto in =
      std::make_shared<TMemoryBuffer>(reinterpret_cast<uint8_t*>(const_cast<char*>(frame.data())),
                                      static_cast<uint32_t>(frame.size()));
  auto out = std::make_shared<TMemoryBuffer>();
  wire::IdServiceProcessor processor(std::make_shared<Service>(*this, how));
  processor.process(std::make_shared<TBinaryProtocol>(in), std::make_shared<TBinaryProtocol>(out),
                    nullptr);
  const std::string answer = Framed(out->getBufferAsString());
  return asks_ids || how.in_status ? Say(fd, answer, how) : SendAll(fd, answer);
}

bool FakeServer::Say(int fd, const std::string& bytes, const Behaviour& how) {
  if (how.delay.count() > 0 && how.kind != Kind::kDrip && !Wait(how.delay)) return false;
  switch (how.kind) {
    case Kind::kSilent:
      return true;
    case Kind::kClose:
      return false;
    case Kind::kReset: {
      const linger hard{1, 0};
      setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
      // Connecting the socket again resets the connection without closing the descriptor.
      const sockaddr nowhere{AF_UNSPEC, {}};
      connect(fd, &nowhere, sizeof nowhere);
      return false;
    }
    case Kind::kHalf:
      return SendAll(fd, std::string_view(bytes).substr(0, bytes.size() / 2)), false;
    case Kind::kDrip:
      for (const char byte : bytes) {
        if (!Wait(how.delay) || !SendAll(fd, std::string_view(&byte, 1))) return false;
      }
      return true;
    case Kind::kGarbage:
      return SendAll(fd, Framed("this is not Thrift")), true;
    case Kind::kRepeat:
      return SendAll(fd, bytes + bytes);
    case Kind::kOtherSequence: {
      std::string other = bytes;
      const size_t at = SequenceAt(other) + 3;
      other[at] = static_cast<char>(other[at] + 1);
      return SendAll(fd, other);
    }
    case Kind::kEmpty: {
      // Sends the header of the reply and a struct without fields.
      return SendAll(fd, Framed(bytes.substr(kLengthBytes, SequenceAt(bytes)) + '\0'));
    }
    default:
      return SendAll(fd, bytes);
  }
}

std::string ListOf(const std::vector<FakeServer*>& servers) {
  std::string list = "list://";
  for (const FakeServer* server : servers) {
    list += (list.back() == '/' ? "" : ",") + server->address();
  }
  return list;
}

}  // namespace firn
