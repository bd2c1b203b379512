/* attach_spin.h - holds known values in every register a thread has, spins, and counts what came out different. */
#ifndef TESTS_PUPPETS_ATTACH_SPIN_H_
#define TESTS_PUPPETS_ATTACH_SPIN_H_

#include <stdint.h>

/* Returns the number of differences: general registers, carry flag, red zone, MXCSR, x87, and XMM or ZMM with mask registers. */
long spin_and_compare(uint64_t seed, long spins);

/* The two instructions that spin: dec %rcx (3 bytes), jnz (2 bytes). */
extern char spin_loop_start[], spin_loop_end[];

/* 0: AMX tiles could not be made live on this machine. */
int make_tiles_live(void);
/* Differences in the live tile since then. */
int compare_tiles(void);

#endif
