#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "client/client_options.h"
#include "client/fleet/lots.h"
#include "common/time/entropy.h"

namespace firn::client {

// Picks one of several servers, which it knows by their places, 0 and up. It is made for their
// weights and never changes, so it is thread-safe; it takes no lock, and constant time unless most
// of the servers may not be picked.
class Balancer {
 public:
  static constexpr size_t kNone = Lots::kNone;

  // What it asks of the servers while it picks.
  class Servers {
   public:
    virtual bool MayPick(size_t at) const = 0;
    virtual double LatencyUs(size_t at) const = 0;  // 0: not known yet
    virtual int InFlight(size_t at) const = 0;

   protected:
    ~Servers() = default;
  };

  virtual ~Balancer() = default;

  // The place of one that may be picked; kNone when there is none.
  virtual size_t Pick(const Servers& servers, Entropy& entropy) const = 0;
};

//   p2c          Two are drawn by weight. The second takes the call if it is clearly less loaded:
//                its latency x (1 + calls in flight, over its share of the weight) is below two
//                thirds of the first one's. Anything nearer is noise, and the draw decides: so idle
//                servers are asked as their weights say, and busy ones are relieved.
//   round robin  Smooth: with weights 5, 1, 1 the turns are a a b a c a a, never five in a row.
//   random       By weight.
//   sticky       The first that may be picked.
//
// The weights are above 0. `turn` is whose turn it is, with round robin: it goes on counting while
// one balancer takes the place of another, and outlives them.
std::unique_ptr<const Balancer> MakeBalancer(Balancing kind, std::span<const int64_t> weights,
                                             std::atomic<uint64_t>& turn);

}  // namespace firn::client
