#include "server/store/redis/redis_socket.h"

#include <array>
#include <utility>

#include "common/base/cat.h"

namespace firn {

Result<std::unique_ptr<RedisSocket>> RedisSocket::Connect(const Endpoint& address,
                                                          const StoreTls& tls,
                                                          Milliseconds time_limit) {
  FIRN_ASSIGN(BlockingSocket socket, BlockingSocket::Connect(address, time_limit));
  std::unique_ptr<RedisSocket> connection(
      new RedisSocket(std::move(socket), address.ToString(), tls));
  if (tls.mode != TlsMode::kOff) FIRN_TRY(connection->Agree(address.host));
  return connection;
}

Status RedisSocket::Agree(const std::string& name) {
  FIRN_TRY(settings_.CheckFiles());
  FIRN_ASSIGN(tls_, TlsPump::Begin({.ca_file = settings_.ca_file,
                                    .name = settings_.mode == TlsMode::kVerifyFull ? name : "",
                                    .cert_file = settings_.cert_file,
                                    .key_file = settings_.key_file}));
  std::array<char, 16'384> buffer;
  while (tls_->state() == TlsPump::State::kAgreeing) {
    FIRN_TRY(socket_.Send(std::exchange(tls_->sealed(), {})));
    const auto size = socket_.Receive(buffer.data(), buffer.size());
    if (!size.ok()) {
      const std::string why = Cat("no handshake: ", size.status().message());
      return Unavailable(settings_.Failed(address_, why).message());
    }
    tls_->Feed({buffer.data(), *size});
  }
  const Status sent = socket_.Send(std::exchange(tls_->sealed(), {}));
  return tls_->state() == TlsPump::State::kFailed ? TlsFailed() : sent;
}

// A server that requires a client certificate may close the connection after the handshake.
Status RedisSocket::Closed(const Status& why) const {
  if (worked_ || !settings_.cert_file.empty()) return why;
  return Unavailable(
      Cat(address_, ": ", why.message(),
          "; if the server requires a client certificate, set tls_cert and tls_key"));
}

Status RedisSocket::Send(std::string_view bytes) {
  if (tls_ == nullptr) return socket_.Send(bytes);
  tls_->Seal(bytes);
  const Status sent = socket_.Send(std::exchange(tls_->sealed(), {}));
  if (!sent.ok()) return Closed(sent);
  return tls_->state() == TlsPump::State::kFailed ? TlsFailed() : Status();
}

Result<size_t> RedisSocket::Receive(char* into, size_t size) {
  if (tls_ == nullptr) return socket_.Receive(into, size);
  std::array<char, 16'384> buffer;
  for (;;) {
    if (const size_t read = tls_->Read(into, size); read > 0) {
      worked_ = true;
      return read;
    }
    if (tls_->state() == TlsPump::State::kFailed) return TlsFailed();
    FIRN_TRY(socket_.Send(std::exchange(tls_->sealed(), {})));  // for example a key update
    const Result<size_t> came = socket_.Receive(buffer.data(), buffer.size());
    if (!came.ok()) return Closed(came.status());
    tls_->Feed({buffer.data(), *came});
  }
}

}  // namespace firn
