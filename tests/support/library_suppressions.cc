// What libraries do wrong, or seem to, told to the sanitizers. Debian's ZooKeeper client does not
// free what belongs to the multis that are unanswered when a handle is closed, and all its handles'
// threads write the text of an address into one buffer. glog asks for the time zone with each line;
// the lock that guards it inside libc is one that the thread sanitizer does not see.
extern "C" {

const char* __lsan_default_suppressions();  // NOLINT: the sanitizer's name
const char* __tsan_default_suppressions();  // NOLINT: the sanitizer's name

const char* __lsan_default_suppressions() { return "leak:libzookeeper_mt\n"; }
const char* __tsan_default_suppressions() { return "race:libzookeeper_mt\nrace:CalcGmtOffset\n"; }
}
