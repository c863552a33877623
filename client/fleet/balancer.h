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

// Picks one of several servers by its index. It is built for fixed weights and immutable, so it is
// thread-safe without a lock. A pick takes constant time, unless most of the servers may not be
// picked.
class Balancer {
 public:
  static constexpr size_t kNone = Lots::kNone;

  // The servers' properties that a pick uses.
  class Servers {
   public:
    virtual bool MayPick(size_t at) const = 0;
    virtual double LatencyUs(size_t at) const = 0;  // 0: not known yet
    virtual int InFlight(size_t at) const = 0;

   protected:
    ~Servers() = default;
  };

  virtual ~Balancer() = default;

  // Returns the index of a server that may be picked, or kNone.
  virtual size_t Pick(const Servers& servers, Entropy& entropy) const = 0;
};

//   p2c          Two are drawn by weight. The second takes the call if it is clearly less loaded:
//                its latency x (1 + calls in flight, over its share of the weight) is below two
//                thirds of the first one's. A smaller difference is noise, and the draw decides.
//                Idle servers thus get calls by weight, and busy ones get fewer.
//   round robin  Smooth: with weights 5, 1, 1 the turns are a a b a c a a, never five in a row.
//   random       By weight.
//   sticky       The first that may be picked.
//
// The weights are above 0. `turn` is the counter of round robin: it outlives the balancers and
// continues when one replaces another.
std::unique_ptr<const Balancer> MakeBalancer(Balancing kind, std::span<const int64_t> weights,
                                             std::atomic<uint64_t>& turn);

}  // namespace firn::client
