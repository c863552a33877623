#include "tests/bench/load_client.h"

#include <cerrno>
#include <cstring>
#include <memory>

#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

namespace firn {
namespace {

constexpr size_t kReadBytes = 256 * 1024;
constexpr int kEventsMax = 256;

Status Failed(const char* call) { return Unavailable(std::string(call) + ": " + strerror(errno)); }

// A descriptor that its owner closes on destruction.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }

  int get() const { return fd_; }

 private:
  const int fd_;
};

// The requests in flight on one connection: when each batch of them was sent, oldest first.
struct Lane {
  Lane(LoadLink dialled, size_t depth) : link(std::move(dialled)), batches(depth + 1) {}

  struct Batch {
    int64_t sent_ns;
    uint32_t left;
  };

  LoadLink link;
  bool agreed = true;          // false: the handshake is in progress, and the request must be sent
                               // afterwards
  std::vector<Batch> batches;  // a ring
  size_t oldest = 0, next = 0;
  std::string half;  // the beginning of an incomplete answer
};

class Load {
 public:
  Load(const LoadPlan& plan, const Dialect& dialect, int64_t (*now_ns)())
      : plan_(plan), dialect_(dialect), now_ns_(now_ns), input_(kReadBytes) {
    for (int i = 0; i < plan.depth; ++i) requests_ += dialect.request();
  }

  Status Connect();
  Result<LoadReport> Run();

 private:
  Result<LoadLink> Dial() const;
  Status Greet(LoadLink& link) const;
  Status Join(Lane& lane) const;
  Status Send(Lane& lane, size_t count, int64_t now);
  // Sends `count` new requests, on the same connection or on a new one.
  Status GoOn(Lane& lane, size_t count, int64_t now);
  Status Reconnect(Lane& lane, int64_t now);
  Status OnNews(Lane& lane);
  Status Receive(Lane& lane);
  // Removes the complete answers from the front of `bytes`; returns how many there were.
  Result<size_t> Take(Lane& lane, std::string_view& bytes, int64_t now);
  void Count(Lane& lane, const Dialect::Answer& answer, int64_t now);

  const LoadPlan& plan_;
  const Dialect& dialect_;
  int64_t (*const now_ns_)();
  LoadTlsContext tls_;  // null: plain
  Descriptor epoll_{epoll_create1(EPOLL_CLOEXEC)};
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::string requests_;  // `depth` equal requests, of which any number is a prefix
  std::vector<char> input_;
  int64_t measure_from_ns_ = 0, measure_to_ns_ = 0;
  uint64_t in_flight_ = 0;
  LoadReport report_;
};

Result<LoadLink> Load::Dial() const {
  return LoadLink::Dial(plan_.host, plan_.port, tls_.get(), plan_.tls.value_or(LoadTls()));
}

// Sends hello() and waits for its answer: nothing else is in flight on a new connection.
Status Load::Greet(LoadLink& link) const {
  FIRN_TRY(link.AgreeWithin(plan_.patience_ms));
  const std::string& hello = dialect_.hello();
  if (hello.empty()) return {};
  FIRN_TRY(link.Send(hello));
  std::string heard;
  bool more = false;
  while (heard.size() < kReadBytes) {
    pollfd readable{link.fd(), POLLIN, 0};
    if (!more && poll(&readable, 1, static_cast<int>(plan_.patience_ms)) <= 0) {
      return Unavailable("no answer to the greeting");
    }
    char bytes[4096];
    FIRN_ASSIGN(const size_t got, link.Receive(bytes, sizeof bytes));
    heard.append(bytes, got);
    more = got != 0 && link.HasMore();
    const Dialect::Answer answer = dialect_.ReadHello(heard);
    if (answer.refused || answer.broken) return Unavailable("the server refused the greeting");
    if (answer.length == heard.size()) return {};
  }
  return Corrupt("the answer to the greeting has no end");
}

Status Load::Join(Lane& lane) const {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = &lane;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, lane.link.fd(), &event) == 0) return {};
  return Failed("epoll_ctl");
}

Status Load::Connect() {
  if (plan_.tls) {
    FIRN_ASSIGN(tls_, MakeLoadTlsContext(*plan_.tls));
  }
  for (int i = 0; i < plan_.connections; ++i) {
    FIRN_ASSIGN(auto link, Dial());
    FIRN_TRY(Greet(link));
    lanes_.push_back(std::make_unique<Lane>(std::move(link), static_cast<size_t>(plan_.depth)));
    FIRN_TRY(Join(*lanes_.back()));
  }
  return {};
}

Status Load::Send(Lane& lane, size_t count, int64_t now) {
  FIRN_TRY(lane.link.Send({requests_.data(), count * dialect_.request().size()}));
  lane.batches[lane.next] = {now, static_cast<uint32_t>(count)};
  lane.next = (lane.next + 1) % lane.batches.size();
  in_flight_ += count;
  return {};
}

Status Load::GoOn(Lane& lane, size_t count, int64_t now) {
  return plan_.dial_anew ? Reconnect(lane, now) : Send(lane, count, now);
}

// With TLS, the request counts as in flight while the handshake is in progress.
Status Load::Reconnect(Lane& lane, int64_t now) {
  lane.link.EndAbruptly();
  FIRN_ASSIGN(lane.link, Dial());
  FIRN_TRY(Join(lane));
  if (!tls_) return Send(lane, 1, now);
  lane.batches[lane.next] = {now, 1};
  lane.next = (lane.next + 1) % lane.batches.size();
  ++in_flight_;
  lane.agreed = false;
  return OnNews(lane);
}

Status Load::OnNews(Lane& lane) {
  if (lane.agreed) return Receive(lane);
  FIRN_ASSIGN(lane.agreed, lane.link.Agree());
  return lane.agreed ? lane.link.Send(dialect_.request()) : Status();
}

void Load::Count(Lane& lane, const Dialect::Answer& answer, int64_t now) {
  Lane::Batch& batch = lane.batches[lane.oldest];
  const int64_t took_ns = now - batch.sent_ns;
  if (--batch.left == 0) lane.oldest = (lane.oldest + 1) % lane.batches.size();
  --in_flight_;
  if (plan_.keep_ids && !answer.refused) report_.ids.push_back(answer.id);
  if (now < measure_from_ns_ || now >= measure_to_ns_) return;
  ++report_.answers;
  report_.refused += answer.refused ? 1U : 0U;
  report_.latency.Record(took_ns);
}

Result<size_t> Load::Take(Lane& lane, std::string_view& bytes, int64_t now) {
  size_t count = 0;
  while (!bytes.empty()) {
    const Dialect::Answer answer = dialect_.Read(bytes);
    if (answer.broken) return Corrupt("the server sent something that is not an answer");
    if (answer.length == 0) break;
    if (lane.oldest == lane.next) return Corrupt("more answers than requests");
    Count(lane, answer, now);
    bytes.remove_prefix(answer.length);
    ++count;
  }
  return count;
}

Status Load::Receive(Lane& lane) {
  size_t count = 0;
  int64_t now = 0;
  for (bool more = true; more;) {
    const size_t kept = lane.half.size();
    if (kept + 1 > input_.size()) return Corrupt("an answer is larger than the read buffer");
    std::memcpy(input_.data(), lane.half.data(), kept);
    FIRN_ASSIGN(const size_t got, lane.link.Receive(input_.data() + kept, input_.size() - kept));
    std::string_view bytes(input_.data(), kept + got);
    now = now_ns_();
    FIRN_ASSIGN(const size_t taken, Take(lane, bytes, now));
    lane.half.assign(bytes);
    count += taken;
    more = got != 0 && lane.link.HasMore();
  }
  if (count == 0 || now >= measure_to_ns_) return {};
  return GoOn(lane, count, now);
}

Result<LoadReport> Load::Run() {
  const int64_t start = now_ns_();
  measure_from_ns_ = start + plan_.warmup_ms * 1'000'000;
  measure_to_ns_ = measure_from_ns_ + plan_.measure_ms * 1'000'000;
  for (auto& lane : lanes_) FIRN_TRY(Send(*lane, static_cast<size_t>(plan_.depth), start));
  while (in_flight_ > 0) {
    epoll_event events[kEventsMax];
    const int n = epoll_wait(epoll_.get(), events, kEventsMax, static_cast<int>(plan_.patience_ms));
    if (n < 0 && errno != EINTR) return Failed("epoll_wait");
    if (n == 0) return Unavailable("no answer within the plan's patience");
    for (int i = 0; i < n; ++i) FIRN_TRY(OnNews(*static_cast<Lane*>(events[i].data.ptr)));
  }
  report_.seconds = static_cast<double>(plan_.measure_ms) / 1000.0;
  return std::move(report_);
}

}  // namespace

Result<LoadReport> RunLoad(const LoadPlan& plan, const Dialect& dialect, int64_t (*now_ns)()) {
  if (plan.connections < 1 || plan.connections > 60'000 || plan.depth < 1 || plan.depth > 4096) {
    return Invalid("connections must be 1 to 60000, and depth 1 to 4096");
  }
  if (plan.dial_anew && (plan.depth != 1 || !dialect.hello().empty())) {
    return Invalid("a new connection has one request, and no greeting");
  }
  Load load(plan, dialect, now_ns);
  FIRN_TRY(load.Connect());
  return load.Run();
}

}  // namespace firn
