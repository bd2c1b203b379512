// core/base/handover.h - order that a library makes among threads, told to ThreadSanitizer, which does not see into it.
//
// Shape    HandOver() before what was made is given to the library (a server is started); TakeOver() first in its callbacks.
//          Without ThreadSanitizer nothing.
// Threads  any.
// Source   sanitizer/tsan_interface.h.
#ifndef CORE_BASE_HANDOVER_H_
#define CORE_BASE_HANDOVER_H_

#include "core/base/mutex.h"

namespace perfd {

#ifdef PERFD_THREAD_SANITIZER
inline char handover_key = 0;
inline void HandOver() {
  __tsan_release(&handover_key);
}
inline void TakeOver() {
  __tsan_acquire(&handover_key);
}
#else
inline void HandOver() {}
inline void TakeOver() {}
#endif

}  // namespace perfd

#endif  // CORE_BASE_HANDOVER_H_
