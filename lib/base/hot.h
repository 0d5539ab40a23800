/* Kernels compiled for several vector widths, chosen at load time. */
#ifndef HPS_BASE_HOT_H
#define HPS_BASE_HOT_H

/* Put before a function's definition. Sums keep their written order (no fast-math,
 * contraction is off), so every clone returns the same bits. Off under sanitizers,
 * whose run-time is not up when the resolver runs. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(HPS_SANITIZE)
#define HPS_HOT __attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3")))
#else
#define HPS_HOT
#endif

#endif
