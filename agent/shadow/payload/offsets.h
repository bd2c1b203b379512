// agent/shadow/payload/offsets.h - offsets that the assembly of the payload shares with its C++; block_state.h asserts them.
//
// Source   BlockState (agent/shadow/payload/block_state.h), SavedRegisters (agent/shadow/protocol.h).
#ifndef AGENT_SHADOW_PAYLOAD_OFFSETS_H_
#define AGENT_SHADOW_PAYLOAD_OFFSETS_H_

#define BLOCK_SELF 0x40
#define BLOCK_STACK_POINTER 0x48
#define BLOCK_TARGET 0x50
#define BLOCK_START 0x58
#define BLOCK_END 0x60
#define BLOCK_END_CPU 0x68
#define BLOCK_XSAVE_MASK 0x70
#define BLOCK_REGISTERS 0x80
#define BLOCK_LEFT 0x110
#define BLOCK_XSAVE 0x10000
#define BLOCK_STACK_TOP 0x20000

#endif  // AGENT_SHADOW_PAYLOAD_OFFSETS_H_
