// agent/app/reader_source.h - reader processes as the pipeline sees them, and where the agent's other programs are.
#ifndef AGENT_APP_READER_SOURCE_H_
#define AGENT_APP_READER_SOURCE_H_

#include <string>

#include "agent/pipeline/code_index.h"
#include "agent/reader/reader_client.h"

namespace perfd::agent {

inline constexpr char kReaderName[] = "perf-agent-reader";

OpenCodeSource ReaderOpener(const ReaderOptions& options);

std::string BesideThisProgram(const char* name);

}  // namespace perfd::agent

#endif  // AGENT_APP_READER_SOURCE_H_
