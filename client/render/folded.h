// client/render/folded.h - folded stacks, the input of flame graph programs: "rank 0;main;foo 12000".
//
// Shape    with call paths: one line per path. Without: "module;function;loop@file:line 12000" per place.
// Units    microseconds of CPU time, at least 1: samples of different nodes stand for different times.
#ifndef CLIENT_RENDER_FOLDED_H_
#define CLIENT_RENDER_FOLDED_H_

#include <string>
#include <vector>

#include "core/model/report.h"

namespace perfd::client {

// The frames of a place without call paths, outermost first: module, function, loop.
std::vector<std::string> LocateFrames(const ReportRow& row);

std::string RenderFolded(const Report& report);

}  // namespace perfd::client

#endif  // CLIENT_RENDER_FOLDED_H_
