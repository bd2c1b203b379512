// client/render/notices/notice_text.h - what a notice says, as a sentence.
//
// Shape    of typed notices made here, in this client's words; of all others the text that came with them.
#ifndef CLIENT_RENDER_NOTICES_NOTICE_TEXT_H_
#define CLIENT_RENDER_NOTICES_NOTICE_TEXT_H_

#include <string>

#include "core/model/profile.h"

namespace perfd::client {

// Not cleaned: names are foreign.
std::string NoticeText(const Notice& notice);

// The text says already which process it is about.
bool NamesProcess(const Notice& notice);

}  // namespace perfd::client

#endif  // CLIENT_RENDER_NOTICES_NOTICE_TEXT_H_
