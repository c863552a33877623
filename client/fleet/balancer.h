#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "client/client_options.h"
#include "common/time/entropy.h"

namespace firn::client {

// One server that may be picked.
struct Load {
  uint64_t server;    // the same number for the same server, for as long as it is known
  double weight;      // above 0
  double latency_us;  // 0: not known yet
  int in_flight;
};

// Picks a server. Thread-compatible; remembers what it must between picks, and nothing about
// servers that are not offered any more that could matter when they come back.
class Balancer {
 public:
  virtual ~Balancer() = default;

  // An index into `from`, which is not empty.
  virtual size_t Pick(std::span<const Load> from, Entropy& entropy) = 0;
};

//   p2c          Two are drawn by weight. The second takes the call if it is clearly less loaded:
//                its latency x (1 + calls in flight, over its share of the weight) is below two
//                thirds of the first one's. Anything nearer is noise, and the draw decides: so idle
//                servers are asked as their weights say, and busy ones are relieved.
//   round robin  Smooth: with weights 5, 1, 1 the turns are a a b a c a a, never five in a row.
//   random       By weight.
//   sticky       The one of the last time while it is offered, otherwise one by weight.
std::unique_ptr<Balancer> MakeBalancer(Balancing kind);

}  // namespace firn::client
