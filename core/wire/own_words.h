// core/wire/own_words.h - tells an error that perfd gives from one that gRPC makes up where no perfd answers.
//
// Shape    perfd sends it as the details of every status; gRPC's own statuses have none. Both may be UNAVAILABLE.
#ifndef CORE_WIRE_OWN_WORDS_H_
#define CORE_WIRE_OWN_WORDS_H_

namespace perfd::wire {

inline constexpr char kOwnWords[] = "perfd";

}  // namespace perfd::wire

#endif  // CORE_WIRE_OWN_WORDS_H_
