// firn-front-server: the front of firn-server with a claim that is not in a registry, to measure
// the front alone.

#include <csignal>
#include <cstdio>

#include <gflags/gflags.h>

#include "server/front/server_front.h"
#include "tests/bench/bench_server.h"

DEFINE_int32(port, 0, "loopback port; 0 takes a free one; printed when listening");
DEFINE_int32(io_threads, 1, "IO threads");
DEFINE_string(layout, "firn", "layout of the ids");
DEFINE_string(listen_unix, "", "path of a Unix socket to listen on as well; empty: none");
DEFINE_string(tls_cert, "", "certificate chain, PEM; empty: no TLS");
DEFINE_string(tls_key, "", "its private key, PEM");

int main(int argc, char** argv) {
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);

  firn::front::BenchServer issuing(firn::Layout::Parse(FLAGS_layout).value());
  firn::front::ServerFrontOptions options;
  options.listen.port = static_cast<uint16_t>(FLAGS_port);
  options.listen.io_threads = FLAGS_io_threads;
  options.listen.unix_path = FLAGS_listen_unix;
  // All load comes from one address, so the limit per address must not apply.
  options.listen.limits.connections_per_peer_max = options.listen.limits.connections_max;
  options.redis_incr_64bit = true;
  options.dubbo = firn::front::VestaOrder::kTimeFirst;
  if (!FLAGS_tls_cert.empty()) options.listen.tls.emplace(FLAGS_tls_cert, FLAGS_tls_key);
  firn::front::ServerFront front(options, issuing.issuer(), issuing, issuing, firn::SystemClock());
  if (firn::Status started = front.Start(); !started.ok()) {
    return std::fprintf(stderr, "%s\n", started.message().c_str()), 1;
  }
  std::printf("listening on %d\n", front.port());
  std::fflush(stdout);
  int signal = 0;
  sigwait(&ends, &signal);
  front.Shutdown(firn::Milliseconds(1000));
}
