#pragma once

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

namespace firn {

// What `child` returns in a child of this process; -1: it died.
template <typename Child>
int InChild(Child child) {
  const pid_t pid = fork();
  if (pid == 0) _exit(child());
  int ending = 0;
  if (waitpid(pid, &ending, 0) != pid || !WIFEXITED(ending)) return -1;
  return WEXITSTATUS(ending);
}

}  // namespace firn
