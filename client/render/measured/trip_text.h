// client/render/measured/trip_text.h - short and long instances of a loop side by side.
//
// Shape    a line per class of trip counts, a column per variant that has figures; empty when there are no classes.
// Units    saturations with the wider half of their 95 % interval; TIME is the class's estimated part of the loop's time:
//          instances are drawn by counting entries, so each class has them as often as the loop has.
// Threads  thread-safe (pure).
#ifndef CLIENT_RENDER_MEASURED_TRIP_TEXT_H_
#define CLIENT_RENDER_MEASURED_TRIP_TEXT_H_

#include <string>
#include <vector>

#include "client/render/text_style.h"
#include "core/model/loop_verdict.h"

namespace perfd::client {

std::string RenderTripClasses(const std::vector<TripClass>& classes,
                              const std::vector<ClassVerdict>& verdicts, const TextStyle& style);

}  // namespace perfd::client

#endif  // CLIENT_RENDER_MEASURED_TRIP_TEXT_H_
