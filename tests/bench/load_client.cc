#include "tests/bench/load_client.h"

#include <cerrno>
#include <cstring>
#include <memory>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace firn {
namespace {

constexpr size_t kReadBytes = 256 * 1024;
constexpr int kEventsMax = 256;

Status Failed(const char* call) { return Unavailable(std::string(call) + ": " + strerror(errno)); }

// A descriptor that is closed with its owner.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }

  int get() const { return fd_; }

 private:
  int fd_;
};

// One connection's requests in flight: when each batch of them was sent, oldest first.
struct Lane {
  explicit Lane(Descriptor socket, size_t depth) : fd(std::move(socket)), batches(depth + 1) {}

  struct Batch {
    int64_t sent_ns;
    uint32_t left;
  };

  Descriptor fd;
  std::vector<Batch> batches;  // a ring
  size_t oldest = 0, next = 0;
  std::string half;  // an answer of which only the beginning has arrived
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
  Result<Descriptor> Dial() const;
  Status Greet(int fd) const;
  Status Send(Lane& lane, size_t count, int64_t now);
  Status Receive(Lane& lane);
  // Takes the whole answers off the front of `bytes`; returns how many there were.
  Result<size_t> Take(Lane& lane, std::string_view& bytes, int64_t now);
  void Count(Lane& lane, const Dialect::Answer& answer, int64_t now);

  const LoadPlan& plan_;
  const Dialect& dialect_;
  int64_t (*const now_ns_)();
  Descriptor epoll_{epoll_create1(EPOLL_CLOEXEC)};
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::string requests_;  // `depth` of them in a row: any number is a prefix
  std::vector<char> input_;
  int64_t measure_from_ns_ = 0, measure_to_ns_ = 0;
  uint64_t in_flight_ = 0;
  LoadReport report_;
};

Result<Descriptor> Load::Dial() const {
  Descriptor fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) return Failed("socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(plan_.port);
  if (inet_pton(AF_INET, plan_.host.c_str(), &address.sin_addr) != 1) {
    return Invalid("not an IPv4 address: " + plan_.host);
  }
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return Failed("connect");
  }
  const int on = 1;
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

// Says hello, and waits for the answer: nothing else is under way on a new connection.
Status Load::Greet(int fd) const {
  const std::string& hello = dialect_.hello();
  if (hello.empty()) return {};
  if (send(fd, hello.data(), hello.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(hello.size())) {
    return Failed("send");
  }
  std::string heard;
  while (heard.size() < kReadBytes) {
    pollfd readable{fd, POLLIN, 0};
    if (poll(&readable, 1, static_cast<int>(plan_.patience_ms)) <= 0) {
      return Unavailable("no answer to the greeting");
    }
    char bytes[4096];
    const ssize_t got = recv(fd, bytes, sizeof bytes, 0);
    if (got <= 0) return Unavailable("the server closed the connection at the greeting");
    heard.append(bytes, static_cast<size_t>(got));
    const Dialect::Answer answer = dialect_.ReadHello(heard);
    if (answer.refused || answer.broken) return Unavailable("the server refused the greeting");
    if (answer.length == heard.size()) return {};
  }
  return Corrupt("the answer to the greeting has no end");
}

Status Load::Connect() {
  for (int i = 0; i < plan_.connections; ++i) {
    FIRN_ASSIGN(auto fd, Dial());
    FIRN_TRY(Greet(fd.get()));
    auto lane = std::make_unique<Lane>(std::move(fd), static_cast<size_t>(plan_.depth));
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = lane.get();
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, lane->fd.get(), &event) != 0) {
      return Failed("epoll_ctl");
    }
    lanes_.push_back(std::move(lane));
  }
  return {};
}

Status Load::Send(Lane& lane, size_t count, int64_t now) {
  const size_t bytes = count * dialect_.request().size();
  // A blocking send: what is in flight is bounded by depth, so it fits the socket's buffers unless
  // the server has stopped reading, which the patience of nobody can mend.
  if (send(lane.fd.get(), requests_.data(), bytes, MSG_NOSIGNAL) != static_cast<ssize_t>(bytes)) {
    return Failed("send");
  }
  lane.batches[lane.next] = {now, static_cast<uint32_t>(count)};
  lane.next = (lane.next + 1) % lane.batches.size();
  in_flight_ += count;
  return {};
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
  const size_t kept = lane.half.size();
  if (kept + 1 > input_.size()) return Corrupt("an answer is larger than the read buffer");
  std::memcpy(input_.data(), lane.half.data(), kept);
  const ssize_t got = recv(lane.fd.get(), input_.data() + kept, input_.size() - kept, 0);
  if (got < 0) return Failed("recv");
  if (got == 0) return Unavailable("the server closed the connection");
  std::string_view bytes(input_.data(), kept + static_cast<size_t>(got));
  const int64_t now = now_ns_();
  FIRN_ASSIGN(const size_t count, Take(lane, bytes, now));
  lane.half.assign(bytes);
  if (count == 0 || now >= measure_to_ns_) return {};
  return Send(lane, count, now);
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
    for (int i = 0; i < n; ++i) FIRN_TRY(Receive(*static_cast<Lane*>(events[i].data.ptr)));
  }
  report_.seconds = static_cast<double>(plan_.measure_ms) / 1000.0;
  return std::move(report_);
}

}  // namespace

Result<LoadReport> RunLoad(const LoadPlan& plan, const Dialect& dialect, int64_t (*now_ns)()) {
  if (plan.connections < 1 || plan.connections > 60'000 || plan.depth < 1 || plan.depth > 4096) {
    return Invalid("connections must be 1 to 60000, and depth 1 to 4096");
  }
  Load load(plan, dialect, now_ns);
  FIRN_TRY(load.Connect());
  return load.Run();
}

}  // namespace firn
