#include "tests/bench/bare_pipeline.h"

#include <string_view>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/status.h"

namespace firn {

int ConnectedSocket(uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    Die("nothing accepts connections on the port");
  }
  return fd;
}

BarePipeline::BarePipeline(uint16_t port, const Dialect& dialect)
    : dialect_(dialect),
      socket_(ConnectedSocket(port)),
      wake_(eventfd(0, EFD_CLOEXEC)),
      thread_([this] { Run(); }) {}

BarePipeline::~BarePipeline() {
  stop_ = true;
  Wake();
  thread_.join();
  close(socket_);
  close(wake_);
}

bool BarePipeline::Call() {
  Waiting mine{client::Bells::Join(bells_)};
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = new_.empty();
    new_.push_back(&mine);
  }
  if (first) Wake();
  while (true) {
    const uint32_t seen = mine.bell->rings();
    const State state = mine.state.load(std::memory_order_acquire);
    if (state != State::kWaiting) return state == State::kAnswered;
    mine.bell->Await(seen);
  }
}

void BarePipeline::Wake() const {
  const uint64_t one = 1;
  if (write(wake_, &one, sizeof one) != sizeof one) Die("the bare pipeline cannot wake its thread");
}

void BarePipeline::Run() {
  while (!stop_) {
    pollfd ready[] = {{socket_, POLLIN, 0}, {wake_, POLLIN, 0}};
    poll(ready, 2, -1);
    if (ready[0].revents != 0) TakeAnswers();
    bells_->RingAll();
    if (ready[1].revents != 0) SendRequests();
  }
}

void BarePipeline::TakeAnswers() {
  char buffer[16'384];
  const ssize_t got = recv(socket_, buffer, sizeof buffer, 0);
  if (got <= 0) Die("the bare pipeline has lost its connection");
  in_.append(buffer, static_cast<size_t>(got));
  size_t at = 0;
  while (!sent_.empty()) {
    const Dialect::Answer answer = dialect_.Read(std::string_view(in_).substr(at));
    if (answer.broken) Die("the bare pipeline has received an invalid answer");
    if (answer.length == 0) break;
    at += answer.length;
    Waiting& ended = *sent_.front();
    sent_.pop_front();
    bells_->RingLater(*ended.bell);
    // `ended` must not be used afterwards: its caller may return.
    ended.state.store(answer.refused ? State::kRefused : State::kAnswered,
                      std::memory_order_release);
  }
  in_.erase(0, at);
}

void BarePipeline::SendRequests() {
  uint64_t wakes = 0;
  if (read(wake_, &wakes, sizeof wakes) != sizeof wakes) Die("the bare pipeline cannot read");
  {
    const std::lock_guard lock(mutex_);
    to_send_.swap(new_);
    bells_->UseNext();
  }
  out_.clear();
  for (Waiting* const one : to_send_) {
    out_ += dialect_.request();
    sent_.push_back(one);
  }
  to_send_.clear();
  if (send(socket_, out_.data(), out_.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(out_.size())) {
    Die("the bare pipeline cannot send");
  }
}

}  // namespace firn
