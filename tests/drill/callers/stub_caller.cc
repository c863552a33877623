#include "tests/drill/callers/stub_caller.h"

#include <memory>
#include <utility>

#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/transport/TBufferTransports.h>
#include <thrift/transport/TSocket.h>

namespace firn {
namespace {

using apache::thrift::TException;
using apache::thrift::protocol::TBinaryProtocol;
using apache::thrift::transport::TFramedTransport;
using apache::thrift::transport::TSocket;

constexpr int kConnectMs = 5'000;

}  // namespace

class StubCaller::Connection {
 public:
  Connection(int port, Milliseconds answer_limit)
      : socket_(std::make_shared<TSocket>("127.0.0.1", port)),
        client_(std::make_shared<TBinaryProtocol>(std::make_shared<TFramedTransport>(socket_))) {
    socket_->setConnTimeout(kConnectMs);
    socket_->setRecvTimeout(static_cast<int>(answer_limit.count()));
    socket_->open();
  }

  wire::IdServiceClient& client() { return client_; }

 private:
  const std::shared_ptr<TSocket> socket_;
  wire::IdServiceClient client_;
};

StubCaller::StubCaller(int port, Milliseconds answer_limit)
    : port_(port), answer_limit_(answer_limit) {}

StubCaller::~StubCaller() = default;

void StubCaller::GoTo(int port) {
  port_ = port;
  connection_.reset();
}

StubCaller::End StubCaller::Call(const std::function<void(wire::IdServiceClient&)>& ask) {
  try {
    if (connection_ == nullptr) connection_ = std::make_unique<Connection>(port_, answer_limit_);
    ask(connection_->client());
    return End::kAnswered;
  } catch (const wire::Refusal& refusal) {
    trouble_ = refusal.message;
    return End::kRefused;
  } catch (const TException& e) {
    trouble_ = e.what();
    return std::exchange(connection_, nullptr) == nullptr ? End::kUnreachable : End::kLost;
  }
}

}  // namespace firn
