/* attach_spin.c - see attach_spin.h. */
#define _GNU_SOURCE
#include "attach_spin.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t mixed(uint64_t seed, int i) {
  uint64_t x = seed + (uint64_t)(i + 1) * 0x9E3779B97F4A7C15ull;
  x ^= x >> 31;
  x *= 0xBF58476D1CE4E5B9ull;
  return x ^ (x >> 29);
}

/* General registers, carry, red zone at -8, -64, -120 and -128, MXCSR, one x87 value, xmm0, xmm7 and xmm15. */
__attribute__((noinline)) static long general(uint64_t seed, long spins) {
  uint64_t in[16], out[16], differences;
  uint32_t mxcsr_before = 0x1F80 | 0x8040 | (uint32_t)(seed & 3) << 13, mxcsr_after = 0, mxcsr_old;
  double x87_in = (double)(seed & 0xFFFFF) + 0.5, x87_out = 0;
  for (int i = 0; i < 16; i++) in[i] = mixed(seed, i);
  memset(out, 0, sizeof out);
  __asm__ volatile("stmxcsr %0" : "=m"(mxcsr_old));
  __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr_before));
  __asm__ volatile("fldl %0" : : "m"(x87_in));
  __asm__ volatile(
      "lea -0x200(%%rsp),%%rsp\n"
      "movdqu (%[in]),%%xmm0\n movdqu 16(%[in]),%%xmm7\n movdqu 32(%[in]),%%xmm15\n"
      "mov 48(%[in]),%%r8\n mov 56(%[in]),%%r9\n mov 64(%[in]),%%r10\n mov 72(%[in]),%%r11\n"
      "mov 80(%[in]),%%r12\n mov 88(%[in]),%%r13\n mov 96(%[in]),%%r14\n mov 104(%[in]),%%r15\n"
      "mov %%r8,-8(%%rsp)\n mov %%r9,-64(%%rsp)\n mov %%r10,-120(%%rsp)\n mov %%r11,-128(%%rsp)\n"
      "mov %[spins],%%rcx\n stc\n"
      ".globl spin_loop_start\n spin_loop_start: dec %%rcx\n jnz spin_loop_start\n" /* keeps the carry flag */
      ".globl spin_loop_end\n spin_loop_end: mov $0,%%eax\n setnc %%al\n"
      "mov %%rax,%%rcx\n"
      "mov -8(%%rsp),%%rax\n xor %%r8,%%rax\n or %%rax,%%rcx\n"
      "mov -64(%%rsp),%%rax\n xor %%r9,%%rax\n or %%rax,%%rcx\n"
      "mov -120(%%rsp),%%rax\n xor %%r10,%%rax\n or %%rax,%%rcx\n"
      "mov -128(%%rsp),%%rax\n xor %%r11,%%rax\n or %%rax,%%rcx\n"
      "movdqu %%xmm0,(%[out])\n movdqu %%xmm7,16(%[out])\n movdqu %%xmm15,32(%[out])\n"
      "mov %%r8,48(%[out])\n mov %%r9,56(%[out])\n mov %%r10,64(%[out])\n mov %%r11,72(%[out])\n"
      "mov %%r12,80(%[out])\n mov %%r13,88(%[out])\n mov %%r14,96(%[out])\n mov %%r15,104(%[out])\n"
      "lea 0x200(%%rsp),%%rsp\n"
      : "=&c"(differences)
      : [in] "S"(in), [out] "D"(out), [spins] "d"(spins)
      : "rax", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm7", "xmm15",
        "memory", "cc");
  __asm__ volatile("fstpl %0" : "=m"(x87_out));
  __asm__ volatile("stmxcsr %0" : "=m"(mxcsr_after));
  __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr_old));
  return (differences != 0) + (memcmp(in, out, 14 * sizeof in[0]) != 0) +
         ((mxcsr_before & ~0x3Fu) != (mxcsr_after & ~0x3Fu)) + (x87_in != x87_out);
}

__attribute__((target("avx512f,avx512bw"))) static long vectors(uint64_t seed, long spins) {
  uint64_t in[8 * 8 + 7], out[8 * 8 + 7];
  for (int i = 0; i < 71; i++) in[i] = mixed(~seed, i);
  __asm__ volatile(
      "vmovdqu64 (%[in]),%%zmm0\n vmovdqu64 64(%[in]),%%zmm1\n vmovdqu64 128(%[in]),%%zmm7\n"
      "vmovdqu64 192(%[in]),%%zmm15\n vmovdqu64 256(%[in]),%%zmm16\n vmovdqu64 320(%[in]),%%zmm23\n"
      "vmovdqu64 384(%[in]),%%zmm30\n vmovdqu64 448(%[in]),%%zmm31\n"
      "kmovq 512(%[in]),%%k1\n kmovq 520(%[in]),%%k2\n kmovq 528(%[in]),%%k3\n kmovq 536(%[in]),%%k4\n"
      "kmovq 544(%[in]),%%k5\n kmovq 552(%[in]),%%k6\n kmovq 560(%[in]),%%k7\n"
      "1: dec %[spins]\n jnz 1b\n"
      "vmovdqu64 %%zmm0,(%[out])\n vmovdqu64 %%zmm1,64(%[out])\n vmovdqu64 %%zmm7,128(%[out])\n"
      "vmovdqu64 %%zmm15,192(%[out])\n vmovdqu64 %%zmm16,256(%[out])\n vmovdqu64 %%zmm23,320(%[out])\n"
      "vmovdqu64 %%zmm30,384(%[out])\n vmovdqu64 %%zmm31,448(%[out])\n"
      "kmovq %%k1,512(%[out])\n kmovq %%k2,520(%[out])\n kmovq %%k3,528(%[out])\n kmovq %%k4,536(%[out])\n"
      "kmovq %%k5,544(%[out])\n kmovq %%k6,552(%[out])\n kmovq %%k7,560(%[out])\n"
      : [spins] "+d"(spins)
      : [in] "S"(in), [out] "D"(out)
      : "xmm0", "xmm1", "xmm7", "xmm15", "xmm16", "xmm23", "xmm30", "xmm31", "k1", "k2", "k3", "k4",
        "k5", "k6", "k7", "memory", "cc");
  return memcmp(in, out, sizeof in) != 0;
}

long spin_and_compare(uint64_t seed, long spins) {
  long differences = general(seed, spins);
  if (__builtin_cpu_supports("avx512bw")) differences += vectors(seed, spins);
  return differences;
}

static unsigned char tile_in[1024];

int make_tiles_live(void) {
  enum { kRequestPermission = 0x1023, kTileData = 18 };
  struct {
    unsigned char palette, start_row, reserved[14];
    unsigned short row_bytes[16];
    unsigned char rows[16];
  } config;
  if (syscall(SYS_arch_prctl, kRequestPermission, kTileData) != 0) return 0;
  for (int i = 0; i < 1024; i++) tile_in[i] = (unsigned char)mixed(7, i);
  memset(&config, 0, sizeof config);
  config.palette = 1;
  config.row_bytes[0] = 64;
  config.rows[0] = 16;
  __asm__ volatile("ldtilecfg %0" : : "m"(config));
  __asm__ volatile("tileloadd (%0,%1,1),%%tmm0" : : "r"(tile_in), "r"(64L) : "memory");
  return 1;
}

int compare_tiles(void) {
  static unsigned char out[1024];
  __asm__ volatile("tilestored %%tmm0,(%0,%1,1)" : : "r"(out), "r"(64L) : "memory");
  return memcmp(tile_in, out, sizeof out) != 0;
}
