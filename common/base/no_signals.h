#pragma once

#include <csignal>
#include <thread>
#include <utility>

namespace firn {

// While this object lives, new threads receive no signals of the process, which the program's own
// threads may rely on. Exceptions are signals that a thread causes itself, and a profiler's signal.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF}) {
      sigdelset(&all, own);
    }
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_;
};

template <typename Work>
std::thread ThreadWithoutSignals(Work&& work) {
  const NoSignals for_the_thread;
  return std::thread(std::forward<Work>(work));
}

}  // namespace firn
