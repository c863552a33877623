#include <cerrno>

#include <sys/random.h>

#include "common/entropy.h"
#include "common/status.h"

namespace firn {
namespace {

class KernelEntropy final : public Entropy {
 public:
  uint64_t Next() override {
    uint64_t bits = 0;
    while (getrandom(&bits, sizeof bits, 0) != static_cast<ssize_t>(sizeof bits)) {
      if (errno != EINTR) Die("the kernel gives no random numbers");
    }
    return bits;
  }
};

}  // namespace

Entropy& SystemEntropy() {
  static KernelEntropy entropy;
  return entropy;
}

}  // namespace firn
