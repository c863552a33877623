// firn-stock-thrift: Thrift's own servers in front of the handler that the front uses, for
// comparison. `--kind=nonblocking` is TNonblockingServer with one IO thread, `--kind=threaded` is
// TThreadedServer with framed transports.

#include <cstdio>
#include <memory>

#include <gflags/gflags.h>
#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/server/TNonblockingServer.h>
#include <thrift/server/TThreadedServer.h>
#include <thrift/transport/TBufferTransports.h>
#include <thrift/transport/TNonblockingServerSocket.h>
#include <thrift/transport/TServerSocket.h>

#include "server/front/thrift/thrift_service.h"
#include "tests/bench/bench_server.h"

DEFINE_string(kind, "nonblocking", "nonblocking or threaded");
DEFINE_int32(port, 0, "loopback port");

namespace {

using namespace apache::thrift;  // NOLINT: of the server's many parts

// Calls are never parked here: a call that waits blocks its thread.
class Service final {
 public:
  explicit Service(firn::front::BenchServer& server) : service_(server.backend(), counters_) {
    service_.Begin(door_, waiting_);
  }

  std::shared_ptr<TProcessor> Processor() {
    std::shared_ptr<firn::wire::IdServiceIf> borrowed(std::shared_ptr<void>(), &service_);
    return std::make_shared<
        firn::wire::IdServiceProcessorT<protocol::TBinaryProtocolT<transport::TBufferBase>>>(
        borrowed);
  }

 private:
  firn::front::DeskCounters counters_;
  firn::front::DoorCall door_{.last = true};
  firn::front::ThriftWaiting waiting_;
  firn::front::ThriftService service_;
};

}  // namespace

int main(int argc, char** argv) {
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  firn::front::BenchServer issuing;
  Service service(issuing);
  auto coding = std::make_shared<protocol::TBinaryProtocolFactoryT<transport::TBufferBase>>();
  std::printf("listening on %d\n", FLAGS_port);
  std::fflush(stdout);
  if (FLAGS_kind == "threaded") {
    server::TThreadedServer(service.Processor(),
                            std::make_shared<transport::TServerSocket>("127.0.0.1", FLAGS_port),
                            std::make_shared<transport::TFramedTransportFactory>(), coding)
        .serve();
  } else {
    server::TNonblockingServer(
        service.Processor(), coding,
        std::make_shared<transport::TNonblockingServerSocket>("127.0.0.1", FLAGS_port))
        .serve();
  }
}
