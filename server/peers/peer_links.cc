#include "server/peers/peer_links.h"

#include <chrono>
#include <deque>
#include <iterator>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <openssl/ssl.h>
#include <thrift/protocol/TCompactProtocol.h>
#include <thrift/transport/TBufferTransports.h>
#include <thrift/transport/TSSLSocket.h>
#include <thrift/transport/TSocket.h>

#include "common/log/log.h"
#include "common/net/endpoint.h"
#include "thrift/gen/Peer.h"

namespace firn {
namespace {

namespace transport = apache::thrift::transport;
using Protocol = apache::thrift::protocol::TCompactProtocolT<transport::TFramedTransport>;

Result<Range> ResultOf(const wire::OwnedRange& answer) {
  if (answer.count > 0) return Range{answer.first, answer.first + answer.count};
  if (!answer.elsewhere.empty()) return NotFound(answer.elsewhere);
  if (answer.trouble.empty()) return Range{};
  return answer.exhausted ? Exhausted(answer.trouble) : Unavailable(answer.trouble);
}

// Returns whether the connection has ended. TLS reports a reset as an internal error.
bool HasEnded(const apache::thrift::TException& error) {
  const auto* const end = dynamic_cast<const transport::TTransportException*>(&error);
  if (end == nullptr) return false;
  const auto type = end->getType();
  return type == transport::TTransportException::NOT_OPEN ||
         type == transport::TTransportException::END_OF_FILE ||
         type == transport::TTransportException::INTERNAL_ERROR;
}

// Accepts every certificate.
class AnyServer : public transport::AccessManager {
 public:
  Decision verify(const sockaddr_storage&) noexcept override { return ALLOW; }
};

class SocketFactory : public transport::TSSLSocketFactory {
 public:
  explicit SocketFactory(const std::optional<PeerTls>& own) : TSSLSocketFactory(transport::SSLTLS) {
    SSL_CTX* const context = ctx_->get();
    authenticate(own.has_value());
    if (!own) {
      SSL_CTX_set_cert_verify_callback(
          context, [](X509_STORE_CTX*, void*) { return 1; }, nullptr);
      access(std::make_shared<AnyServer>());
      return;
    }
    loadCertificate(own->cert.c_str());
    loadPrivateKey(own->key.c_str());
    if (own->ca.empty()) {
      SSL_CTX_set_default_verify_paths(context);
    } else {
      loadTrustedCertificates(own->ca.c_str());
    }
  }
};

}  // namespace

// Its thread shares it, because Stop does not wait for a name to be resolved, which may take long.
class PeerLinks::Link {
  using Steady = std::chrono::steady_clock;

 public:
  Link(std::string address, std::optional<PeerTls> tls, Milliseconds silent)
      : address_(std::move(address)), tls_(std::move(tls)), silent_(silent) {}

  // Returns a link that is stopped when the last copy of the pointer is destroyed.
  static std::shared_ptr<Link> Start(std::string address, const std::optional<PeerTls>& tls,
                                     Milliseconds silent) {
    auto link = std::make_shared<Link>(std::move(address), tls, silent);
    link->thread_ = std::thread([link] { link->Run(); });
    return {link.get(), [link](Link*) {
              link->BeginStop();
              link->EndStop();
            }};
  }

  void BeginStop() {
    {
      const std::lock_guard lock(mutex_);
      if (!std::exchange(stopped_, true)) stopped_at_ = Steady::now();
    }
    arrived_.notify_all();
  }

  // After BeginStop. Takes are not answered after the return. If the thread is still connecting, it
  // ends later.
  void EndStop() {
    std::unique_lock lock(mutex_);
    while (!ended_ && !(connecting_ && Steady::now() - stopped_at_ >= kStop)) {
      arrived_.wait_for(lock, kPause);
    }
    const bool ended = ended_;
    lock.unlock();
    if (ended) {
      thread_.join();
    } else {
      thread_.detach();
    }
  }

  // Returns false if the queue is full.
  bool Queue(PeerTake& take, OwnerLink::Count& count, RangeSource::TakeDone& done) {
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.size() >= kQueueMax) return false;
      waiting_.push_back({std::move(take), std::move(count), std::move(done)});
    }
    arrived_.notify_one();
    return true;
  }

  // Returns whether the last connection failed a short time ago, or a take has waited for `silent`.
  bool IsUnreachable() {
    const std::lock_guard lock(mutex_);
    const Steady::time_point now = Steady::now();
    if (serving_) return unreachable_ || now - heard_at_ >= silent_;
    return unreachable_ && now - served_at_ < kRecent;
  }

  // Returns whether the link has been idle for at least `kept`.
  bool IsIdle(Milliseconds kept) {
    const std::lock_guard lock(mutex_);
    return !serving_ && waiting_.empty() && Steady::now() - served_at_ >= kept;
  }

 private:
  struct Errand {
    PeerTake take;
    OwnerLink::Count count;
    RangeSource::TakeDone done;  // null: the caller has been refused already
  };

  void Run() {
    while (!IsStopped()) {
      bool served = false;
      try {
        served = ServeNext();
      } catch (const std::bad_alloc&) {
        Disconnect();  // takes without an answer are lost; their callers retry
      }
      if (!served) Pause();
    }
    const std::lock_guard lock(mutex_);
    ended_ = true;
    arrived_.notify_all();
  }

  // Waits for takes, and answers them. Returns false after a failure.
  bool ServeNext() {
    std::unique_lock lock(mutex_);
    serving_ = false;
    served_at_ = Steady::now();
    unreachable_ = failed_;
    arrived_.wait(lock, [this] { return stopped_ || !waiting_.empty(); });
    if (stopped_) return true;
    serving_ = true;
    heard_at_ = Steady::now();
    std::deque<Errand> errands = std::exchange(waiting_, {});
    lock.unlock();
    return Serve(errands);
  }

  bool IsStopped() {
    const std::lock_guard lock(mutex_);
    return stopped_;
  }

  void Pause() {
    std::unique_lock lock(mutex_);
    arrived_.wait_for(lock, kPause, [this] { return stopped_; });
  }

  // Ends the process if there is no memory for the answer: the tag would never stop waiting for it.
  static void Answer(Errand& errand, const Result<Range>& answer) noexcept {
    if (const auto done = std::exchange(errand.done, nullptr)) done(answer);
  }
  static void AskAgain(std::deque<Errand>& errands) {
    for (Errand& errand : errands) Answer(errand, Range{});
  }

  // Returns when the next answer begins to arrive. After kLate, the callers of `errands` and of
  // takes that arrive meanwhile have to retry, but the connection is kept: the owner may be
  // overloaded, and a new connection would not help it.
  void AwaitAnswer(std::deque<Errand>& errands) {
    for (;;) {
      try {
        if (framed_->peek()) break;
        throw transport::TTransportException(transport::TTransportException::END_OF_FILE);
      } catch (const transport::TTransportException& error) {
        if (error.getType() != transport::TTransportException::TIMED_OUT) throw;
        std::unique_lock lock(mutex_);
        const auto waited = Steady::now() - heard_at_;
        const bool ends = stopped_ || waited >= silent_;
        if (!ends && waited < kLate) continue;
        std::deque<Errand> more = std::exchange(waiting_, {});
        lock.unlock();
        AskAgain(errands);
        AskAgain(more);
        if (ends) throw;
      }
    }
    const std::lock_guard lock(mutex_);
    heard_at_ = Steady::now();
  }

  // Answers all errands. Returns false after a failure of the connection.
  bool Serve(std::deque<Errand>& errands) {
    const bool encrypts = errands.back().take.tls.value_or(tls_.has_value());
    if (encrypts != encrypts_) Disconnect();
    encrypts_ = encrypts;
    const bool reused = peer_ != nullptr;
    const size_t count = errands.size();
    try {
      if (!reused && !Connect()) return false;
      for (const Errand& errand : errands) {
        wire::OwnedTake take;
        take.__set_secret(errand.take.secret);
        take.__set_tag(errand.take.tag);
        take.__set_form(errand.take.form);
        take.__set_count(errand.count());
        peer_->send_takeOwned(take);
      }
      while (!errands.empty()) {
        wire::OwnedRange answer;
        AwaitAnswer(errands);
        peer_->recv_takeOwned(answer);
        const Result<Range> result = ResultOf(answer);
        Errand errand = std::move(errands.front());
        errands.pop_front();
        Answer(errand, result);
      }
      if (std::exchange(failed_, false)) {
        LogInfo("peer_reached").With("address", address_)
            << "the owner of tags at " << address_ << " can be reached again";
      }
      return true;
    } catch (const apache::thrift::TException& error) {
      Disconnect();
      // The owner closes idle connections, so retry once with a new one, unless the callers do.
      const bool unanswered = errands.size() == count && errands.front().done;
      if (reused && unanswered && HasEnded(error)) return Serve(errands);
      if (!IsStopped() && !std::exchange(failed_, true)) {
        LogWarning("peer_unreachable").With("address", address_)
            << "cannot take numbers from the owner of tags at " << address_ << ": " << error.what();
      }
    } catch (const std::bad_alloc&) {
      Disconnect();
    }
    AskAgain(errands);
    return false;
  }

  void Disconnect() {
    peer_.reset();
    framed_.reset();
  }

  // Returns false if the link is stopped: then it may not answer takes any more.
  bool Connect() {
    if (!SetConnecting(true)) return false;
    try {
      Open();
    } catch (...) {
      if (!SetConnecting(false)) return false;
      throw;
    }
    return SetConnecting(false);
  }

  // Returns false if the link is stopped.
  bool SetConnecting(bool connecting) {
    const std::lock_guard lock(mutex_);
    connecting_ = connecting && !stopped_;
    return !stopped_;
  }

  void Open() {
    const Result<Endpoint> at = Endpoint::Parse(address_);
    if (!at.ok()) throw transport::TTransportException(at.status().message());
    std::shared_ptr<transport::TSocket> socket;
    if (encrypts_) {
      socket = SocketFactory(tls_).createSocket(at->host, at->port);
    } else {
      socket = std::make_shared<transport::TSocket>(at->host, at->port);
    }
    socket->setConnTimeout(static_cast<int>(kConnect.count()));
    socket->setRecvTimeout(static_cast<int>(kAnswer.count()));
    socket->setSendTimeout(static_cast<int>(kAnswer.count()));
    socket->setNoDelay(true);
    // Buffered, so that one read gets an answer together with its length.
    auto framed = std::make_shared<transport::TFramedTransport>(
        std::make_shared<transport::TBufferedTransport>(socket));
    framed->open();
    framed_ = framed;
    peer_ = std::make_unique<wire::PeerClientT<Protocol>>(std::make_shared<Protocol>(framed));
  }

  const std::string address_;
  const std::optional<PeerTls> tls_;
  const Milliseconds silent_;
  std::shared_ptr<transport::TFramedTransport> framed_;  // of peer_
  std::unique_ptr<wire::PeerClientT<Protocol>> peer_;    // null: not connected
  bool encrypts_ = false;                                // peer_ uses TLS
  bool failed_ = false;  // whether the last attempt failed, which was logged

  std::mutex mutex_;  // guards the members below
  std::condition_variable arrived_;
  std::deque<Errand> waiting_;
  bool serving_ = false;  // takes are being sent or answered
  bool unreachable_ = false;
  Steady::time_point served_at_ = Steady::now();  // end of the last attempt
  Steady::time_point heard_at_;  // while serving_: the last answer, or the attempt's beginning
  bool stopped_ = false;
  Steady::time_point stopped_at_;
  bool connecting_ = false;
  bool ended_ = false;  // Run has ended
  std::thread thread_;  // not guarded: Start, EndStop
};

PeerLinks::PeerLinks(std::optional<PeerTls> tls, Milliseconds kept, Milliseconds silent)
    : tls_(std::move(tls)), kept_(kept), silent_(silent) {}

PeerLinks::~PeerLinks() { Stop(); }

void PeerLinks::Take(const std::string& address, PeerTake take, OwnerLink::Count count,
                     RangeSource::TakeDone done) {
  std::vector<std::shared_ptr<Link>> idle;  // destroyed after the lock is released
  try {
    const std::lock_guard lock(mutex_);
    auto link = links_.find(address);
    if (link == links_.end() && !stopped_) {
      for (auto one = links_.begin(); one != links_.end();) {
        if (one->second->IsIdle(kept_)) idle.push_back(std::move(one->second));
        one = one->second == nullptr ? links_.erase(one) : std::next(one);
      }
      link = links_.emplace(address, Link::Start(address, tls_, silent_)).first;
      lacks_thread_ = false;
    }
    if (link != links_.end() && link->second->Queue(take, count, done)) return;
  } catch (const std::system_error&) {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(lacks_thread_, true)) {
      LogWarning("peer_unreachable").With("address", address)
          << "cannot take numbers from the owner of tags at " << address << ": no thread is left";
    }
  }
  done(Range{});
}

std::string PeerLinks::Unreachable() {
  const std::lock_guard lock(mutex_);
  std::string addresses;
  for (const auto& [address, link] : links_) {
    if (!link->IsUnreachable()) continue;
    addresses += addresses.empty() ? address : "," + address;
  }
  return addresses;
}

// Waits for the threads after it has released the lock, because an answer may need the lock for the
// next take.
void PeerLinks::Stop() {
  std::map<std::string, std::shared_ptr<Link>> links;
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  for (const auto& [address, link] : links_) link->BeginStop();
  links.swap(links_);
}

}  // namespace firn
