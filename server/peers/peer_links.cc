#include "server/peers/peer_links.h"

#include <deque>
#include <system_error>
#include <thread>
#include <utility>

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
  if (answer.trouble.empty()) return Range{};
  return answer.exhausted ? Exhausted(answer.trouble) : Unavailable(answer.trouble);
}

}  // namespace

class PeerLinks::Link {
 public:
  Link(std::string address, const std::optional<PeerTls>& tls)
      : address_(std::move(address)), tls_(tls), thread_([this] { Run(); }) {}

  ~Link() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    arrived_.notify_one();
    thread_.join();
  }

  // False: too many wait.
  bool Queue(PeerTake& take, RangeSource::TakeDone& done) {
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.size() >= kQueueMax) return false;
      waiting_.push_back({std::move(take), std::move(done)});
    }
    arrived_.notify_one();
    return true;
  }

 private:
  struct Errand {
    PeerTake take;
    RangeSource::TakeDone done;
  };

  void Run() {
    for (;;) {
      std::unique_lock lock(mutex_);
      arrived_.wait(lock, [this] { return stopped_ || !waiting_.empty(); });
      if (stopped_) return;
      std::deque<Errand> errands = std::exchange(waiting_, {});
      lock.unlock();
      if (!Serve(errands)) Pause();
    }
  }

  void Pause() {
    std::unique_lock lock(mutex_);
    arrived_.wait_for(lock, kPause, [this] { return stopped_; });
  }

  // Answers all errands; false after a failure of the connection.
  bool Serve(std::deque<Errand>& errands) {
    const bool reused = peer_ != nullptr;
    const size_t count = errands.size();
    try {
      if (!reused) Connect();
      for (const Errand& errand : errands) {
        wire::OwnedTake take;
        take.__set_secret(errand.take.secret);
        take.__set_tag(errand.take.tag);
        take.__set_form(errand.take.form);
        take.__set_count(errand.take.count);
        peer_->send_takeOwned(take);
      }
      while (!errands.empty()) {
        wire::OwnedRange answer;
        peer_->recv_takeOwned(answer);
        const RangeSource::TakeDone done = std::move(errands.front().done);
        errands.pop_front();
        done(ResultOf(answer));
      }
      if (std::exchange(failed_, false)) {
        LogInfo("peer_reached").With("address", address_)
            << "the owner of tags at " << address_ << " can be reached again";
      }
      return true;
    } catch (const apache::thrift::TException& error) {
      peer_.reset();
      // The owner closes idle connections.
      if (reused && errands.size() == count) return Serve(errands);
      if (!std::exchange(failed_, true)) {
        LogWarning("peer_unreachable").With("address", address_)
            << "cannot take numbers from the owner of tags at " << address_ << ": " << error.what();
      }
    }
    for (const Errand& errand : errands) errand.done(Range{});
    return false;
  }

  void Connect() {
    const Result<Endpoint> at = Endpoint::Parse(address_);
    if (!at.ok()) throw transport::TTransportException(at.status().message());
    std::shared_ptr<transport::TSocket> socket;
    if (tls_) {
      transport::TSSLSocketFactory factory(transport::SSLTLS);
      factory.authenticate(true);
      factory.loadCertificate(tls_->cert.c_str());
      factory.loadPrivateKey(tls_->key.c_str());
      if (tls_->ca.empty()) {
        factory.loadTrustedCertificates("/etc/ssl/certs/ca-certificates.crt");
      } else {
        factory.loadTrustedCertificates(tls_->ca.c_str());
      }
      socket = factory.createSocket(at->host, at->port);
    } else {
      socket = std::make_shared<transport::TSocket>(at->host, at->port);
    }
    socket->setConnTimeout(static_cast<int>(kConnect.count()));
    socket->setRecvTimeout(static_cast<int>(kAnswer.count()));
    socket->setSendTimeout(static_cast<int>(kAnswer.count()));
    socket->setNoDelay(true);
    auto framed = std::make_shared<transport::TFramedTransport>(socket);
    framed->open();
    peer_ = std::make_unique<wire::PeerClientT<Protocol>>(std::make_shared<Protocol>(framed));
  }

  const std::string address_;
  const std::optional<PeerTls>& tls_;
  std::unique_ptr<wire::PeerClientT<Protocol>> peer_;  // null: not connected
  bool failed_ = false;                                // the last attempt, and that was logged

  std::mutex mutex_;  // guards the members below
  std::condition_variable arrived_;
  std::deque<Errand> waiting_;
  bool stopped_ = false;
  std::thread thread_;  // last: it uses the rest
};

PeerLinks::PeerLinks(std::optional<PeerTls> tls) : tls_(std::move(tls)) {}

PeerLinks::~PeerLinks() { Stop(); }

void PeerLinks::Take(const std::string& address, PeerTake take, RangeSource::TakeDone done) {
  try {
    const std::lock_guard lock(mutex_);
    auto link = links_.find(address);
    if (link == links_.end() && !stopped_) {
      link = links_.emplace(address, std::make_unique<Link>(address, tls_)).first;
    }
    if (link != links_.end() && link->second->Queue(take, done)) return;
  } catch (const std::system_error&) {
    LogWarning("peer_unreachable").With("address", address)
        << "cannot take numbers from the owner of tags at " << address << ": no thread is left";
  }
  done(Range{});
}

// Joins the threads without the lock, which an answer may need for the next take.
void PeerLinks::Stop() {
  std::map<std::string, std::unique_ptr<Link>> links;
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  links.swap(links_);
}

}  // namespace firn
