// Answers with many ids: decoded, issued, encoded and sent, compared with sending a copy of equally
// many bytes. The reader's work is not measured.

#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <benchmark/benchmark.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/front/thrift/thrift_protocol.h"
#include "tests/bench/bench_server.h"
#include "tests/server/front/thrift_calls.h"

namespace firn::front {
namespace {

// Both ends of a TCP connection over loopback.
class Connected {
 public:
  Connected() {
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    auto* const generic = reinterpret_cast<sockaddr*>(&at);
    const bool listens = bind(listener, generic, size) == 0 && listen(listener, 1) == 0 &&
                         getsockname(listener, generic, &size) == 0;
    reader_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (!listens || connect(reader_, generic, size) != 0) Die("no connection over loopback");
    writer_ = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    close(listener);
  }
  ~Connected() {
    close(reader_);
    close(writer_);
  }
  Connected(const Connected&) = delete;
  Connected& operator=(const Connected&) = delete;

  // Sends all bytes: the socket's buffers can hold everything between two calls of Drain.
  void Send(std::string_view bytes) const {
    if (send(writer_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) !=
        static_cast<ssize_t>(bytes.size())) {
      Die("an answer does not fit into the socket");
    }
  }
  void Drain(size_t size) {
    while (size > 0) {
      const ssize_t got = recv(reader_, some_.data(), some_.size(), 0);
      if (got <= 0) Die("the connection broke");
      size -= static_cast<size_t>(got);
    }
  }

 private:
  int reader_ = -1, writer_ = -1;
  std::vector<char> some_ = std::vector<char>(256 * 1024);
};

// Measures `make`, which returns the bytes of an answer, and sending them to the kernel.
template <typename Make>
void Measure(benchmark::State& state, int64_t ids, Make make) {
  using Clock = std::chrono::steady_clock;
  Connected connected;
  size_t bytes = 0;
  for (auto _ : state) {
    const auto begin = Clock::now();
    const std::string_view answer = make();
    connected.Send(answer);
    state.SetIterationTime(std::chrono::duration<double>(Clock::now() - begin).count());
    connected.Drain(bytes = answer.size());
  }
  const auto all = static_cast<double>(ids) * static_cast<double>(state.iterations());
  using benchmark::Counter;
  state.counters["bytes_an_id"] = static_cast<double>(bytes) / static_cast<double>(ids);
  state.counters["s_an_id"] = Counter(all, Counter::kIsRate | Counter::kInvert);
}

// Returns a server that has answered `frame`.
class Answerer {
 public:
  explicit Answerer(ThriftCoding coding)
      : protocol_(MakeThriftProtocol(coding, server_.backend(), counters_)) {}

  std::string_view Answer(std::string_view frame) {
    out_.Clear();
    if (protocol_->Serve(frame, door_, out_).kind != ServeStep::Kind::kServed) Die("not served");
    return out_.view();
  }

 private:
  // More ids per millisecond than any benchmark here requests.
  BenchServer server_{Layout::Parse("time:41 machine:1 sequence:21").value()};
  DeskCounters counters_;
  std::unique_ptr<Protocol> protocol_;
  DoorCall door_{.client = {}, .last = true};
  OutBuffer out_;
};

std::string Request(ThriftCoding coding, bool runs, int32_t ids) {
  return ThriftCalls(coding).Frame([&](wire::IdServiceClient& client) {
    runs ? client.send_getRuns("default", ids) : client.send_getIds("default", ids);
  });
}

void Served(benchmark::State& state, ThriftCoding coding, bool runs) {
  const auto ids = static_cast<int32_t>(state.range(0));
  const std::string frame = Request(coding, runs, ids);
  Answerer answerer(coding);
  Measure(state, ids, [&] { return answerer.Answer(frame); });
}

void Copied(benchmark::State& state, ThriftCoding coding, bool runs) {
  const auto ids = static_cast<int32_t>(state.range(0));
  const std::string answer(Answerer(coding).Answer(Request(coding, runs, ids)));
  std::string copy(answer.size(), '\0');
  Measure(state, ids, [&] {
    std::memcpy(copy.data(), answer.data(), answer.size());
    benchmark::DoNotOptimize(copy.data());
    return std::string_view(copy);
  });
}

void GetIds(benchmark::State& state) { Served(state, ThriftCoding::kBinary, false); }
void GetIdsCopied(benchmark::State& state) { Copied(state, ThriftCoding::kBinary, false); }
void GetIdsCompact(benchmark::State& state) { Served(state, ThriftCoding::kCompact, false); }
void GetIdsCompactCopied(benchmark::State& state) { Copied(state, ThriftCoding::kCompact, false); }
void GetRuns(benchmark::State& state) { Served(state, ThriftCoding::kBinary, true); }
void GetRunsCopied(benchmark::State& state) { Copied(state, ThriftCoding::kBinary, true); }

BENCHMARK(GetIds)->Arg(1'000)->Arg(10'000)->UseManualTime();
BENCHMARK(GetIdsCopied)->Arg(1'000)->Arg(10'000)->UseManualTime();
BENCHMARK(GetIdsCompact)->Arg(1'000)->Arg(10'000)->UseManualTime();
BENCHMARK(GetIdsCompactCopied)->Arg(1'000)->Arg(10'000)->UseManualTime();
BENCHMARK(GetRuns)->Arg(10'000)->UseManualTime();
BENCHMARK(GetRunsCopied)->Arg(10'000)->UseManualTime();

}  // namespace
}  // namespace firn::front
