#include "server/front/net/plain_wire.h"

#include <utility>

#include "server/front/net/asio_wire.h"

namespace firn::front {
namespace {

class PlainWire final : public AsioWire {
 public:
  explicit PlainWire(StreamSocket accepted) : AsioWire(std::move(accepted)) {}

  void Read(InBuffer&& input) override {
    input_ = std::move(input);
    ReceiveInto(input_, [this](const Error& error, size_t n) {
      if (error) return connection().OnReadFailed(error == boost::asio::error::eof);
      input_.Filled(n);
      connection().OnRead(n, std::move(input_));
    });
  }

  size_t WriteNow(std::string_view bytes) override { return SendNow(bytes); }

  void Write(OutBuffer& bytes) override {
    std::swap(output_, bytes);
    WriteSome();
  }

  size_t memory() const override { return input_.memory() + output_.memory(); }
  void Relax() override {
    RelaxRead(input_);
    output_.Relax();
  }

 private:
  void WriteSome() {
    SendSome(output_.view(), [this](const Error& error, size_t n) {
      if (error) return connection().OnWriteFailed();
      output_.Consume(n);
      if (!output_.empty()) WriteSome();
      connection().OnWritten(n);  // last, because it may destroy this
    });
  }
};

}  // namespace

std::unique_ptr<Wire> MakePlainWire(StreamSocket socket) {
  return std::make_unique<PlainWire>(std::move(socket));
}

}  // namespace firn::front
