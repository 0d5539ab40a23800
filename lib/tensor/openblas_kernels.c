/* Which of OpenBLAS's kernels run: it knows processors by model number, and takes those of
 * 2004 for one that is younger than itself, at a fifth of the speed. Where that happened, it
 * is told to choose anew by the instructions that are there, as OPENBLAS_CORETYPE would.
 */
#include "tensor/openblas_int.h"

#include <cblas.h>
#include <stdlib.h>
#include <string.h>

/* Of an OpenBLAS that carries many processors' kernels; absent from others, and weak so. */
extern void gotoblas_dynamic_init(void) __attribute__((weak));
extern void gotoblas_dynamic_quit(void) __attribute__((weak));

/* NULL: nothing better is known. */
static const char *better_kernels(void)
{
#if defined(__x86_64__)
	if (strcmp(openblas_get_corename(), "Prescott") != 0)
		return NULL;
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
	    __builtin_cpu_supports("avx512cd"))
		return "SkylakeX";
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		return "Haswell";
#endif
	return NULL;
}

/* Before main, as the environment may be changed only while there is one thread. What the
 * user chose stays. */
__attribute__((constructor)) static void choose_kernels(void)
{
	static const char variable[] = "OPENBLAS_CORETYPE";
	const char *better = better_kernels();

	if (!better || getenv(variable) || !gotoblas_dynamic_init || !gotoblas_dynamic_quit)
		return;
	if (setenv(variable, better, 1) != 0)
		return;
	gotoblas_dynamic_quit();
	gotoblas_dynamic_init();
	unsetenv(variable);
}

const char *hps_openblas_kernels(void)
{
	return openblas_get_corename();
}
