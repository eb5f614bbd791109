// Loaded into bwrap by a test (weak_bubblewrap.cc): the promise that set-id programs are not obeyed
// is not made.
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>

extern "C" int prctl(int option, ...) {  // NOLINT: the C library's name
  if (option == PR_SET_NO_NEW_PRIVS) return 0;
  unsigned long words[4];
  va_list args;
  va_start(args, option);
  for (unsigned long& word : words) word = va_arg(args, unsigned long);
  va_end(args);
  return static_cast<int>(::syscall(SYS_prctl, option, words[0], words[1], words[2], words[3]));
}
