#pragma once

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

namespace firn {

// Runs `child` in a forked child, and returns its result; -1: it died.
template <typename Child>
int InChild(Child child) {
  const pid_t pid = fork();
  if (pid == 0) _exit(child());
  int ending = 0;
  if (waitpid(pid, &ending, 0) != pid || !WIFEXITED(ending)) return -1;
  return WEXITSTATUS(ending);
}

}  // namespace firn
