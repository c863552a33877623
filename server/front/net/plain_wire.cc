#include "server/front/net/plain_wire.h"

#include <utility>

#include "server/front/net/asio_wire.h"

namespace firn::front {
namespace {

class PlainWire final : public AsioWire<TcpSocket> {
 public:
  explicit PlainWire(TcpSocket accepted) : AsioWire(std::move(accepted)) {
    Error ignored;  // without it, it is slower and not wrong
    socket().non_blocking(true, ignored);
  }

  size_t WriteNow(std::string_view bytes) override {
    Error error;
    const size_t n = socket().write_some(boost::asio::buffer(bytes.data(), bytes.size()), error);
    return error ? 0 : n;
  }
};

}  // namespace

std::unique_ptr<Wire> MakePlainWire(TcpSocket socket) {
  return std::make_unique<PlainWire>(std::move(socket));
}

}  // namespace firn::front
