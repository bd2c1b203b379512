// client/render/shares.h - percentages that are shown together and must add up.
//
// Source   Largest remainder method (Hamilton).
#ifndef CLIENT_RENDER_SHARES_H_
#define CLIENT_RENDER_SHARES_H_

#include <span>
#include <vector>

namespace perfd::client {

// `shares` in tenths of a percent, rounded so that their sum is exactly 1000 (all 0 when every share is 0).
std::vector<int> RoundToTenths(std::span<const double> shares);

}  // namespace perfd::client

#endif  // CLIENT_RENDER_SHARES_H_
