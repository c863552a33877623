#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/post.hpp>
#include <openssl/buffer.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "server/front/net/asio_wire.h"
#include "server/front/net/certificate.h"
#include "server/front/net/tls.h"

namespace firn::front {
namespace {

// Maximum bytes to encrypt in one step: several records, sent with one system call.
constexpr size_t kSealedAtOnce = 64 * 1024;
// Maximum bytes to receive in one step.
constexpr size_t kCameMax = 64 * 1024;
// Maximum of OpenSSL's own output (alerts) that waits for a peer that does not read.
constexpr size_t kAsidesMax = 16 * 1024;
// Maximum size of a ClientHello, with its records' headers.
constexpr size_t kHelloMax = 16 * 1024;
// Memory that OpenSSL allocates for a handshake, from the ClientHello on: 43 to 47 KB.
constexpr size_t kHandshakeMemory = 48 * 1024;

struct FreeSsl {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};
struct FreeContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};

// The content of a peer's first records.
enum class Records : uint8_t {
  kPart,     // the last record, or the handshake message in it, is incomplete
  kWhole,    // every handshake message is complete
  kRefused,  // a message is too large, or is interrupted by another record
  kOther     // the next record is not a handshake message in the clear
};

// Examines the records from the first on. OpenSSL allocates all the memory that a message announces
// when its first bytes arrive, so it gets only complete messages.
Records ReadRecords(std::string_view bytes) {
  constexpr size_t kRecordHeader = 5, kMessageHeader = 4;
  constexpr char kChangeCipher = 20, kAlert = 21, kHandshake = 22;
  size_t header = 0;            // bytes of the message's header that have been read
  size_t size = 0, wanted = 0;  // size of the message, and bytes that are missing
  while (!bytes.empty()) {
    const bool between = header == 0;
    const bool aside = bytes[0] == kChangeCipher || bytes[0] == kAlert;
    if (bytes[0] != kHandshake && !between) return Records::kRefused;
    if (bytes[0] != kHandshake && !aside) return Records::kOther;
    if (bytes.size() < kRecordHeader) return Records::kPart;
    const auto byte = [&](size_t i) { return size_t{static_cast<uint8_t>(bytes[i])}; };
    const size_t length = byte(3) << 8 | byte(4);
    bytes.remove_prefix(kRecordHeader);
    const size_t here = std::min(length, bytes.size());
    for (size_t i = 0; !aside && i < here;) {
      if (header < kMessageHeader) {
        if (header++ != 0) size = size << 8 | byte(i);
        ++i;
        if (header == kMessageHeader) wanted = size;
      } else {
        const size_t taken = std::min(wanted, here - i);
        wanted -= taken;
        i += taken;
      }
      if (size > kHelloMax) return Records::kRefused;
      if (header == kMessageHeader && wanted == 0) header = size = 0;
    }
    if (here < length) return Records::kPart;
    bytes.remove_prefix(length);
  }
  return header == 0 ? Records::kWhole : Records::kPart;
}

std::vector<std::string> NamesShownBy(SSL* peer) {
  const std::unique_ptr<X509, decltype(&X509_free)> shown(SSL_get1_peer_certificate(peer),
                                                          X509_free);
  return shown == nullptr ? std::vector<std::string>() : NamesOn(*shown);
}

// OpenSSL works in memory only: it gets the received bytes, its output is in `sealed_`, and this
// class owns the socket. So an answer that fits into the socket's buffer is sent at once.
//
// At most one read and one write are in progress, as for all wires. The handshake is part of a
// read. Its output that does not fit into the socket's buffer is sent before it continues. It
// begins with a complete ClientHello, so a peer that has not sent one costs no more than the bytes
// that it sent.
class TlsWire final : public AsioWire {
 public:
  TlsWire(StreamSocket accepted, SSL_CTX* context) : AsioWire(std::move(accepted)) {
    SSL_CTX_up_ref(context);
    context_.reset(context);
  }

  void Read(InBuffer&& input) override {
    input_ = std::move(input);
    if (!agreed_) input_.Relax();
    if (!more_) return Receive();
    // Asynchronously, like a read that waits for the kernel.
    boost::asio::post(socket().get_executor(), InSlot(read_slot_, [this] { Open(); }));
  }

  size_t WriteNow(std::string_view bytes) override {
    size_t gone = 0;
    while (gone < bytes.size() && sealed_.empty()) {
      of_write_ = Seal(bytes.substr(gone));
      SendSealed();
      if (of_write_ == 0 || !sealed_.empty()) break;  // the next Write continues with these
      gone += std::exchange(of_write_, 0);
    }
    return gone;
  }

  void Write(OutBuffer& bytes) override {
    std::swap(output_, bytes);
    WriteSome();
  }

  bool Opening() const override { return !agreed_; }

  size_t memory() const override {
    const size_t buffers = input_.memory() + output_.memory() + came_.memory() + sealed_.memory();
    if (!ssl_) return buffers;
    return buffers + MemoryOf(to_ssl_) + MemoryOf(from_ssl_) + (agreed_ ? 0 : kHandshakeMemory);
  }
  // Only came_ is the buffer of a read from the socket.
  void Relax() override {
    RelaxRead(came_);
    for (Buffer* buffer : {static_cast<Buffer*>(&input_), static_cast<Buffer*>(&output_),
                           static_cast<Buffer*>(&sealed_)}) {
      buffer->Relax();
    }
    if (!agreed_) return;
    if (IsGrownInVain(to_ssl_)) SSL_set0_rbio(ssl_.get(), to_ssl_ = BIO_new(BIO_s_mem()));
    if (IsGrownInVain(from_ssl_)) SSL_set0_wbio(ssl_.get(), from_ssl_ = BIO_new(BIO_s_mem()));
  }

 private:
  // --- in ---------------------------------------------------------------------------------------

  void Receive() {
    if (came_.MakeRoom(0, gated_ ? kHelloMax : kCameMax).empty()) {
      return connection().OnHandshakeFailed();
    }
    ReceiveInto(came_, [this](const Error& error, size_t n) {
      if (error && !agreed_) return connection().OnHandshakeFailed();
      // A close without close_notify is not an error, because the protocols contain lengths.
      if (error) return connection().OnReadFailed(error == boost::asio::error::eof);
      came_.Filled(n);
      if (gated_) return PassGate();
      Unlock();
    });
  }

  // Passes the received bytes to OpenSSL, unless a handshake message in them is incomplete.
  void PassGate() {
    const Records records = ReadRecords(came_.view());
    if (records == Records::kPart) return Receive();
    if (records == Records::kRefused || !Begun()) return connection().OnHandshakeFailed();
    gated_ = records == Records::kWhole;
    Unlock();
  }

  bool Begun() {
    if (ssl_) return true;
    ssl_.reset(SSL_new(context_.get()));
    if (!ssl_) return false;
    to_ssl_ = BIO_new(BIO_s_mem());
    from_ssl_ = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl_.get(), to_ssl_, from_ssl_);
    SSL_set_accept_state(ssl_.get());
    return to_ssl_ != nullptr && from_ssl_ != nullptr;
  }

  void Unlock() {
    BIO_write(to_ssl_, came_.view().data(), static_cast<int>(came_.size()));
    came_.Clear();
    if (agreed_) return Open();
    Agree();
  }

  void Agree() {
    ERR_clear_error();
    const int result = SSL_do_handshake(ssl_.get());
    // After a HelloRetryRequest, TLS 1.3 expects a second ClientHello.
    if (result == 1 || SSL_version(ssl_.get()) != TLS1_3_VERSION) gated_ = false;
    const bool goes_on = result == 1 || WantsMore(result);
    SendSealed();
    if (!goes_on) return connection().OnHandshakeFailed();
    if (!sealed_.empty()) return SendAndAgree();
    if (result != 1) return Receive();
    agreed_ = true;
    connection().OnIdentified(NamesShownBy(ssl_.get()));
    Open();
  }

  void SendAndAgree() {
    SendSome(sealed_.view(), [this](const Error& error, size_t n) {
      if (error) return connection().OnHandshakeFailed();
      sealed_.Consume(n);
      if (!sealed_.empty()) return SendAndAgree();
      Agree();
    });
  }

  // Decrypts the received bytes, as far as there is room.
  void Open() {
    if (input_.room().empty()) input_.MakeRoom(0, InBuffer::kFirst);  // freed when idle
    const std::span<char> room = input_.room();
    ERR_clear_error();
    size_t opened = 0, n = 0;
    int result = 1;
    while (opened < room.size() && result == 1) {
      result = SSL_read_ex(ssl_.get(), room.data() + opened, room.size() - opened, &n);
      if (result == 1) opened += n;
    }
    const bool ends = result != 1 && !WantsMore(result);
    more_ = result == 1 || ends;
    if (!SendAsides()) return connection().OnReadFailed(false);
    if (opened != 0) {
      input_.Filled(opened);
      return connection().OnRead(opened, std::move(input_));
    }
    if (!ends) return Receive();
    connection().OnReadFailed(SSL_get_error(ssl_.get(), result) == SSL_ERROR_ZERO_RETURN);
  }

  bool WantsMore(int result) const {
    return SSL_get_error(ssl_.get(), result) == SSL_ERROR_WANT_READ;
  }

  // --- out --------------------------------------------------------------------------------------

  void WriteSome() {
    if (sealed_.empty()) {
      of_write_ = Seal(output_.view());
      TakeSealed();
    }
    if (sealed_.empty()) {  // broken; reported asynchronously, as for a socket
      return boost::asio::post(socket().get_executor(),
                               InSlot(write_slot_, [this] { connection().OnWriteFailed(); }));
    }
    writing_ = true;
    SendSome(sealed_.view(), [this](const Error& error, size_t n) {
      writing_ = false;
      if (error) return connection().OnWriteFailed();
      sealed_.Consume(n);
      if (!sealed_.empty()) return WriteSome();
      const size_t gone = std::exchange(of_write_, 0);
      output_.Consume(gone);
      if (!output_.empty()) WriteSome();
      connection().OnWritten(gone);  // last, because it may destroy this
    });
  }

  // Encrypts the front of `bytes`. Returns the number of bytes; 0: the connection is broken.
  size_t Seal(std::string_view bytes) {
    ERR_clear_error();
    size_t n = 0;
    const size_t wanted = std::min(bytes.size(), kSealedAtOnce);
    return SSL_write_ex(ssl_.get(), bytes.data(), wanted, &n) == 1 ? n : 0;
  }

  // Moves OpenSSL's output to `sealed_`. Not while a write from `sealed_` is in progress.
  void TakeSealed() {
    char* bytes = nullptr;
    const auto size = BIO_get_mem_data(from_ssl_, &bytes);
    if (size <= 0) return;
    sealed_.Append(bytes, static_cast<size_t>(size));
    BIO_reset(from_ssl_);
  }

  // Sends as much as possible without waiting.
  void SendSealed() {
    TakeSealed();
    if (!sealed_.empty()) sealed_.Consume(SendNow(sealed_.view()));
  }

  // Sends what OpenSSL outputs while it reads. False if too much is waiting for the peer.
  bool SendAsides() {
    if (BIO_pending(from_ssl_) == 0) return true;
    if (!writing_) SendSealed();
    return sealed_.size() + static_cast<size_t>(BIO_pending(from_ssl_)) <=
           kAsidesMax + 2 * kSealedAtOnce;
  }

  static size_t MemoryOf(BIO* bytes) {
    BUF_MEM* memory = nullptr;
    BIO_get_mem_ptr(bytes, &memory);
    return memory->max;
  }
  static bool IsGrownInVain(BIO* bytes) { return BIO_pending(bytes) == 0 && MemoryOf(bytes) != 0; }

  std::unique_ptr<SSL_CTX, FreeContext> context_;
  std::unique_ptr<SSL, FreeSsl> ssl_;  // null until a ClientHello is complete
  BIO* to_ssl_ = nullptr;              // received bytes; like the next, owned by ssl_
  BIO* from_ssl_ = nullptr;            // bytes to be sent
  bool agreed_ = false;
  bool gated_ = true;     // messages in the clear may come; OpenSSL gets only complete ones
  bool more_ = false;     // OpenSSL can return more without new input: there was no room
  bool writing_ = false;  // a write is in progress
  InBuffer came_;
  OutBuffer sealed_;     // being sent; the bytes before encryption are still in the write's buffer
  size_t of_write_ = 0;  // how many of those bytes it encrypts
};

}  // namespace

std::unique_ptr<Wire> MakeTlsWire(StreamSocket socket, ssl_ctx_st* context) {
  return std::make_unique<TlsWire>(std::move(socket), context);
}

}  // namespace firn::front
