/* Which of OpenBLAS's kernels run: it knows processors by model number, and takes those of
 * 2004 for one that is younger than itself, at a fifth of the speed. Where that happened, it
 * is told to choose anew by the instructions that are there, as OPENBLAS_CORETYPE would.
 */
#include "tensor/openblas_int.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* NULL: nothing better is known. */
static const char *better_kernels(const struct hps_openblas *b)
{
#if defined(__x86_64__)
	if (strcmp(b->corename(), "Prescott") != 0)
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

/* What the user chose stays. */
void hps_openblas_choose_kernels(const struct hps_openblas *b)
{
	static const char variable[] = "OPENBLAS_CORETYPE";
	const char *better = better_kernels(b);
	void (*init)(void), (*quit)(void);

	/* of an OpenBLAS that carries many processors' kernels; absent from others */
	*(void **)&init = dlsym(b->handle, "gotoblas_dynamic_init");
	*(void **)&quit = dlsym(b->handle, "gotoblas_dynamic_quit");
	if (!better || getenv(variable) || !init || !quit)
		return;
	if (setenv(variable, better, 1) != 0)
		return;
	quit();
	init();
	unsetenv(variable);
}
